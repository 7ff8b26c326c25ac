#include "common/simt/fatbin/elf.h"

#include <string.h>

bool elf_is_file(const struct elf_file *file) {
    static const unsigned char MAGIC[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
    return file->size >= sizeof(Elf64_Ehdr) && memcmp(file->data, MAGIC, sizeof MAGIC) == 0;
}

bool elf_section(const struct elf_file *file, size_t index, Elf64_Shdr *section) {
    Elf64_Ehdr header;
    memcpy(&header, file->data, sizeof header);
    if (index >= header.e_shnum || header.e_shentsize != sizeof *section ||
        header.e_shoff > file->size ||
        (index + 1) * sizeof *section > file->size - header.e_shoff) {
        return false;
    }
    memcpy(section, file->data + header.e_shoff + index * sizeof *section, sizeof *section);
    return true;
}

bool elf_section_names(const struct elf_file *file, Elf64_Shdr *names) {
    Elf64_Ehdr header;
    memcpy(&header, file->data, sizeof header);
    return elf_section(file, header.e_shstrndx, names);
}

const void *elf_section_bytes(const struct elf_file *file, const Elf64_Shdr *section) {
    if (section->sh_type == SHT_NOBITS || section->sh_offset > file->size ||
        section->sh_size > file->size - section->sh_offset) {
        return NULL;
    }
    return file->data + section->sh_offset;
}

const char *elf_string(const struct elf_file *file, const Elf64_Shdr *table, size_t offset) {
    const char *bytes = elf_section_bytes(file, table);
    if (bytes == NULL || offset >= table->sh_size ||
        memchr(bytes + offset, '\0', table->sh_size - offset) == NULL) {
        return NULL;
    }
    return bytes + offset;
}

enum { REGISTERS_SHIFT = 24 };

/** Each function has a section of its own. */
static const char PREFIX[] = ".text.";

bool cubin_has_code(const void *cubin, size_t size) {
    const struct elf_file file = {.data = cubin, .size = size};
    Elf64_Shdr names, section;
    if (!elf_is_file(&file) || !elf_section_names(&file, &names)) {
        return true;
    }
    for (size_t i = 0; elf_section(&file, i, &section); i++) {
        const char *name = elf_string(&file, &names, section.sh_name);
        if (name == NULL || strncmp(name, PREFIX, sizeof PREFIX - 1) == 0) {
            return true;
        }
    }
    return false;
}

uint32_t cubin_registers(const void *cubin, size_t size, const char *kernel) {
    const struct elf_file file = {.data = cubin, .size = size};
    Elf64_Shdr names, section;
    if (!elf_is_file(&file) || !elf_section_names(&file, &names)) {
        return 0;
    }
    for (size_t i = 0; elf_section(&file, i, &section); i++) {
        const char *name = elf_string(&file, &names, section.sh_name);
        if (name != NULL && strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 &&
            strcmp(name + sizeof PREFIX - 1, kernel) == 0) {
            return section.sh_info >> REGISTERS_SHIFT;
        }
    }
    return 0;
}
