#include "common/nn/dtype.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

size_t nn_dtype_bytes(enum nn_dtype dtype) {
    return dtype == NN_F32 ? 4 : 2;
}

const char *nn_dtype_name(enum nn_dtype dtype) {
    return dtype == NN_F32 ? "fp32" : dtype == NN_F16 ? "fp16" : "bf16";
}

double nn_dtype_rounding(enum nn_dtype dtype) {
    return dtype == NN_F32 ? 0x1p-24 : dtype == NN_F16 ? 0x1p-11 : 0x1p-8;
}

static uint16_t f16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { /* 65520, halfway to what fp16 does not have */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) { /* below 2^-14: a multiple of 2^-24 */
        return (uint16_t)(sign | (uint16_t)lrintf(fabsf(x) * 0x1p24f));
    }
    magnitude += 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
}

static float of_f16(uint16_t half) {
    uint32_t exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu;
    float x = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
              : exponent == 0 ? ldexpf((float)fraction, -24)
                              : ldexpf((float)(fraction + 1024u), (int)exponent - 25);
    return half >> 15 != 0 ? -x : x;
}

static uint16_t bf16_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static float of_bf16(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void nn_dtype_store(void *to, const float *from, size_t count, enum nn_dtype dtype) {
    if (dtype == NN_F32) {
        memmove(to, from, count * sizeof *from);
        return;
    }
    uint16_t *halves = to;
    for (size_t i = 0; i < count; i++) {
        halves[i] = dtype == NN_F16 ? f16_of(from[i]) : bf16_of(from[i]);
    }
}

void nn_dtype_load(float *to, const void *from, size_t count, enum nn_dtype dtype) {
    if (dtype == NN_F32) {
        memmove(to, from, count * sizeof *to);
        return;
    }
    const uint16_t *halves = from;
    for (size_t i = 0; i < count; i++) {
        to[i] = dtype == NN_F16 ? of_f16(halves[i]) : of_bf16(halves[i]);
    }
}
