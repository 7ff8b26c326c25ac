#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"
#include "grader/sandbox/compile/compile.h"

/*
 * The linker runs outside of the sandbox. What it only copies does no harm; these sections have it
 * do more: start compilers on what they hold, or look for libraries that they name.
 */
static const char *const refused[] = {".gnu.lto_", ".llvm.lto", ".llvmbc", ".deplibs",
                                      ".linker-options"};

static bool is_refused(const char *name) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (strncmp(name, refused[i], strlen(refused[i])) == 0) {
            return true;
        }
    }
    return false;
}

enum status object_check(const void *bytes, size_t size, struct error *error) {
    const struct elf_file file = {bytes, size};
    Elf64_Shdr names, section;
    if (!elf_is_file(&file) || !elf_section_names(&file, &names)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "what it is compiled to is no object file, or one of 65280 sections "
                         "and more");
    }
    for (size_t i = 0; elf_section(&file, i, &section); i++) {
        const char *name = elf_string(&file, &names, section.sh_name);
        if (name != NULL && is_refused(name)) {
            return error_set(error, STATUS_UNSUPPORTED,
                             "its section %.40s has the linker do more than link: leave link-time "
                             "optimisation and its sections away",
                             name);
        }
    }
    return STATUS_OK;
}
