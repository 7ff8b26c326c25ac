#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"
#include "grader/sandbox/compile/compile.h"

/*
 * The linker runs outside of the sandbox, so that an object file is looked at before: it may hold
 * what compilers make of C and CUDA, which a linker puts together and nothing else, of a size that
 * it can do that with. Sections that steer a linker (options, names of libraries, warnings,
 * versions, another loader, code of link-time optimisation) are on no list here, and so are
 * refused.
 */
enum {
    MOST_ALIGNED = 2 << 20,    /* bytes a section is aligned to: a large page */
    MOST_LOADED = 1 << 30,     /* of code and data, with what alignment adds */
    MOST_MERGED = 32,          /* of an element of a section whose equal elements become one */
    MOST_REFERENCES = 1 << 16, /* each to what another file defines: a line of the linker's */
    MOST_NAME = 1 << 13        /* of a symbol; what templates expand to is long */
};

/* Sections by name, as it is or with more behind a dot; each with the types it may have. */
#define PLAIN (1u << SHT_PROGBITS | 1u << SHT_NOBITS)
#define ARRAYS (PLAIN | 1u << SHT_INIT_ARRAY | 1u << SHT_FINI_ARRAY | 1u << SHT_PREINIT_ARRAY)

static const struct {
    const char *name;
    unsigned types;
} sections[] = {
    {".text", PLAIN},
    {".rodata", PLAIN},
    {".data", PLAIN},
    {".bss", PLAIN},
    {".tdata", PLAIN},
    {".tbss", PLAIN},
    {".lrodata", PLAIN},
    {".ldata", PLAIN},
    {".lbss", PLAIN},
    {".init_array", ARRAYS},
    {".fini_array", ARRAYS},
    {".preinit_array", ARRAYS},
    {".eh_frame", PLAIN},
    {".gcc_except_table", PLAIN},
    {".comment", PLAIN},
    {".debug_", PLAIN},
    {".note.GNU-stack", PLAIN},
    {".note.gnu.property", 1u << SHT_NOTE},
    {".annobin", PLAIN | 1u << SHT_NOTE},
    {".gnu.build.attributes", 1u << SHT_NOTE},
    {".nv_fatbin", PLAIN},
    {".nvFatBinSegment", PLAIN},
    {".group", 1u << SHT_GROUP},
    {".symtab", 1u << SHT_SYMTAB},
    {".strtab", 1u << SHT_STRTAB},
    {".shstrtab", 1u << SHT_STRTAB},
};

/* What clang adds, of types beyond those; linkers may do without. */
static bool is_clangs(const char *name, uint32_t type) {
    return (strcmp(name, ".llvm_addrsig") == 0 && type == SHT_LOOS + 0xfff4c03) ||
           (strcmp(name, ".eh_frame") == 0 && type == SHT_X86_64_UNWIND);
}

/* __attribute__((section("mine"))): a linker makes __start_mine of it. */
static bool is_identifier(const char *name) {
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_') {
            return false;
        }
    }
    return name[0] != '\0' && !isdigit((unsigned char)name[0]);
}

static bool is_known(const char *name, uint32_t type) {
    unsigned bit = type < 32 ? 1u << type : 0;
    if (type == SHT_RELA) {
        return strncmp(name, ".rela", 5) == 0; /* of a section that is looked at itself */
    }
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        size_t length = strlen(sections[i].name);
        bool begins = strncmp(name, sections[i].name, length) == 0;
        bool same = begins && (name[length] == '\0' || name[length] == '.' ||
                               sections[i].name[length - 1] == '_');
        if (same && (sections[i].types & bit) != 0) {
            return true;
        }
    }
    return (is_identifier(name) && (PLAIN & bit) != 0) || is_clangs(name, type);
}

/* Text for a line of ours: names may hold what a terminal obeys. */
static bool is_printable(const char *name) {
    for (const char *c = name; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return false;
        }
    }
    return true;
}

static enum status refuse(struct error *error, const char *name, const char *why) {
    return error_set(error, STATUS_UNSUPPORTED, "its section %.40s %s", name, why);
}

static enum status check_section(const Elf64_Shdr *s, const char *name, struct error *error) {
    if (name == NULL || !is_printable(name)) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "it has a section whose name holds other characters than letters, digits "
                         "and signs");
    }
    if (s->sh_type == SHT_NULL) {
        return STATUS_OK;
    }
    if (!is_known(name, s->sh_type) || (s->sh_flags & SHF_COMPRESSED) != 0) {
        return refuse(error, name,
                      "has the linker do more than link: leave sections away that no C compiler "
                      "makes, link-time optimisation's and compressed ones");
    }
    if (strcmp(name, ".note.GNU-stack") == 0 && (s->sh_flags & SHF_EXECINSTR) != 0) {
        return error_set(
            error, STATUS_UNSUPPORTED,
            "its stack would have to be executable: pass a pointer to a nested function "
            "to nobody");
    }
    if (s->sh_addralign > MOST_ALIGNED) {
        return refuse(error, name, "is aligned to more than 2 MiB");
    }
    if ((s->sh_flags & SHF_MERGE) != 0 && s->sh_entsize > MOST_MERGED) {
        return refuse(error, name, "has elements of more than 32 bytes to be merged");
    }
    return STATUS_OK;
}

static enum status add_loaded(uint64_t *loaded, uint64_t size, uint64_t alignment,
                              struct error *error) {
    if (size > MOST_LOADED || alignment > MOST_ALIGNED ||
        (*loaded += size + alignment) > MOST_LOADED) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "its code and data take more than 1024 MiB as it is loaded: allocate what "
                         "is large");
    }
    return STATUS_OK;
}

/* One symbol; a common one becomes memory when it is linked. */
static enum status check_symbol(const struct elf_file *file, const Elf64_Shdr *names,
                                const Elf64_Sym *symbol, uint64_t *loaded, struct error *error) {
    const char *name = elf_string(file, names, symbol->st_name);
    if (name == NULL ||
        (symbol->st_name != 0 && (strnlen(name, MOST_NAME) == MOST_NAME || !is_printable(name)))) {
        return error_set(
            error, STATUS_UNSUPPORTED,
            "it has a symbol with a name of more than %d characters, or with others than "
            "letters, digits and signs",
            MOST_NAME);
    }
    return symbol->st_shndx == SHN_COMMON
               ? add_loaded(loaded, symbol->st_size, symbol->st_value, error)
               : STATUS_OK;
}

static enum status check_symbols(const struct elf_file *file, const Elf64_Shdr *table,
                                 uint64_t *loaded, struct error *error) {
    const unsigned char *bytes = elf_section_bytes(file, table);
    Elf64_Shdr names;
    if (bytes == NULL || !elf_section(file, table->sh_link, &names)) {
        return error_set(error, STATUS_BAD_FORMAT, "its symbols cannot be read");
    }
    for (size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, bytes + i * sizeof symbol, sizeof symbol);
        TRY(check_symbol(file, &names, &symbol, loaded, error));
    }
    return STATUS_OK;
}

/* Relocations against symbols that are defined elsewhere: the linker may have a line for each. */
static enum status check_references(const struct elf_file *file, const Elf64_Shdr *relocations,
                                    uint64_t *references, struct error *error) {
    Elf64_Shdr table;
    const unsigned char *bytes = elf_section_bytes(file, relocations), *symbols;
    if (bytes == NULL || !elf_section(file, relocations->sh_link, &table) ||
        (symbols = elf_section_bytes(file, &table)) == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "its relocations cannot be read");
    }
    for (size_t i = 0; i < relocations->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela relocation;
        Elf64_Sym symbol;
        memcpy(&relocation, bytes + i * sizeof relocation, sizeof relocation);
        uint64_t index = ELF64_R_SYM(relocation.r_info);
        if (index >= table.sh_size / sizeof symbol) {
            return error_set(error, STATUS_BAD_FORMAT, "its relocations cannot be read");
        }
        memcpy(&symbol, symbols + index * sizeof symbol, sizeof symbol);
        *references += symbol.st_shndx == SHN_UNDEF;
    }
    return *references <= MOST_REFERENCES
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "it refers to what other files define more than %d times",
                           MOST_REFERENCES);
}

enum status object_check(const void *bytes, size_t size, struct error *error) {
    const struct elf_file file = {bytes, size};
    Elf64_Shdr names, section;
    uint64_t loaded = 0, references = 0;
    if (!elf_is_file(&file) || !elf_section_names(&file, &names)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "what it is compiled to is no object file, or one of 65280 sections "
                         "and more");
    }
    for (size_t i = 0; elf_section(&file, i, &section); i++) {
        TRY(check_section(&section, elf_string(&file, &names, section.sh_name), error));
        if ((section.sh_flags & SHF_ALLOC) != 0) {
            TRY(add_loaded(&loaded, section.sh_size, section.sh_addralign, error));
        }
        if (section.sh_type == SHT_SYMTAB) {
            TRY(check_symbols(&file, &section, &loaded, error));
        } else if (section.sh_type == SHT_RELA) {
            TRY(check_references(&file, &section, &references, error));
        }
    }
    return STATUS_OK;
}
