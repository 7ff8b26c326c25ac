/* Fuzzes the look at an object file before it is linked. What is accepted is looked at a second
 * time, in another way; a refusal is one line that a terminal may show. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"
#include "grader/sandbox/compile/compile.h"

/* No linker may meet these in an object of a submission's, whatever they are called. */
static bool steers_linker(const Elf64_Shdr *section) {
    return section->sh_type == SHT_DYNAMIC || section->sh_type == SHT_DYNSYM ||
           section->sh_type == SHT_HASH || section->sh_type == SHT_GNU_verdef ||
           section->sh_type == SHT_GNU_verneed || section->sh_type == SHT_GNU_LIBLIST ||
           (section->sh_flags & SHF_COMPRESSED) != 0;
}

/* Of the sections that lie in the file, which are all that a linker can read. */
static void require_harmless(const uint8_t *data, size_t size) {
    Elf64_Ehdr header;
    Elf64_Shdr section;
    uint64_t loaded = 0;
    fuzz_require(size >= sizeof header);
    memcpy(&header, data, sizeof header);
    fuzz_require(header.e_shoff <= size);
    const uint8_t *next = data + header.e_shoff;
    for (size_t i = 0; i < header.e_shnum && (size_t)(data + size - next) >= sizeof section; i++) {
        memcpy(&section, next, sizeof section);
        fuzz_require(section.sh_type == SHT_NULL || !steers_linker(&section));
        loaded += (section.sh_flags & SHF_ALLOC) != 0 ? section.sh_size : 0;
        fuzz_require(loaded <= (uint64_t)1 << 30);
        next += sizeof section;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct error error = {0};
    if (fuzz_accepted(object_check(data, size, &error), &error)) {
        require_harmless(data, size);
        return 0;
    }
    for (const char *c = error.message; *c != '\0'; c++) {
        fuzz_require(*c >= ' ' && *c <= '~');
    }
    return 0;
}

/* A small object file: its sections' headers behind the header, their bytes behind these. */
enum { SECTIONS = 8, BYTES = 512 };

struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    unsigned char bytes[BYTES];
};

/* Bytes of `image` that are used already. */
struct filled {
    size_t sections, bytes, names;
};

static char names_of_sections[128];

static Elf64_Shdr *add_section(struct image *image, struct filled *filled, const char *name,
                               uint32_t type, const void *bytes, size_t size) {
    Elf64_Shdr *section = &image->sections[filled->sections++];
    *section =
        (Elf64_Shdr){.sh_name = (Elf64_Word)filled->names,
                     .sh_type = type,
                     .sh_offset = sizeof image->header + sizeof image->sections + filled->bytes,
                     .sh_size = size,
                     .sh_addralign = 8};
    memcpy(names_of_sections + filled->names, name, strlen(name) + 1);
    filled->names += strlen(name) + 1;
    if (size > 0) {
        memcpy(image->bytes + filled->bytes, bytes, size);
    }
    filled->bytes += (size + 7) / 8 * 8;
    return section;
}

/* Code, a reference, a common symbol, and one more section. */
static void make(struct image *image, const char *more, uint32_t type, uint64_t flags) {
    static const char symbols_names[] = "\0main\0elsewhere";
    const Elf64_Sym symbols[] = {
        {0},
        {.st_name = 1, .st_shndx = SHN_COMMON, .st_size = 4, .st_value = 4},
        {.st_name = 6, .st_shndx = SHN_UNDEF},
    };
    const Elf64_Rela reference = {.r_info = ELF64_R_INFO((uint64_t)2, R_X86_64_PC32)};
    struct filled filled = {.sections = 1, .names = 1};
    memset(image, 0, sizeof *image);
    memset(names_of_sections, 0, sizeof names_of_sections);
    add_section(image, &filled, ".text", SHT_PROGBITS, "\xc3", 1)->sh_flags = SHF_ALLOC;
    add_section(image, &filled, ".rela.text", SHT_RELA, &reference, sizeof reference)->sh_link = 3;
    add_section(image, &filled, ".symtab", SHT_SYMTAB, symbols, sizeof symbols)->sh_link = 4;
    add_section(image, &filled, ".strtab", SHT_STRTAB, symbols_names, sizeof symbols_names);
    add_section(image, &filled, more, type, "/lib/other", 11)->sh_flags = flags;
    add_section(image, &filled, ".shstrtab", SHT_STRTAB, names_of_sections,
                sizeof names_of_sections);
    /* Its own name was written behind the copy. */
    memcpy(image->bytes + filled.bytes - sizeof names_of_sections, names_of_sections,
           sizeof names_of_sections);
    memcpy(image->header.e_ident, ELFMAG, SELFMAG);
    image->header.e_ident[EI_CLASS] = ELFCLASS64;
    image->header.e_ident[EI_DATA] = ELFDATA2LSB;
    image->header.e_type = ET_REL;
    image->header.e_machine = EM_X86_64;
    image->header.e_shoff = sizeof image->header;
    image->header.e_shentsize = sizeof(Elf64_Shdr);
    image->header.e_shnum = (Elf64_Half)filled.sections;
    image->header.e_shstrndx = (Elf64_Half)(filled.sections - 1);
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t flags;
        bool accepted;
    } more[] = {
        {"mine", SHT_PROGBITS, SHF_ALLOC, true},
        {".nv_fatbin", SHT_PROGBITS, SHF_ALLOC, true},
        {".interp", SHT_PROGBITS, SHF_ALLOC, false},
        {".dynamic", SHT_DYNAMIC, SHF_ALLOC, false},
        {".debug_x", SHT_PROGBITS, SHF_COMPRESSED, false},
    };
    static struct image image;
    struct error error = {0};
    if (index >= sizeof more / sizeof *more) {
        return false;
    }
    make(&image, more[index].name, more[index].type, more[index].flags);
    *size = sizeof image;
    fuzz_require(fuzz_accepted(object_check(&image, *size, &error), &error) ==
                 more[index].accepted);
    *seed = malloc(*size);
    fuzz_require(*seed != NULL);
    memcpy(*seed, &image, *size);
    return true;
}
