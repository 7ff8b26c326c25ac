/**
 * @file fatbin_image.h
 * @brief Writes fat binaries, for tests.
 */
#ifndef WARPBOOK_COMMON_SIMT_PTX_FATBIN_IMAGE_H_
#define WARPBOOK_COMMON_SIMT_PTX_FATBIN_IMAGE_H_

#include <stddef.h>
#include <stdint.h>
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

/** Adds an entry whose payload is @p text, padded with zeros to a multiple of 8. */
static inline void fatbin_image_add(struct fatbin_image *image, unsigned kind,
                                    unsigned architecture, uint64_t flags, const char *text) {
    size_t length = strlen(text);
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
    memcpy(entry + 80, text, length);
    image->size += 80 + padded;
    fatbin_image_u64(image->bytes + 8, image->size - 16, 8);
}

#endif
