/**
 * @file step_multiply.cuh
 * @brief A slice of integer weights times eight texts, by tensor cores in fp16.
 *
 * The order of weights is integer_weights.cuh's. A mask unpacks them, exactly. Bytes 0 and 2 of a
 * word are a pair, and 1 and 3: so are the input's channels.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_MULTIPLY_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_MULTIPLY_CUH_

#include "common/cuda/mma.cuh"
#include "solutions/13_low_bit/decoder/group_entry.cuh"
#include "solutions/13_low_bit/rows/step_input.cuh"

static __device__ __forceinline__ uint4 read_stage(unsigned address) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}

static __device__ __forceinline__ unsigned read_stage_word(unsigned address) {
    unsigned x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
    return x;
}

/* Pairs of fp16 that are not normal numbers: an integer below 1024 in the lowest bits of 16 is that
 * many times 2^-24. Tensor cores multiply them exactly, so that a mask unpacks weights. */
#define PAIR_OF_UNITS 0x00010001u   /* 2^-24 */
#define PAIR_OF_16TIMES 0x00100010u /* 2^-20: a nibble four bits further up */

/* The inverse of a part's unit. */
static __device__ __forceinline__ float per_unit(int high) {
    return high ? 0x1p20f : 0x1p24f;
}

/* Which of a chunk's parts read j of 32 channels belongs to. int4: the low nibbles of a group, or
 * its high ones. */
template <typename W> static __device__ __forceinline__ constexpr int part_of_read(int j) {
    return W::GROUP == 32 ? j : W::GROUP == 0 ? j / 4 : j / 4 * 2 + j % 2;
}

/* @return whether read j is the first (last) one of its part */
template <typename W> static __device__ __forceinline__ constexpr bool opens_part(int j) {
    return W::GROUP == 32 || (W::GROUP == 0 ? j % 4 == 0 : j % 4 < 2);
}

template <typename W> static __device__ __forceinline__ constexpr bool closes_part(int j) {
    return W::GROUP == 32 || (W::GROUP == 0 ? j % 4 == 3 : j % 4 >= 2);
}

/* 32 channels: four registers of weights for each half of them. */
static __device__ __forceinline__ void multiply_read(float c[4], const struct fragment a[2],
                                                     const uint4 &x) {
    mma_m16n8k16(c, a[0], x.x, x.y, __half());
    mma_m16n8k16(c, a[1], x.z, x.w, __half());
}

/* The sums of inputs of each part and text, in units of its weights, to a warp's shared memory:
 * (PARTS, ROWS). They are what weights of 1 have as products. */
template <typename W>
static __device__ __forceinline__ void sum_inputs(float *to, const struct input_chunk &in) {
    unsigned lane = threadIdx.x % 32;
    float c[2][4] = {};
    __syncwarp();
#pragma unroll
    for (int j = 0; j < STEP_READS; j++) {
        int high = W::GROUP == 0 ? 0 : j % 2;
        unsigned one = high ? PAIR_OF_16TIMES : PAIR_OF_UNITS;
        const struct fragment ones = {{one, one, one, one}};
        if (opens_part<W>(j)) {
            c[high][0] = c[high][1] = c[high][2] = c[high][3] = 0.0f;
        }
        const struct fragment a[2] = {ones, ones};
        multiply_read(c[high], a, in.x[j]);
        if (closes_part<W>(j) && lane < 4) {
            *(float2 *)(to + part_of_read<W>(j) * ROWS + lane * 2) =
                make_float2(c[high][0], c[high][1]);
        }
    }
    __syncwarp();
}

/* The lane's two texts of a part's sums. */
static __device__ __forceinline__ float2 sums_of_part(const float *sums, int part) {
    return *(const float2 *)(sums + part * ROWS + threadIdx.x % 4 * 2);
}

/* Bytes 0 and 2 (1 and 3) of a word of int8, with 128 added. */
static __device__ __forceinline__ unsigned even_bytes(unsigned word) {
    return (word ^ 0x00800080u) & 0x00ff00ffu;
}

static __device__ __forceinline__ unsigned odd_bytes(unsigned word) {
    return __byte_perm(word, 0, 0x4341) ^ 0x00800080u;
}

/* A group's scale and minus its zero point, of rows g and g + 8. */
struct group_scales {
    float scale[2], minus_zero[2];
};

template <typename S>
static __device__ __forceinline__ struct group_scales read_group(unsigned stage, unsigned group) {
    unsigned at = stage + LOW_BIT_SLICE_VALUES + group * 64 + threadIdx.x % 32 / 4 * 4;
    unsigned first = read_stage_word(at), second = read_stage_word(at + 32);
    return {{scale_of_entry(first, S()), scale_of_entry(second, S())},
            {minus_zero_of(first), minus_zero_of(second)}};
}

/* 32 channels of int4: the low nibbles of a load or its high ones. */
static __device__ __forceinline__ void multiply_nibbles(float c[4], const uint4 &w, int high,
                                                        const uint4 &in) {
    const unsigned mask = high ? 0x00f000f0u : 0x000f000fu;
    const struct fragment a[2] = {{{w.x & mask, w.y & mask, w.x >> 8 & mask, w.y >> 8 & mask}},
                                  {{w.z & mask, w.w & mask, w.z >> 8 & mask, w.w >> 8 & mask}}};
    multiply_read(c, a, in);
}

/* sums += a slice times the warp's chunk. @param inputs what sum_inputs() stored */
template <typename W>
static __device__ __forceinline__ void
multiply_int4(float sums[4], unsigned stage, const struct input_chunk &in, const float *inputs) {
    struct group_scales g;
    float c[2][4];
    uint4 w;
#pragma unroll
    for (int j = 0; j < STEP_READS; j++) {
        int high = j % 2;
        if (high == 0) {
            w = read_stage(stage + j / 2 * 512 + threadIdx.x % 32 * 16);
        }
        if (opens_part<W>(j)) {
            if (W::GROUP == 32 || high == 0) {
                g = read_group<typename W::scale>(stage, j * 32 / W::GROUP);
            }
            const float2 x = sums_of_part(inputs, part_of_read<W>(j));
#pragma unroll
            for (int i = 0; i < 4; i++) {
                c[high][i] = g.minus_zero[i / 2] * (i % 2 == 0 ? x.x : x.y);
            }
        }
        multiply_nibbles(c[high], w, high, in.x[j]);
        if (closes_part<W>(j)) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sums[i] += g.scale[i / 2] * per_unit(high) * c[high][i];
            }
        }
    }
}

/* The same of 128 channels of int8, in units of 2^-24; as numbers from 0 on, whose zero point is
 * 128. @param half of the chunk */
template <typename W>
static __device__ __forceinline__ void multiply_int8(float sums[4], unsigned stage,
                                                     const struct input_chunk &in,
                                                     const float *inputs, int half) {
    const float2 x = sums_of_part(inputs, half);
    float c[4] = {-128.0f * x.x, -128.0f * x.y, -128.0f * x.x, -128.0f * x.y};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint4 w = read_stage(stage + j * 512 + threadIdx.x % 32 * 16);
        const struct fragment a[2] = {
            {{even_bytes(w.x), even_bytes(w.y), odd_bytes(w.x), odd_bytes(w.y)}},
            {{even_bytes(w.z), even_bytes(w.w), odd_bytes(w.z), odd_bytes(w.w)}}};
        multiply_read(c, a, in.x[half * 4 + j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += c[i];
    }
}

/* sums += the slices of a tile that belong to the warp's chunk, which are the pipeline's next. */
template <typename W>
static __device__ __forceinline__ void
multiply_chunk(float sums[4], struct slice_pipeline *pipe, const struct input_chunk &in,
               const float *inputs, unsigned slices, unsigned L) {
#pragma unroll
    for (unsigned i = 0; i < W::OF_CHUNK; i++) {
        if (i < slices) {
            unsigned stage = wait_for_slice<W>(pipe);
            if constexpr (W::GROUP == 0) {
                multiply_int8<W>(sums, stage, in, inputs, i);
            } else {
                multiply_int4<W>(sums, stage, in, inputs);
            }
            release_slice<W>(pipe, L);
        }
    }
}

#endif
