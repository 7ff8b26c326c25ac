#include "common/simt/fatbin/cubin.h"

#include <string.h>

#include "common/simt/fatbin/elf.h"

enum { REGISTERS_SHIFT = 24 };

uint32_t cubin_registers(const void *cubin, size_t size, const char *kernel) {
    static const char PREFIX[] = ".text.";
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
