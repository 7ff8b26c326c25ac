#include "common/simt/runtime/program/contents.h"

#include <stdint.h>
#include <string.h>

enum { FATBIN_HEADER = 16, FATBIN_ALIGNMENT = 8 };
static const uint32_t FATBIN_MAGIC = 0xba55ed50;

/** Where the fat binaries of a program's files are with -rdc=true; .nv_fatbin has what the device's
 *  linker made of them. */
static const char RELOCATABLE[] = "__nv_relfatbin";

static void note_library(void *context, const char *library) {
    struct program_contents *contents = context;
    if (strcmp(library, "libcudart.so.13") == 0) {
        contents->dynamic_runtime = true;
    } else if (strncmp(library, "libcudart.so", 12) == 0) {
        strncpy(contents->other, library, sizeof contents->other - 1);
    }
}

void program_contents_read(const struct elf_file *file, struct program_contents *contents) {
    Elf64_Shdr names, section;
    *contents = (struct program_contents){.dynamic = false};
    program_each_needed(file, note_library, contents);
    if (!elf_section_names(file, &names)) {
        return;
    }
    for (size_t i = 0; elf_section(file, i, &section); i++) {
        const char *name = elf_string(file, &names, section.sh_name);
        contents->dynamic = contents->dynamic || section.sh_type == SHT_DYNAMIC;
        if (name != NULL && (strcmp(name, RELOCATABLE) == 0 ||
                             (strcmp(name, ".nv_fatbin") == 0 && !contents->relocatable))) {
            contents->relocatable = strcmp(name, RELOCATABLE) == 0;
            contents->kernels = elf_section_bytes(file, &section);
            contents->kernel_bytes = contents->kernels != NULL ? section.sh_size : 0;
        }
    }
}

void program_each_needed(const struct elf_file *file,
                         void (*take)(void *context, const char *library), void *context) {
    Elf64_Shdr section, strings;
    for (size_t i = 0; elf_section(file, i, &section); i++) {
        const char *entries = elf_section_bytes(file, &section);
        if (section.sh_type != SHT_DYNAMIC || entries == NULL ||
            !elf_section(file, section.sh_link, &strings)) {
            continue;
        }
        for (size_t n = 0; n < section.sh_size / sizeof(Elf64_Dyn); n++) {
            Elf64_Dyn entry;
            memcpy(&entry, entries + n * sizeof entry, sizeof entry);
            const char *name =
                entry.d_tag == DT_NEEDED ? elf_string(file, &strings, entry.d_un.d_val) : NULL;
            if (name != NULL) {
                take(context, name);
            }
        }
    }
}

void program_each_import(const struct elf_file *file,
                         void (*take)(void *context, const char *function), void *context) {
    Elf64_Shdr section, strings;
    for (size_t i = 0; elf_section(file, i, &section); i++) {
        const char *symbols = elf_section_bytes(file, &section);
        if (section.sh_type != SHT_DYNSYM || symbols == NULL ||
            !elf_section(file, section.sh_link, &strings)) {
            continue;
        }
        for (size_t n = 0; n < section.sh_size / sizeof(Elf64_Sym); n++) {
            Elf64_Sym symbol;
            memcpy(&symbol, symbols + n * sizeof symbol, sizeof symbol);
            const char *name =
                symbol.st_shndx == SHN_UNDEF ? elf_string(file, &strings, symbol.st_name) : NULL;
            if (name != NULL && name[0] != '\0') {
                take(context, name);
            }
        }
    }
}

bool program_next_fatbin(const struct program_contents *contents, size_t *at,
                         struct program_fatbin *fatbin) {
    while (contents->kernel_bytes >= FATBIN_HEADER &&
           *at <= contents->kernel_bytes - FATBIN_HEADER) {
        const unsigned char *data = contents->kernels + *at;
        size_t left = contents->kernel_bytes - *at;
        uint32_t magic;
        uint64_t bytes;
        memcpy(&magic, data, sizeof magic);
        memcpy(&bytes, data + 8, sizeof bytes);
        if (magic != FATBIN_MAGIC || bytes == 0) {
            *at += FATBIN_ALIGNMENT; /* between two of them, or nothing in it */
            continue;
        }
        *fatbin = (struct program_fatbin){data, left, bytes <= left - FATBIN_HEADER};
        *at = fatbin->whole
                  ? *at + FATBIN_HEADER +
                        (bytes + FATBIN_ALIGNMENT - 1) / FATBIN_ALIGNMENT * FATBIN_ALIGNMENT
                  : contents->kernel_bytes;
        return true;
    }
    return false;
}
