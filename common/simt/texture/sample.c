#include "common/simt/texture/sample.h"

#include <math.h>
#include <string.h>

#include "common/simt/alu/half.h"

/* Coordinates beyond this are as good as infinite. */
static const double FAR = 0x1p30;

/* Bits of a normalised coordinate behind the point. */
static const double NORMALISED_ONE = 0x1p21;

/* The texels that a fetch takes on one axis, and the weight of the second one. */
struct span {
    int32_t index[2];
    bool border[2];
    uint32_t fraction; /* in 1/256 */
};

static enum simt_address_mode mode_of(const struct simt_texture *texture, int axis) {
    return (enum simt_address_mode)texture->modes[axis];
}

static int32_t wrap(int64_t index, int32_t extent) {
    int64_t rest = index % extent;
    return (int32_t)(rest < 0 ? rest + extent : rest);
}

static int32_t clamp(int64_t index, int32_t extent) {
    return index < 0 ? 0 : index >= extent ? extent - 1 : (int32_t)index;
}

/* A normalised coordinate between 0 and 1 where the texture repeats. */
static double repeat(enum simt_address_mode mode, double at) {
    if (mode != SIMT_ADDRESS_WRAP && mode != SIMT_ADDRESS_MIRROR) {
        return at;
    }
    double turn = floor(at), rest = at - turn;
    bool odd = floor(turn / 2) * 2 != turn;
    return mode == SIMT_ADDRESS_MIRROR && odd ? 1 - rest : rest;
}

/* From a coordinate to texels. What is no number counts as 0; so does what is infinite where the
 * texture repeats. */
static double in_texels(const struct simt_texture *texture, int axis, float at, int32_t extent) {
    enum simt_address_mode mode = mode_of(texture, axis);
    bool repeats = mode == SIMT_ADDRESS_WRAP || mode == SIMT_ADDRESS_MIRROR;
    double texels = (double)at;
    if (isnan(at) || (texture->normalised && repeats && isinf(at))) {
        return 0;
    }
    if (texture->normalised) {
        texels = floor(fmin(fmax(texels, -FAR), FAR) * NORMALISED_ONE) / NORMALISED_ONE;
        texels = repeat(mode, texels) * extent;
    }
    return fmin(fmax(texels, -FAR), FAR);
}

/* Puts a texel's number into the image. A mirrored coordinate is inside already. */
static void place(enum simt_address_mode mode, bool normalised, int64_t index, int32_t extent,
                  struct span *span, int n) {
    span->border[n] = mode == SIMT_ADDRESS_BORDER && (index < 0 || index >= extent);
    span->index[n] =
        mode == SIMT_ADDRESS_WRAP && normalised ? wrap(index, extent) : clamp(index, extent);
}

static void find_span(const struct simt_texture *texture, int axis, float at, uint32_t size,
                      bool two, bool gather, struct span *span) {
    enum simt_address_mode mode = mode_of(texture, axis);
    int32_t extent = (int32_t)size;
    double texels = in_texels(texture, axis, at, extent);
    int64_t first = (int64_t)floor(texels);
    bool inside = mode == SIMT_ADDRESS_CLAMP || mode == SIMT_ADDRESS_MIRROR ||
                  (mode == SIMT_ADDRESS_WRAP && !texture->normalised);
    span->fraction = 0;
    if (two) {
        int64_t fixed = (int64_t)floor((texels - 0.5) * SIMT_WEIGHT_ONE + 0.5);
        int64_t last = ((int64_t)extent - 1) * SIMT_WEIGHT_ONE;
        if (inside && !gather) { /* the coordinate is clamped, not the texels that it leads to */
            fixed = fixed < 0 ? 0 : fixed > last ? last : fixed;
        }
        first = fixed >> 8;
        span->fraction = (uint32_t)(fixed & (SIMT_WEIGHT_ONE - 1));
    }
    for (int n = 0; n < 2; n++) {
        place(mode, texture->normalised, first + n, extent, span, n);
    }
}

static void find_index(const struct simt_image *image, int32_t index, struct span *span) {
    bool inside = index >= 0 && (uint32_t)index < image->width;
    *span = (struct span){.index = {inside ? index : 0}, .border = {!inside}};
}

/* Axes that a filter works on. To a GPU an array of one dimension is one of a single row, and a
 * fetch lies on that row's edge: where the second address mode is the border, half of it is. */
static int count_axes(const struct simt_texture *texture, bool two) {
    const struct simt_image *image = &texture->image;
    bool edge = image->dimensions == 1 && image->array && image->layers == 0 && two &&
                mode_of(texture, 1) == SIMT_ADDRESS_BORDER;
    return edge ? 2 : image->dimensions;
}

/* Splits a weight between two texels; the second part, or the first, is rounded. */
static void split(uint32_t whole, uint32_t fraction, bool first, uint32_t parts[2]) {
    uint32_t part = first ? SIMT_WEIGHT_ONE - fraction : fraction;
    uint32_t rounded = (whole * part + SIMT_WEIGHT_ONE / 2) / SIMT_WEIGHT_ONE;
    parts[0] = first ? rounded : whole - rounded;
    parts[1] = whole - parts[0];
}

/* Weights of all taps: split along z, then x, then y. */
static void weigh(const struct span spans[3], struct simt_tap taps[SIMT_MOST_TAPS]) {
    uint32_t z[2], x[2], y[2];
    split(SIMT_WEIGHT_ONE, spans[2].fraction, false, z);
    for (uint32_t plane = 0; plane < 2; plane++) {
        split(z[plane], spans[0].fraction, false, x);
        for (uint32_t column = 0; column < 2; column++) {
            split(x[column], spans[1].fraction, column == 0, y);
            taps[4 * plane + column].weight = y[0];
            taps[4 * plane + column + 2].weight = y[1];
        }
    }
}

/* A layer that is not there is the last one; those below zero too. */
static uint64_t layer_offset(const struct simt_image *image, int32_t layer) {
    uint32_t last = image->layers - 1;
    return image->layers == 0 ? 0
                              : ((uint32_t)layer < last ? (uint32_t)layer : last) * image->slice;
}

uint32_t simt_sample(const struct simt_texture *texture, const struct simt_place *at, bool gather,
                     struct simt_tap taps[SIMT_MOST_TAPS]) {
    const struct simt_image *image = &texture->image;
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    const uint64_t steps[3] = {simt_image_texel(image), image->pitch, image->slice};
    struct span spans[3] = {{.fraction = 0}};
    bool two = !at->whole && (gather || texture->linear);
    int axes = count_axes(texture, two);
    for (int axis = 0; axis < axes && !at->whole; axis++) {
        float where = axis < image->dimensions ? at->at[axis] : 0;
        find_span(texture, axis, where, extents[axis], two, gather, &spans[axis]);
    }
    if (at->whole) {
        find_index(image, at->index, &spans[0]);
    }
    memset(taps, 0, SIMT_MOST_TAPS * sizeof *taps);
    weigh(spans, taps);
    uint32_t count = two ? (uint32_t)1 << axes : 1;
    for (uint32_t n = 0; n < count; n++) {
        taps[n].address = image->address + layer_offset(image, at->layer);
        for (int axis = 0; axis < axes; axis++) {
            uint32_t second = n >> axis & 1;
            taps[n].border = taps[n].border || spans[axis].border[second];
            taps[n].address += (uint64_t)spans[axis].index[second] * steps[axis];
        }
    }
    return count;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_signed(const struct simt_image *image) {
    return image->kind == SIMT_CHANNEL_SIGNED;
}

/* The integer that stands for 1. */
static int32_t most_of(const struct simt_image *image, uint32_t bits) {
    return (int32_t)(((uint32_t)1 << (is_signed(image) ? bits - 1 : bits)) - 1);
}

/* A channel's bits, the sign extended. */
static uint32_t extend(const struct simt_image *image, uint32_t value) {
    uint32_t unused = 32u - image->bits;
    value <<= unused;
    return is_signed(image) ? (uint32_t)((int32_t)value >> unused) : value >> unused;
}

/* The border's colour as a texel of the image would have it. */
static uint32_t border_channel(const struct simt_texture *texture, float colour) {
    const struct simt_image *image = &texture->image;
    if (image->kind == SIMT_CHANNEL_FLOAT) {
        return image->bits == 16 ? bits_of(half_to_float(float_to_half(colour))) : bits_of(colour);
    }
    if (!texture->as_float) {
        return extend(image, bits_of(colour));
    }
    float least = is_signed(image) ? -1 : 0;
    float inside = fminf(fmaxf(colour, least), 1);
    return (uint32_t)(int32_t)ceilf(inside * (float)most_of(image, image->bits) - 0.5f);
}

void simt_texel_read(const struct simt_texture *texture, const unsigned char *bytes,
                     uint32_t channels[4]) {
    const struct simt_image *image = &texture->image;
    bool zeros = bytes == NULL && !image->array && image->dimensions == 1;
    memset(channels, 0, 4 * sizeof *channels);
    for (uint32_t c = 0; c < image->channels && !zeros; c++) {
        uint32_t value = 0;
        if (bytes == NULL) {
            channels[c] = border_channel(texture, texture->border[c]);
            continue;
        }
        memcpy(&value, bytes + c * image->bits / 8, image->bits / 8);
        if (image->kind != SIMT_CHANNEL_FLOAT) {
            channels[c] = extend(image, value);
        } else {
            channels[c] = image->bits == 16 ? bits_of(half_to_float(value)) : value;
        }
    }
}

/* An integer as a number from -1 or 0 to 1. */
static uint32_t normalise(int64_t value, int32_t most) {
    return bits_of(fmaxf((float)value / (float)most, -1));
}

uint32_t simt_texel_value(const struct simt_texture *texture, uint32_t channel) {
    const struct simt_image *image = &texture->image;
    if (!texture->as_float) {
        return channel;
    }
    int64_t value = is_signed(image) ? (int64_t)(int32_t)channel : (int64_t)channel;
    return normalise(value, most_of(image, image->bits));
}

/* Rounds to the nearest float; of two equally near ones, to the larger one. */
static float round_away(double sum) {
    float near = (float)sum;
    float next = nextafterf(near, sum > 0 ? INFINITY : -INFINITY);
    bool tie = (double)next - sum == sum - (double)near;
    return isfinite(next) && tie && sum != (double)near ? next : near;
}

/* Texels without weight do not count: they may be infinite. */
static uint32_t filter_floats(const struct simt_texture *texture, const struct simt_tap *taps,
                              uint32_t count, const uint32_t *channels) {
    double sum = 0;
    for (uint32_t n = 0; n < count; n++) {
        if (taps[n].weight > 0) {
            sum += taps[n].weight * (double)float_of(channels[n]);
        }
    }
    float rounded = round_away(sum / SIMT_WEIGHT_ONE);
    return texture->image.bits == 16 ? bits_of(half_to_float(float_to_half(rounded)))
                                     : bits_of(rounded);
}

/* The quotient, rounded down. */
static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Integers are filtered as such, with 16 bits. */
static uint32_t filter_integers(const struct simt_image *image, const struct simt_tap *taps,
                                uint32_t count, const uint32_t *channels) {
    int32_t most = most_of(image, image->bits), most_of_16 = most_of(image, 16);
    int64_t sum = 0, whole = (int64_t)most * SIMT_WEIGHT_ONE;
    for (uint32_t n = 0; n < count; n++) {
        int64_t value = is_signed(image) ? (int64_t)(int32_t)channels[n] : (int64_t)channels[n];
        sum += taps[n].weight * (value < -most ? -most : value);
    }
    /* Of signed bytes an H100 rounds a little less than half up. */
    int64_t half = is_signed(image) && image->bits == 8 ? whole * 7 / 16 : whole / 2;
    return normalise(floor_divide(sum * most_of_16 + half, whole), most_of_16);
}

uint32_t simt_texel_filter(const struct simt_texture *texture, const struct simt_tap *taps,
                           uint32_t count, const uint32_t *channels) {
    return texture->image.kind == SIMT_CHANNEL_FLOAT
               ? filter_floats(texture, taps, count, channels)
               : filter_integers(&texture->image, taps, count, channels);
}
