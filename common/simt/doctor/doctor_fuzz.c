/* Fuzzes the doctor: whatever a file holds, it is refused with a line or has lines, all of them
 * printed. */
#include "common/simt/doctor/doctor.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/fatbin_image.h"
#include "common/testing/fuzz.h"

/** A program: its headers, the sections' names, libraries and symbols, a fat binary. */
struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[6]; /* none; names; dynamic; its strings; symbols; fat binaries */
    char names[32], strings[64];
    Elf64_Dyn needed[2];
    Elf64_Sym symbols[1];
    struct fatbin_image fatbin;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = NULL;
    size_t length = 0;
    struct error error = {0};
    const struct elf_file file = {.data = data, .size = size};
    struct doctor doctor = {.stream = open_memstream(&text, &length), .gpu = simt_gpu_find("t4")};
    if (doctor.stream == NULL) {
        abort();
    }
    enum status status = doctor_examine(&doctor, &file, &error);
    fclose(doctor.stream);
    size_t refused = 0; /* lines: a name may hold the same word */
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        refused += strncmp(line, "  refused ", 10) == 0;
    }
    bool told = status == STATUS_OK ? length > 0 : error.message[0] != '\0';
    if (!told || (status == STATUS_OK && doctor.refused < refused)) {
        abort();
    }
    free(text);
    return 0;
}

static void set_section(struct image *image, size_t index, uint32_t type, const void *bytes,
                        size_t size) {
    image->sections[index] =
        (Elf64_Shdr){.sh_type = type,
                     .sh_offset = (size_t)((const char *)bytes - (const char *)image),
                     .sh_size = size};
}

/** @param ptx NULL: machine code alone */
static void make(struct image *image, const char *ptx) {
    enum { PTX = 1, MACHINE_CODE = 2, PLAIN = 0x11 };
    struct cubin_image cubin;
    memset(image, 0, sizeof *image);
    memcpy(image->header.e_ident, "\177ELF\2\1\1", 7);
    image->header.e_type = ET_DYN;
    image->header.e_machine = EM_X86_64;
    image->header.e_shoff = offsetof(struct image, sections);
    image->header.e_shentsize = sizeof *image->sections;
    image->header.e_shnum = 6;
    image->header.e_shstrndx = 1;
    memcpy(image->strings, "\0libcudart.so.13\0libcublas.so\0cudaArrayGetPlane", 48);
    image->needed[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 1};
    image->needed[1] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 17};
    image->symbols[0] = (Elf64_Sym){.st_name = 30};
    if (ptx != NULL) {
        fatbin_image_add(&image->fatbin, PTX, 75, PLAIN, ptx);
    } else {
        cubin_image_make(&cubin, "k", 40);
        fatbin_image_add_bytes(&image->fatbin, MACHINE_CODE, 75, PLAIN, &cubin, sizeof cubin);
    }
    set_section(image, 1, SHT_STRTAB, image->names, sizeof image->names);
    set_section(image, 2, SHT_DYNAMIC, image->needed, sizeof image->needed);
    set_section(image, 3, SHT_STRTAB, image->strings, sizeof image->strings);
    set_section(image, 4, SHT_DYNSYM, image->symbols, sizeof image->symbols);
    set_section(image, 5, SHT_PROGBITS, image->fatbin.bytes, image->fatbin.size);
    memcpy(image->names + 1, ".nv_fatbin", 10);
    image->sections[5].sh_name = 1;
    image->sections[2].sh_link = image->sections[4].sh_link = 3;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char *const PTX[] = {
        ".version 9.0\n.target sm_75\n.address_size 64\n.entry k() { ret; }",
        ".version 9.0\n.target sm_75\n.address_size 64\n.global .u32 g[4];\n"
        ".entry k() { .reg .b32 %r<3>; vadd.s32.s32.s32 %r1, %r2, %r2; ret; }",
        NULL,
    };
    struct image image;
    if (index >= sizeof PTX / sizeof *PTX) {
        return false;
    }
    make(&image, PTX[index]);
    *size = sizeof image;
    *seed = malloc(*size);
    if (*seed == NULL) {
        abort();
    }
    memcpy(*seed, &image, *size);
    return true;
}
