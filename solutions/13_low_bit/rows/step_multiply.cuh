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

/* Pairs of fp16 that are not normal numbers: an integer below 1024 in the lowest bits of 16 is that
 * many times 2^-24. Tensor cores multiply them exactly, so that a mask unpacks weights. */
#define PAIR_OF_UNITS 0x00010001u   /* 2^-24 */
#define PAIR_OF_16TIMES 0x00100010u /* 2^-20: a nibble four bits further up */

#define PER_UNIT 0x1p24f
#define PER_16TIMES 0x1p20f

/* 32 channels: four registers of weights for each half of them. */
static __device__ __forceinline__ void multiply_read(float c[4], const struct fragment a[2],
                                                     const uint4 &x) {
    mma_m16n8k16(c, a[0], x.x, x.y, __half());
    mma_m16n8k16(c, a[1], x.z, x.w, __half());
}

/* Reads of 32 channels of a part of a chunk. */
template <typename W> static __device__ __forceinline__ constexpr int part_reads() {
    return STEP_READS / (int)W::PARTS;
}

/* The unit that a part's accumulators begin in. */
template <typename W> static __device__ __forceinline__ constexpr unsigned part_unit(int part) {
    return W::GROUP == 128 || (W::GROUP == 32 && part % 2 == 1) ? PAIR_OF_16TIMES : PAIR_OF_UNITS;
}

/* The sums of inputs of each part and text, in units of its accumulators: what weights of 1 have as
 * products. Two parts stay in registers; more go to a warp's shared memory: (PARTS, ROWS). */
template <typename W>
static __device__ __forceinline__ void sum_inputs(float *to, struct input_chunk *in) {
    unsigned lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int part = 0; part < (int)W::PARTS; part++) {
        unsigned one = part_unit<W>(part);
        const struct fragment ones = {{one, one, one, one}};
        float c[2][2][4] = {}; /* products that wait for each other are slow */
#pragma unroll
        for (int i = 0; i < part_reads<W>(); i++) {
            const uint4 &x = in->x[part * part_reads<W>() + i];
            mma_m16n8k16(c[i % 2][0], ones, x.x, x.y, __half());
            mma_m16n8k16(c[i % 2][1], ones, x.z, x.w, __half());
        }
        const float2 sum = make_float2((c[0][0][0] + c[0][1][0]) + (c[1][0][0] + c[1][1][0]),
                                       (c[0][0][1] + c[0][1][1]) + (c[1][0][1] + c[1][1][1]));
        if constexpr (W::PARTS == 2) {
            in->sums[part] = sum;
        } else if (lane < 4) {
            *(float2 *)(to + part * ROWS + lane * 2) = sum;
        }
    }
    __syncwarp();
}

/* The lane's two texts of a part's sums. */
static __device__ __forceinline__ float2 sums_of_part(const float *sums, int part) {
    const uint2 x = read_pair_at(shared_address(sums + part * ROWS + threadIdx.x % 4 * 2));
    return make_float2(__uint_as_float(x.x), __uint_as_float(x.y));
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
    unsigned first = read_word_at(at), second = read_word_at(at + 32);
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

static __device__ __forceinline__ uint4 read_weights(unsigned stage, int load) {
    return read_stage(stage + (unsigned)load * 512 + threadIdx.x % 32 * 16);
}

/* Accumulators of a group, which begin with its zero point. */
static __device__ __forceinline__ void begin_group(float c[4], const struct group_scales &g,
                                                   float2 inputs) {
    c[0] = g.minus_zero[0] * inputs.x, c[1] = g.minus_zero[0] * inputs.y;
    c[2] = g.minus_zero[1] * inputs.x, c[3] = g.minus_zero[1] * inputs.y;
}

/* sums += a group's accumulators, scaled. */
static __device__ __forceinline__ void add_group(float sums[4], const float c[4],
                                                 const struct group_scales &g, float per_unit) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += g.scale[i / 2] * per_unit * c[i];
    }
}

/* sums += a slice in groups of 128 times the warp's chunk: two loads a group. Products of high
 * nibbles are 16 times too large. Those of a group and of its nibbles do not wait for the others'.
 */
template <typename W>
static __device__ __forceinline__ void multiply_groups_128(float sums[4], unsigned stage,
                                                           const struct input_chunk &in) {
    uint4 w[4];
    float c[2][2][4] = {}; /* of a group: low nibbles, high ones */
#pragma unroll
    for (int load = 0; load < 4; load++) {
        w[load] = read_weights(stage, load);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int group = 0; group < 2; group++) {
            int load = group * 2 + i;
            multiply_nibbles(c[group][0], w[load], 0, in.x[load * 2]);
            multiply_nibbles(c[group][1], w[load], 1, in.x[load * 2 + 1]);
        }
    }
#pragma unroll
    for (int group = 0; group < 2; group++) {
        const struct group_scales g = read_group<typename W::scale>(stage, (unsigned)group);
        float zeros[4];
        begin_group(zeros, g, in.sums[group]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            c[group][0][i] += 0x1p-4f * (zeros[i] + c[group][1][i]);
        }
        add_group(sums, c[group][0], g, PER_UNIT);
    }
}

/* The same in groups of 32: the low nibbles of a load, or its high ones. */
template <typename W>
static __device__ __forceinline__ void multiply_groups_32(float sums[4], unsigned stage,
                                                          const struct input_chunk &in,
                                                          const float *inputs) {
#pragma unroll
    for (int load = 0; load < STEP_READS / 2; load++) {
        const uint4 w = read_weights(stage, load);
#pragma unroll
        for (int high = 0; high < 2; high++) {
            int group = load * 2 + high;
            const struct group_scales g = read_group<typename W::scale>(stage, (unsigned)group);
            float c[4];
            begin_group(c, g, sums_of_part(inputs, group));
            multiply_nibbles(c, w, high, in.x[group]);
            add_group(sums, c, g, high ? PER_16TIMES : PER_UNIT);
        }
    }
}

/* The same of 128 channels of int8, in units of 2^-24; as numbers from 0 on, whose zero point is
 * 128. @param half of the chunk */
template <typename W>
static __device__ __forceinline__ void multiply_int8(float sums[4], unsigned stage,
                                                     const struct input_chunk &in, int half) {
    const float2 x = in.sums[half];
    float c[2][4] = {}; /* in turn: products that wait for each other are slow */
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint4 w = read_weights(stage, j);
        const struct fragment a[2] = {
            {{even_bytes(w.x), even_bytes(w.y), odd_bytes(w.x), odd_bytes(w.y)}},
            {{even_bytes(w.z), even_bytes(w.w), odd_bytes(w.z), odd_bytes(w.w)}}};
        multiply_read(c[j % 2], a, in.x[half * 4 + j]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += (c[0][i] + c[1][i]) - 128.0f * (i % 2 == 0 ? x.x : x.y);
    }
}

/* sums += the slices of a tile that belong to the warp's chunk, which are the pipeline's next. */
template <typename W>
static __device__ __forceinline__ void multiply_chunk(float sums[4], struct slice_pipeline *pipe,
                                                      const struct input_chunk &in,
                                                      const float *inputs, unsigned slices) {
#pragma unroll
    for (unsigned i = 0; i < W::OF_CHUNK; i++) {
        if (i < slices) {
            unsigned stage = wait_for_slice<W>(pipe);
            if constexpr (W::GROUP == 0) {
                multiply_int8<W>(sums, stage, in, i);
            } else if constexpr (W::GROUP == 32) {
                multiply_groups_32<W>(sums, stage, in, inputs);
            } else {
                multiply_groups_128<W>(sums, stage, in);
            }
            release_slice<W>(pipe);
        }
    }
}

#endif
