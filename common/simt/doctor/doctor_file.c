#include <string.h>

#include "common/simt/doctor/doctor_internal.h"

/** @return what the machine of an ELF file is called. */
static const char *machine_name(unsigned machine) {
    static const struct {
        unsigned machine;
        const char *name;
    } NAMES[] = {{EM_386, "32-bit x86"},  {EM_ARM, "32-bit ARM"},
                 {EM_AARCH64, "AArch64"}, {EM_PPC64, "POWER"},
                 {EM_RISCV, "RISC-V"},    {190, "NVIDIA GPUs (a cubin)"},
                 {EM_S390, "s390"},       {EM_X86_64, "x32 or x86-64"}};
    for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++) {
        if (NAMES[n].machine == machine) {
            return NAMES[n].name;
        }
    }
    return "another machine";
}

/** @return whether a part of the file lies in it. */
static bool lies_within(const struct elf_file *file, uint64_t offset, uint64_t bytes) {
    return offset <= file->size && bytes <= file->size - offset;
}

/** The tables and sections that the headers name must be there. */
static enum status check_whole(const struct elf_file *file, struct error *error) {
    Elf64_Ehdr header;
    Elf64_Shdr section;
    memcpy(&header, file->data, sizeof header);
    bool whole = lies_within(file, header.e_phoff, (uint64_t)header.e_phnum * header.e_phentsize) &&
                 lies_within(file, header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize);
    for (size_t i = 0; whole && elf_section(file, i, &section); i++) {
        whole = section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS ||
                lies_within(file, section.sh_offset, section.sh_size);
    }
    for (size_t i = 0; whole && i < header.e_phnum; i++) {
        Elf64_Phdr part;
        if (header.e_phentsize != sizeof part) {
            return error_set(error, STATUS_BAD_FORMAT, "an ELF file with a damaged header");
        }
        memcpy(&part, file->data + header.e_phoff + i * sizeof part, sizeof part);
        whole = lies_within(file, part.p_offset, part.p_filesz);
    }
    return whole ? STATUS_OK
                 : error_set(error, STATUS_TRUNCATED, "an ELF file of which the end is missing");
}

enum status doctor_look_at_file(struct doctor *doctor, const struct elf_file *file, bool *foreign,
                                struct error *error) {
    enum { MACHINE = 18, LEAST = 20 }; /* the same for files of 32 and 64 bits */
    *foreign = false;
    if (file->size < LEAST || memcmp(file->data, ELFMAG, SELFMAG) != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "not a program: it is no ELF file%s",
                         file->size >= 2 && memcmp(file->data, "#!", 2) == 0
                             ? " but a script: ask about the program that it starts"
                             : "");
    }
    bool little = file->data[EI_DATA] == ELFDATA2LSB;
    unsigned low = file->data[MACHINE + !little];
    unsigned machine = low | (unsigned)file->data[MACHINE + little] << 8;
    if (file->data[EI_CLASS] != ELFCLASS64 || !little || machine != EM_X86_64) {
        *foreign = true;
        doctor_refuse(doctor, "a program for %s; simt runs 64-bit programs for x86-64",
                      machine_name(machine));
        return STATUS_OK;
    }
    if (!elf_is_file(file)) {
        return error_set(error, STATUS_TRUNCATED, "an ELF file of which the end is missing");
    }
    TRY(check_whole(file, error));
    Elf64_Ehdr header;
    memcpy(&header, file->data, sizeof header);
    if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
        return error_set(error, STATUS_BAD_FORMAT, "not a program: %s",
                         header.e_type == ET_REL ? "an object file, which is not linked yet"
                                                 : "an ELF file that cannot be run");
    }
    if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "its section headers were removed, so that nothing can be told of it");
    }
    doctor_ok(doctor, "64-bit program for x86-64");
    return STATUS_OK;
}
