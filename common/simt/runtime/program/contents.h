/**
 * @file contents.h
 * @brief What an ELF file says of the CUDA code in it, without running it.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_PROGRAM_CONTENTS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_PROGRAM_CONTENTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/simt/fatbin/elf.h"

struct program_contents {
    bool dynamic;         /**< has a dynamic section: the loader reads LD_PRELOAD */
    bool dynamic_runtime; /**< needs libcudart.so.13 */
    char other[64];       /**< needs a libcudart of another version: its name; or "" */
    bool relocatable;     /**< made by nvcc -rdc=true: the fat binaries are linked to one module */
    const unsigned char *kernels; /**< the fat binaries; NULL: there are none */
    size_t kernel_bytes;
};

/** Reads a file for which elf_is_file() holds. */
void program_contents_read(const struct elf_file *file, struct program_contents *contents);

/** Calls @p take with each library that the file needs. */
void program_each_needed(const struct elf_file *file,
                         void (*take)(void *context, const char *library), void *context);

/** Calls @p take with each function that the file takes from its libraries. */
void program_each_import(const struct elf_file *file,
                         void (*take)(void *context, const char *function), void *context);

/** A fat binary and all bytes behind it in its section. */
struct program_fatbin {
    const unsigned char *data;
    size_t left;
    bool whole; /**< its own size lies within */
};

/**
 * @brief Steps to the next fat binary that is not empty, one a translation unit.
 * @param at begins as 0
 */
bool program_next_fatbin(const struct program_contents *contents, size_t *at,
                         struct program_fatbin *fatbin);

#endif
