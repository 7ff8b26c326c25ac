/**
 * @file d8_keys.cuh
 * @brief Keys and values of 8 bits: a scale for each head and position, one for the key and one for
 * the value.
 *
 * An element is scale * bits, bits -127 .. 127, and scale = max|x| / 127, so that its error is at
 * most scale / 2. Bytes of a head's key: HS + 4, where 16 bits take 2 HS.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_KEYS_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_KEYS_CUH_

#include "common/cuda/warp.cuh"
#include "solutions/10_llama2_decoder/steps/elements.cuh"

/* An element of such a key or value, not scaled. */
struct key8 {
    int8_t bits;
};

/* x (16) = the elements of a vector, without conversions: 2^23 + 128 + bits as an fp32 number has
 * the byte bits + 128 as its last one. */
static __device__ __forceinline__ void unpack(uint4 vector, float *x, struct key8) {
    const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
    for (int i = 0; i < 16; i++) {
        unsigned biased = words[i / 4] ^ 0x80808080u;
        unsigned number = __byte_perm(biased, 0x4b000000u, 0x7540u + (unsigned)i % 4);
        x[i] = __uint_as_float(number) - 8388736.0f;
    }
}

/* The scale for elements of which the warp's lanes have `largest` magnitudes; 1 for zeros. */
static __device__ __forceinline__ float scale_of_key(float largest) {
    largest = warp_max(largest);
    return largest > 0.0f ? largest / 127.0f : 1.0f;
}

/* x / scale as an integer, to the nearest. A division takes many instructions: it is done only
 * where the product with per_scale = 1 / scale is so near the middle of two integers that it may
 * round otherwise.
 */
static __device__ __forceinline__ float rounded_key(float x, float scale, float per_scale) {
    const float NEAR = 1e-4f;
    float q = x * per_scale, n = rintf(q);
    if (!(fabsf(fabsf(q - n) - 0.5f) >= NEAR)) { /* NaN, too */
        n = rintf(x / scale);
    }
    return fminf(fmaxf(n, -127.0f), 127.0f);
}

/* Such an integer as it is stored. */
static __device__ __forceinline__ struct key8 stored_key(float rounded) {
    return {(int8_t)__float2int_rn(rounded)};
}

static __device__ __forceinline__ struct key8 key8_of(float x, float scale, float per_scale) {
    return stored_key(rounded_key(x, scale, per_scale));
}

#endif
