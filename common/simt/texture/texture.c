#include "common/simt/texture/texture.h"

#include <stdio.h>
#include <stdlib.h>

/* Handles are no addresses, and no small numbers, so that a wrong one is found. */
#define FIRST_HANDLE ((uint64_t)0x7e00000000000001)

struct simt_textures {
    struct simt_texture *items;
    size_t count, capacity;
};

struct simt_textures *simt_textures_create(void) {
    return calloc(1, sizeof(struct simt_textures));
}

void simt_textures_free(struct simt_textures *textures) {
    if (textures != NULL) {
        free(textures->items);
        free(textures);
    }
}

enum status simt_textures_add(struct simt_textures *textures, const struct simt_texture *texture,
                              uint64_t *handle) {
    if (textures->count == textures->capacity) {
        size_t capacity = textures->capacity == 0 ? 16 : 2 * textures->capacity;
        struct simt_texture *items = realloc(textures->items, capacity * sizeof *items);
        if (items == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        textures->items = items;
        textures->capacity = capacity;
    }
    struct simt_texture *added = &textures->items[textures->count];
    *added = *texture;
    added->handle = *handle = FIRST_HANDLE + textures->count++;
    return STATUS_OK;
}

struct simt_texture *simt_textures_find(const struct simt_textures *textures, uint64_t handle) {
    bool known = textures != NULL && handle - FIRST_HANDLE < textures->count;
    return known ? &textures->items[handle - FIRST_HANDLE] : NULL;
}

/* "16x16x4", "16x16, 3 layers" */
static void extent_text(const struct simt_image *image, char *text, size_t size) {
    int used = snprintf(text, size, "%u", image->width);
    if (image->dimensions > 1) {
        used += snprintf(text + used, size - (size_t)used, "x%u", image->height);
    }
    if (image->dimensions > 2) {
        used += snprintf(text + used, size - (size_t)used, "x%u", image->depth);
    }
    if (image->layers > 0) {
        snprintf(text + used, size - (size_t)used, ", %u layer%s", image->layers,
                 simt_plural(image->layers));
    }
}

void simt_texture_text(const struct simt_texture *texture, char *text, size_t size) {
    static const char *const kinds[] = {"signed", "unsigned", "float"};
    const struct simt_image *image = &texture->image;
    char extent[64];
    extent_text(image, extent, sizeof extent);
    snprintf(text, size, "%s object #%u (%s; %u channel%s, %u-bit %s)",
             texture->surface ? "surface" : "texture",
             (unsigned)(texture->handle - FIRST_HANDLE + 1), extent, image->channels,
             simt_plural(image->channels), image->bits, kinds[image->kind]);
}
