/**
 * @file elf.h
 * @brief Sections of a 64-bit ELF file in memory that nobody has checked, and what ptxas writes
 *        there of a kernel.
 */
#ifndef WARPBOOK_COMMON_SIMT_FATBIN_ELF_H_
#define WARPBOOK_COMMON_SIMT_FATBIN_ELF_H_

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A file's bytes; not owned, need not be aligned. */
struct elf_file {
    const unsigned char *data;
    size_t size;
};

/** @return true for a little-endian 64-bit ELF file that holds its header. */
bool elf_is_file(const struct elf_file *file);

/** @return section header number @p index, copied; false when it lies outside of the file. */
bool elf_section(const struct elf_file *file, size_t index, Elf64_Shdr *section);

/** @return the header of the section that holds sections' names; false: there is none. */
bool elf_section_names(const struct elf_file *file, Elf64_Shdr *names);

/** @return the bytes of a section, or NULL when they do not lie inside the file. */
const void *elf_section_bytes(const struct elf_file *file, const Elf64_Shdr *section);

/** @return a string of the table @p table, NULL when it does not end inside the table. */
const char *elf_string(const struct elf_file *file, const Elf64_Shdr *table, size_t offset);

/*
 * What ptxas says of a kernel in the machine code it made: an ELF file ("cubin").
 *
 * Each kernel has a section .text.NAME; the upper byte of its sh_info is the
 * number of registers a thread has, as `cuobjdump -res-usage` prints it.
 */

/**
 * @param cubin @p size bytes that may be anything
 * @return 32-bit registers a thread of the kernel has; 0 when it is not in there
 */
uint32_t cubin_registers(const void *cubin, size_t size, const char *kernel);

/** @return false for a cubin without a kernel or another function, as nvcc's linker adds one. */
bool cubin_has_code(const void *cubin, size_t size);

#endif
