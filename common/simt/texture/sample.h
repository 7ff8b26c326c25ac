/**
 * @file sample.h
 * @brief Which texels a fetch reads, with which weights: a GPU's texture unit in fixed point.
 *
 * A filtered coordinate has 8 bits behind the point, so a weight is a multiple of 1/256, and so is
 * a product of two or three: a GPU splits 256 along z, x and y and rounds each time. Normalised
 * coordinates have 21 bits. All of this is what an H100 does (table/recorded_h100.txt).
 */
#ifndef WARPBOOK_COMMON_SIMT_TEXTURE_SAMPLE_H_
#define WARPBOOK_COMMON_SIMT_TEXTURE_SAMPLE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/texture/texture.h"

enum { SIMT_MOST_TAPS = 8, SIMT_WEIGHT_ONE = 256 };

/** Where a fetch lies. */
struct simt_place {
    float at[3]; /**< x, y, z */
    int32_t layer;
    bool whole; /**< `index` in place of `at`: tex1Dfetch() */
    int32_t index;
};

/** A texel that a fetch reads; outside of the image it has the border's colour. */
struct simt_tap {
    bool border;
    uint64_t address;
    uint32_t weight; /**< in 1/256 */
};

/**
 * @brief Finds the texels of a fetch.
 * @param gather the four texels of a linear filter, whatever the texture's filter: tld4
 * @param taps   x changes fastest
 * @return how many: 1, 2, 4 or 8, the same for all places in a texture
 */
uint32_t simt_sample(const struct simt_texture *texture, const struct simt_place *place,
                     bool gather, struct simt_tap taps[SIMT_MOST_TAPS]);

/** Reads the channels of a texel: integers with their sign, bits of floats. Channels that it does
 *  not have are 0. @param bytes NULL: the border's colour; for tex1Dfetch() zeros */
void simt_texel_read(const struct simt_texture *texture, const unsigned char *bytes,
                     uint32_t channels[4]);

/** @return what a fetch makes of a channel that was read. */
uint32_t simt_texel_value(const struct simt_texture *texture, uint32_t channel);

/** @return what a fetch makes of the same channel of several texels, bits of a float. */
uint32_t simt_texel_filter(const struct simt_texture *texture, const struct simt_tap *taps,
                           uint32_t count, const uint32_t *channels);

#endif
