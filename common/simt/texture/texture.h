/**
 * @file texture.h
 * @brief Texture and surface objects: what a kernel's 64-bit handle stands for.
 *
 * The texels lie in device memory, row after row without gaps, so that every access goes through
 * the same checks and counts as a load or a store. A GPU keeps arrays in another order.
 */
#ifndef WARPBOOK_COMMON_SIMT_TEXTURE_TEXTURE_H_
#define WARPBOOK_COMMON_SIMT_TEXTURE_TEXTURE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/space/memory.h"

/** The numbers of cudaChannelFormatKind. */
enum simt_channel_kind { SIMT_CHANNEL_SIGNED, SIMT_CHANNEL_UNSIGNED, SIMT_CHANNEL_FLOAT };

/** Texels in device memory. */
struct simt_image {
    uint64_t address;
    size_t pitch, slice;           /**< bytes from row to row, from plane or layer to the next */
    uint32_t width, height, depth; /**< in texels; 1 where there is no such dimension */
    uint32_t layers;               /**< 0: not layered */
    uint8_t dimensions;            /**< 1 to 3, layers not counted */
    uint8_t bits;                  /**< of a channel: 8, 16 or 32 */
    uint8_t channels;              /**< 1, 2 or 4 */
    uint8_t kind;                  /**< enum simt_channel_kind */
    bool array;                    /**< of cudaMallocArray(); else memory of the program */
};

/** @return bytes of a texel. */
static inline uint32_t simt_image_texel(const struct simt_image *image) {
    return (uint32_t)image->bits / 8 * image->channels;
}

/** The numbers of cudaTextureAddressMode. */
enum simt_address_mode {
    SIMT_ADDRESS_WRAP,
    SIMT_ADDRESS_CLAMP,
    SIMT_ADDRESS_MIRROR,
    SIMT_ADDRESS_BORDER
};

/** A texture or surface object. */
struct simt_texture {
    struct simt_image image;
    bool surface;
    bool destroyed;
    uint8_t modes[3]; /**< enum simt_address_mode of x, y, z */
    bool linear;      /**< filtered, else the nearest texel */
    bool normalised;  /**< coordinates: 1 is the whole extent */
    bool as_float;    /**< integers are read as numbers from 0 or -1 to 1 */
    float border[4];
    uint64_t handle;
};

/** All objects there ever were, so that a handle of a destroyed one is known as such. */
struct simt_textures;

/** @return no objects; NULL: out of memory. */
struct simt_textures *simt_textures_create(void);

void simt_textures_free(struct simt_textures *textures);

/** @brief Adds an object. @param handle receives what kernels know it by; never 0 */
MUST_CHECK enum status simt_textures_add(struct simt_textures *textures,
                                         const struct simt_texture *texture, uint64_t *handle);

/** @return the object, destroyed or not; NULL: there has never been one. Valid until the next is
 *  added. */
struct simt_texture *simt_textures_find(const struct simt_textures *textures, uint64_t handle);

/** Writes what a message calls an object: "texture object #1 (16x16 texels of 4 channels, 8-bit
 *  unsigned)". */
void simt_texture_text(const struct simt_texture *texture, char *text, size_t size);

#endif
