#include "common/checkpoints/gguf/gguf_blocks.h"

#include <string.h>

#include "common/nn/dtype.h"

/* Weights of a block, bytes of a scale. */
enum { SMALL = 32, LARGE = 256, HALF_BYTES = 2 };

/* By number. Types without sizes have names for messages. */
static const struct gguf_block blocks[] = {
    [GGUF_F32] = {"F32", 1, 4},
    [GGUF_F16] = {"F16", 1, 2},
    [GGUF_Q4_0] = {"Q4_0", SMALL, 18},
    [3] = {"Q4_1", 0, 0},
    [6] = {"Q5_0", 0, 0},
    [7] = {"Q5_1", 0, 0},
    [GGUF_Q8_0] = {"Q8_0", SMALL, 34},
    [9] = {"Q8_1", 0, 0},
    [10] = {"Q2_K", 0, 0},
    [11] = {"Q3_K", 0, 0},
    [GGUF_Q4_K] = {"Q4_K", LARGE, 144},
    [13] = {"Q5_K", 0, 0},
    [GGUF_Q6_K] = {"Q6_K", LARGE, 210},
    [15] = {"Q8_K", 0, 0},
    [16] = {"IQ2_XXS", 0, 0},
    [17] = {"IQ2_XS", 0, 0},
    [18] = {"IQ3_XXS", 0, 0},
    [19] = {"IQ1_S", 0, 0},
    [20] = {"IQ4_NL", 0, 0},
    [21] = {"IQ3_S", 0, 0},
    [22] = {"IQ2_S", 0, 0},
    [23] = {"IQ4_XS", 0, 0},
    [24] = {"I8", 0, 0},
    [25] = {"I16", 0, 0},
    [26] = {"I32", 0, 0},
    [27] = {"I64", 0, 0},
    [28] = {"F64", 0, 0},
    [29] = {"IQ1_M", 0, 0},
    [GGUF_BF16] = {"BF16", 1, 2},
    [34] = {"TQ1_0", 0, 0},
    [35] = {"TQ2_0", 0, 0},
    [39] = {"MXFP4", 0, 0},
};

const char gguf_types_read[] = "F32, F16, BF16, Q8_0, Q4_0, Q4_K and Q6_K";

struct gguf_block gguf_block(uint32_t type) {
    const size_t count = sizeof blocks / sizeof *blocks;
    return type < count && blocks[type].name != NULL ? blocks[type]
                                                     : (struct gguf_block){"unknown", 0, 0};
}

/* One number of a 16-bit type; may be unaligned. */
static float number(const uint8_t *data, enum nn_dtype dtype) {
    uint16_t bits;
    float value;
    memcpy(&bits, data, sizeof bits);
    nn_dtype_load(&value, &bits, 1, dtype);
    return value;
}

static float half(const uint8_t *data) {
    return number(data, NN_F16);
}

static void f16(const uint8_t *block, float *out) {
    *out = half(block);
}

static void bf16(const uint8_t *block, float *out) {
    *out = number(block, NN_BF16);
}

static void f32(const uint8_t *block, float *out) {
    memcpy(out, block, sizeof *out);
}

static void q8_0(const uint8_t *block, float *out) {
    float d = half(block);
    for (size_t i = 0; i < SMALL; i++) {
        out[i] = d * (float)(int8_t)block[HALF_BYTES + i];
    }
}

static void q4_0(const uint8_t *block, float *out) {
    float d = half(block);
    for (size_t i = 0; i < SMALL / 2; i++) {
        uint8_t pair = block[HALF_BYTES + i];
        out[i] = d * (float)((pair & 15) - 8);
        out[i + SMALL / 2] = d * (float)((pair >> 4) - 8);
    }
}

/* Scale and minimum of 32 weights, 6 bits each. The first four pairs have bytes of their own, of
   which the others' upper two bits take the rest. */
static void scale_and_minimum(const uint8_t *packed, size_t group, int *scale, int *minimum) {
    if (group < 4) {
        *scale = packed[group] & 63;
        *minimum = packed[group + 4] & 63;
    } else {
        *scale = (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4;
        *minimum = packed[group + 4] >> 4 | packed[group] >> 6 << 4;
    }
}

/* 32 bytes hold two groups: one in their low nibbles, the next in their high ones. */
static void q4_k(const uint8_t *block, float *out) {
    const uint8_t *packed = block + 2 * HALF_BYTES, *nibbles = packed + 12;
    float d = half(block), dmin = half(block + HALF_BYTES);
    for (size_t i = 0; i < LARGE; i++) {
        size_t group = i / SMALL;
        int scale, minimum;
        scale_and_minimum(packed, group, &scale, &minimum);
        int q = nibbles[group / 2 * SMALL + i % SMALL] >> (group % 2 * 4) & 15;
        out[i] = d * (float)scale * (float)q - dmin * (float)minimum;
    }
}

/* Each half of 128 weights has 64 bytes of low nibbles and 32 of upper bits: weights 0 to 63 are in
   the low nibbles, 64 to 127 in the high ones; a byte has the upper bits of 4 weights, 32 apart. */
static void q6_k(const uint8_t *block, float *out) {
    const uint8_t *low = block, *high = block + 128, *scales = high + 64;
    float d = half(scales + 16);
    for (size_t i = 0; i < LARGE; i++) {
        size_t at = i / 128, in = i % 128;
        int nibble = low[at * 64 + in % 64] >> (in / 64 * 4) & 15;
        int upper = high[at * 32 + in % 32] >> (in / 32 * 2) & 3;
        out[i] = d * (float)(int8_t)scales[i / 16] * (float)((nibble | upper << 4) - 32);
    }
}

typedef void block_reader(const uint8_t *block, float *out);

void gguf_dequantize(enum gguf_type type, const void *data, float *out, size_t count) {
    static block_reader *const readers[] = {
        [GGUF_F32] = f32,   [GGUF_F16] = f16,   [GGUF_BF16] = bf16, [GGUF_Q8_0] = q8_0,
        [GGUF_Q4_0] = q4_0, [GGUF_Q4_K] = q4_k, [GGUF_Q6_K] = q6_k,
    };
    const struct gguf_block block = gguf_block(type);
    const uint8_t *in = data;
    for (size_t i = 0; i < count / block.weights; i++) {
        readers[type](in + i * block.bytes, out + i * block.weights);
    }
}
