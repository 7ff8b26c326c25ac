/**
 * @file fatbin_image.h
 * @brief Writes fat binaries and the machine code in them, for tests.
 */
#ifndef WARPBOOK_COMMON_SIMT_FATBIN_FATBIN_IMAGE_H_
#define WARPBOOK_COMMON_SIMT_FATBIN_FATBIN_IMAGE_H_

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** An image under construction; set `size` to 0 before the first entry. */
struct fatbin_image {
    unsigned char bytes[4096];
    size_t size;
};

static inline void fatbin_image_u64(unsigned char *bytes, uint64_t value, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
}

/** Adds an entry whose payload is padded with zeros to a multiple of 8, by one byte at least. */
static inline void fatbin_image_add_bytes(struct fatbin_image *image, unsigned kind,
                                          unsigned architecture, uint64_t flags,
                                          const void *payload, size_t length) {
    size_t padded = (length + 8) / 8 * 8;
    if (image->size == 0) {
        memset(image->bytes, 0, sizeof image->bytes);
        image->size = 16;
        fatbin_image_u64(image->bytes, 0xba55ed50, 4);
        fatbin_image_u64(image->bytes + 4, 1, 2);
        fatbin_image_u64(image->bytes + 6, 16, 2);
    }
    unsigned char *entry = image->bytes + image->size;
    fatbin_image_u64(entry, kind, 2);
    fatbin_image_u64(entry + 4, 80, 4);
    fatbin_image_u64(entry + 8, padded, 8);
    fatbin_image_u64(entry + 28, architecture, 4);
    fatbin_image_u64(entry + 40, flags, 8);
    memcpy(entry + 80, payload, length);
    image->size += 80 + padded;
    fatbin_image_u64(image->bytes + 8, image->size - 16, 8);
}

/** Adds an entry of text. */
static inline void fatbin_image_add(struct fatbin_image *image, unsigned kind,
                                    unsigned architecture, uint64_t flags, const char *text) {
    fatbin_image_add_bytes(image, kind, architecture, flags, text, strlen(text));
}

/** Machine code of one kernel, without the code: its header, its section, the sections' names. */
struct cubin_image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[2]; /* the names; the kernel's */
    char names[64];
};

/** Fills in an image with a kernel's register count; the kernel's name has at most 50 characters.
 */
static inline void cubin_image_make(struct cubin_image *image, const char *kernel,
                                    unsigned registers) {
    memset(image, 0, sizeof *image);
    memcpy(image->header.e_ident, "\177ELF\2\1", 6);
    image->header.e_shoff = offsetof(struct cubin_image, sections);
    image->header.e_shentsize = sizeof *image->sections;
    image->header.e_shnum = 2;
    image->sections[0].sh_type = SHT_STRTAB;
    image->sections[0].sh_offset = offsetof(struct cubin_image, names);
    image->sections[0].sh_size = sizeof image->names;
    image->sections[1].sh_name = 1;
    image->sections[1].sh_type = SHT_PROGBITS;
    image->sections[1].sh_info = registers << 24 | 7;
    snprintf(image->names + 1, sizeof image->names - 1, ".text.%s", kernel);
}

#endif
