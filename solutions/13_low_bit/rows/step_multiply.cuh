/**
 * @file step_multiply.cuh
 * @brief A slice of integer weights times eight texts, by tensor cores in bf16.
 *
 * The order of weights is integer_weights.cuh's; unpacked, a number is exact. Bytes 0 and 2 of a
 * word are a pair, and 1 and 3: so are the input's channels.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_MULTIPLY_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_MULTIPLY_CUH_

#include "solutions/13_low_bit/decoder/group_entry.cuh"
#include "solutions/13_low_bit/rows/step_input.cuh"
#include "solutions/13_low_bit/steps/unpack.cuh"

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

/* Products of rows g and g + 8 with texts 2t and 2t + 1: with the input's upper and lower bits. */
struct split_products {
    float high[4], low[4];
};

static __device__ __forceinline__ void multiply_step(struct split_products *c,
                                                     const struct fragment &weights,
                                                     const struct input_chunk &in, int read) {
    const __nv_bfloat16 type = {};
    mma_m16n8k16(c->high, weights, in.high[read][0], in.high[read][1], type);
    mma_m16n8k16(c->low, weights, in.low[read][0], in.low[read][1], type);
}

/* The scale and zero point of a group's rows g and g + 8. */
struct group_scales {
    float scale[2];
    unsigned minus_zero[2]; /* pairs of -(128 + zero) */
};

template <typename S>
static __device__ __forceinline__ struct group_scales read_group(unsigned stage, unsigned group) {
    unsigned at = stage + LOW_BIT_SLICE_VALUES + group * 64 + threadIdx.x % 32 / 4 * 4;
    unsigned first = read_stage_word(at), second = read_stage_word(at + 32);
    return {{scale_of_entry(first, S()), scale_of_entry(second, S())},
            {__byte_perm(first, 0, 0x3232), __byte_perm(second, 0, 0x3232)}};
}

static __device__ __forceinline__ void add_group(float sums[4], const struct split_products &c,
                                                 const float scale[2]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += scale[i / 2] * (c.high[i] + c.low[i]);
    }
}

/* Read 2 * j and 2 * j + 1 of the chunk: 32 channels, the low nibbles of a load or its high ones.
 */
static __device__ __forceinline__ void multiply_nibbles(struct split_products *c, const uint4 &w,
                                                        int high, const unsigned minus_zero[2],
                                                        const struct input_chunk &in, int j) {
    const unsigned words[2][2] = {{w.x, w.y}, {w.z, w.w}};
#pragma unroll
    for (int q = 0; q < 2; q++) {
        const struct fragment a = {{unpack_int4(words[q][0], high, minus_zero[0]),
                                    unpack_int4(words[q][1], high, minus_zero[1]),
                                    unpack_int4(words[q][0], high + 2, minus_zero[0]),
                                    unpack_int4(words[q][1], high + 2, minus_zero[1])}};
        multiply_step(c, a, in, 2 * j + q);
    }
}

template <int GROUP, typename S>
static __device__ __forceinline__ void multiply_int4(float sums[4], unsigned stage,
                                                     const struct input_chunk &in) {
    constexpr int STEPS = GROUP / 32; /* of a group */
    struct split_products c;
    struct group_scales g;
    uint4 w;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (j % 2 == 0) {
            w = read_stage(stage + j / 2 * 512 + threadIdx.x % 32 * 16);
        }
        if (j % STEPS == 0) {
            c = {};
            g = read_group<S>(stage, j / STEPS);
        }
        multiply_nibbles(&c, w, j % 2, g.minus_zero, in, j);
        if (j % STEPS == STEPS - 1) {
            add_group(sums, c, g.scale);
        }
    }
}

/* @param half which 128 channels of the chunk */
static __device__ __forceinline__ void multiply_int8(float sums[4], unsigned stage,
                                                     const struct input_chunk &in, int half) {
    const float one[2] = {1.0f, 1.0f};
    struct split_products c = {};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint4 w = read_stage(stage + j * 512 + threadIdx.x % 32 * 16);
        const unsigned words[2][2] = {{w.x, w.y}, {w.z, w.w}};
#pragma unroll
        for (int q = 0; q < 2; q++) {
            const struct fragment a = {{unpack_int8(words[q][0], 0), unpack_int8(words[q][1], 0),
                                        unpack_int8(words[q][0], 1), unpack_int8(words[q][1], 1)}};
            multiply_step(&c, a, in, half * 8 + 2 * j + q);
        }
    }
    add_group(sums, c, one);
}

/* sums += the slices of a tile that belong to the warp's chunk, which are the pipeline's next.
 * @param left of the warp's slices of the matrix, with these */
template <typename W>
static __device__ __forceinline__ void
multiply_chunk(float sums[4], struct slice_pipeline *pipe, const struct input_chunk &in,
               unsigned slices, unsigned left, const struct step_arguments &p) {
#pragma unroll
    for (unsigned i = 0; i < W::OF_CHUNK; i++) {
        if (i < slices) {
            unsigned stage = wait_for_slice<W>(pipe);
            if constexpr (W::GROUP == 0) {
                multiply_int8(sums, stage, in, i);
            } else {
                multiply_int4<W::GROUP, typename W::scale>(sums, stage, in);
            }
            release_slice<W>(pipe, left - i <= p.held_back, p);
        }
    }
}

#endif
