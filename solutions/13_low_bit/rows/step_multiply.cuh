/**
 * @file step_multiply.cuh
 * @brief A slice of integer weights times eight texts, by tensor cores in fp16.
 *
 * The order of weights is integer_weights.cuh's; unpacked, a number is exact. Bytes 0 and 2 of a
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

/* Pairs of fp16: 1024, whose last bit is worth 1; 1 / 16; 1024 + 128, negative. */
#define PAIR_OF_1024 0x64006400u
#define PAIR_OF_16TH 0x2c002c00u
#define PAIR_OF_MINUS_1152 0xe480e480u

static __device__ __forceinline__ unsigned add_pair(unsigned a, unsigned b) {
    unsigned c;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
}

static __device__ __forceinline__ unsigned multiply_add_pair(unsigned a, unsigned b, unsigned c) {
    unsigned d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* A pair of -(1024 + zero), and of -(64 + zero). */
struct minus_zero {
    unsigned low, high;
};

/* Nibbles i and i + 4 of a word, i = 0 or 1, less the zero point: 1024 + q, or 1024 + 16 q, which a
 * shift would cost another instruction. */
static __device__ __forceinline__ unsigned half_nibbles(unsigned word, int i,
                                                        const struct minus_zero &minus) {
    return i == 0
               ? add_pair((word & 0x000f000fu) | PAIR_OF_1024, minus.low)
               : multiply_add_pair((word & 0x00f000f0u) | PAIR_OF_1024, PAIR_OF_16TH, minus.high);
}

/* Bytes i (0, 1) and i + 2 of a word of int8 with 128 added. */
static __device__ __forceinline__ unsigned half_bytes(unsigned word, int i) {
    return add_pair(__byte_perm(word, PAIR_OF_1024, i == 0 ? 0x5250 : 0x5351), PAIR_OF_MINUS_1152);
}

/* The scale and zero point of a group's rows g and g + 8. */
struct group_scales {
    float scale[2];
    struct minus_zero minus[2];
};

static __device__ __forceinline__ struct minus_zero minus_zero_pairs(unsigned entry) {
    float x = minus_zero_of(entry);
    return {pack(x - 1024.0f, x - 1024.0f, __half()), pack(x - 64.0f, x - 64.0f, __half())};
}

template <typename S>
static __device__ __forceinline__ struct group_scales read_group(unsigned stage, unsigned group) {
    unsigned at = stage + LOW_BIT_SLICE_VALUES + group * 64 + threadIdx.x % 32 / 4 * 4;
    unsigned first = read_stage_word(at), second = read_stage_word(at + 32);
    return {{scale_of_entry(first, S()), scale_of_entry(second, S())},
            {minus_zero_pairs(first), minus_zero_pairs(second)}};
}

/* sums += products of rows g and g + 8 with texts 2t and 2t + 1, scaled. */
static __device__ __forceinline__ void add_group(float sums[4], const float c[4],
                                                 const float scale[2]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += scale[i / 2] * c[i];
    }
}

/* 32 channels of int4: the low nibbles of a load or its high ones. */
static __device__ __forceinline__ void multiply_nibbles(float c[4], const uint4 &w, int high,
                                                        const struct minus_zero minus[2],
                                                        const uint4 &in) {
    const unsigned words[2][2] = {{w.x, w.y}, {w.z, w.w}};
#pragma unroll
    for (int q = 0; q < 2; q++) {
        const struct fragment a = {{half_nibbles(words[q][0], high, minus[0]),
                                    half_nibbles(words[q][1], high, minus[1]),
                                    half_nibbles(words[q][0] >> 8, high, minus[0]),
                                    half_nibbles(words[q][1] >> 8, high, minus[1])}};
        mma_m16n8k16(c, a, q == 0 ? in.x : in.z, q == 0 ? in.y : in.w, __half());
    }
}

template <int GROUP, typename S>
static __device__ __forceinline__ void multiply_int4(float sums[4], unsigned stage,
                                                     const struct input_chunk &in) {
    constexpr int STEPS = GROUP / 32; /* of a group */
    struct group_scales g;
    float c[4];
    uint4 w;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        if (j % 2 == 0) {
            w = read_stage(stage + j / 2 * 512 + threadIdx.x % 32 * 16);
        }
        if (j % STEPS == 0) {
            c[0] = c[1] = c[2] = c[3] = 0.0f;
            g = read_group<S>(stage, j / STEPS);
        }
        multiply_nibbles(c, w, j % 2, g.minus, in.x[j]);
        if (j % STEPS == STEPS - 1) {
            add_group(sums, c, g.scale);
        }
    }
}

/* @param half which 128 channels of the chunk */
static __device__ __forceinline__ void multiply_int8(float sums[4], unsigned stage,
                                                     const struct input_chunk &in, int half) {
    constexpr unsigned SIGNS = 0x80808080u;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint4 w = read_stage(stage + j * 512 + threadIdx.x % 32 * 16);
        const unsigned words[2][2] = {{w.x ^ SIGNS, w.y ^ SIGNS}, {w.z ^ SIGNS, w.w ^ SIGNS}};
        const uint4 &x = in.x[half * 4 + j];
#pragma unroll
        for (int q = 0; q < 2; q++) {
            const struct fragment a = {{half_bytes(words[q][0], 0), half_bytes(words[q][1], 0),
                                        half_bytes(words[q][0], 1), half_bytes(words[q][1], 1)}};
            mma_m16n8k16(sums, a, q == 0 ? x.x : x.z, q == 0 ? x.y : x.w, __half());
        }
    }
}

/* sums += the slices of a tile that belong to the warp's chunk, which are the pipeline's next. */
template <typename W>
static __device__ __forceinline__ void multiply_chunk(float sums[4], struct slice_pipeline *pipe,
                                                      const struct input_chunk &in, unsigned slices,
                                                      const struct step_arguments &p) {
#pragma unroll
    for (unsigned i = 0; i < W::OF_CHUNK; i++) {
        if (i < slices) {
            unsigned stage = wait_for_slice<W>(pipe);
            if constexpr (W::GROUP == 0) {
                multiply_int8(sums, stage, in, i);
            } else {
                multiply_int4<W::GROUP, typename W::scale>(sums, stage, in);
            }
            release_slice<W>(pipe, p);
        }
    }
}

#endif
