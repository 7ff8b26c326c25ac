/**
 * @file integer_weights.cuh
 * @brief Weights in int8 by row and in int4 by groups, multiplied as the integers that they are.
 *
 * int8 is an operand of mma.m16n8k32 as it is stored, int4 after a mask: 2 instructions for 8
 * weights, where bf16 takes 11. High nibbles stay where they are, 16 times as large. A group's sum
 * of products is an exact integer; the zero point times the sum of the group's inputs is subtracted
 * from it, and then both scales are applied.
 *
 * A slice is four loads of 16 bytes a lane. Word w of lane (g, t), g = lane / 4, t = lane % 4, has
 * row g + 8 (w % 2). int8: load n has 32 columns, and byte p of w column 32 n + 8 t + 4 (w / 2) +
 * p. int4: load n has 64 columns, byte p's low nibble column 64 n + 8 t + 4 (w / 2) + p, and its
 * high nibble the column 32 behind.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_INTEGER_WEIGHTS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_INTEGER_WEIGHTS_CUH_

#include "solutions/13_low_bit/decoder/group_entry.cuh"
#include "solutions/13_low_bit/decoder/integer_input.cuh"
#include "solutions/13_low_bit/decoder/integer_mma.cuh"
#include "solutions/13_low_bit/decoder/low_bit_tiles.cuh"

static __device__ __forceinline__ unsigned read_shared_word(unsigned address) {
    unsigned x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
    return x;
}

/* GROUP: columns with one scale of type S, 32 or 128; 0: int8 by row. */
template <int GROUP, typename S>
struct integer_weights
    : low_bit_tiles<integer_weights<GROUP, S>, GROUP == 0 ? 128 : 256, GROUP == 0> {
    static constexpr unsigned INPUT_FLOATS = INTEGER_BLOCK_BYTES / 4;
    static constexpr bool SIDE_BY_SIDE = true;
    static constexpr int ENTRIES = GROUP == 0 ? 0 : 256 / GROUP; /* groups of a slice */
    static constexpr int GROUPS = ENTRIES > 0 ? ENTRIES : 1;

    static_assert(ONE_STAGE_BYTES == LOW_BIT_SLICE_VALUES + ENTRIES * 64, "ONE_FORM");

    struct slice {
        uint4 values[4];
        unsigned entries[GROUPS][2]; /* of rows g and g + 8 */
    };

    /* Of rows g and g + 8: the part of two digits. */
    struct sums {
        float x[2];
    };

    /* High nibbles are 16 times as large. Where a group has both kinds, low ones are made so, too.
     */
    static constexpr float NIBBLE = 1.0f / 16, UNIT = GROUP == 128 ? NIBBLE : 1.0f;

    struct input {
        unsigned address; /* of the lane's digit and columns in the first block */
        unsigned scales;  /* of the first block's scale */
        float first;      /* what the lane's first column of mma is worth */
        int second;       /* its second one, in the first one's */
    };

    static __device__ __forceinline__ void store_four(struct block_state *b, unsigned i, float4 x,
                                                      unsigned) {
        store_several<1>(b, i, &x, 1);
    }

    /* The same of i, and of a block's threads further on, `count` of the N at x, side by side:
     * their chains of instructions are long. */
    template <unsigned N>
    static __device__ __forceinline__ void store_several(struct block_state *b, unsigned i,
                                                         const float4 x[N], unsigned count) {
        unsigned largest[N];
        struct four_integers integers[N];
        int sums[N];
#pragma unroll
        for (unsigned j = 0; j < N; j++) {
            largest[j] = warp_largest(largest_of(x[j]));
        }
#pragma unroll
        for (unsigned j = 0; j < N; j++) {
            integers[j] = integers_of(x[j], largest[j]);
            sums[j] = sum_of_group<GROUP == 32>(integers[j].x);
        }
#pragma unroll
        for (unsigned j = 0; j < N; j++) {
            if (j < count) {
                store_integers<GROUP == 32>(b->x, i + j * ONE_THREADS, integers[j], sums[j]);
            }
        }
    }

    /* A warp has stored whole blocks. Zeros up to a whole slice, whose weights are zeros, too. */
    static __device__ __forceinline__ void store_padding(struct block_state *b, unsigned K) {
        constexpr unsigned WORDS = INTEGER_BLOCK_BYTES / 4;
        unsigned slice = GROUP == 0 ? 128 : 256, end = (K + slice - 1) / slice * (slice / 128);
        unsigned first = (K + 127) / 128 * WORDS;
        for (unsigned i = first + threadIdx.x; i < end * WORDS; i += ONE_THREADS) {
            ((unsigned *)b->x)[i] = 0;
        }
    }

    static __device__ __forceinline__ struct input input_of(const struct block_state *b) {
        unsigned lane = threadIdx.x % 32, digit = lane / 4 % 4, first = shared_address(b->x);
        struct input in = {first + (digit < INTEGER_DIGITS ? digit : 1) * INTEGER_DIGIT_BYTES +
                               lane % 4 * 16,
                           first + 2 * INTEGER_HALF_BYTES, lane % 2 == 0 ? UNIT : 65536.0f * UNIT,
                           lane % 2 == 0 ? 256 : 0};
        asm volatile("" : "+f"(in.first), "+r"(in.second)); /* not computed anew for each slice */
        return in;
    }

    static __device__ __forceinline__ void read(struct slice &s, unsigned stage) {
        unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s.values[i] = read_shared(stage + i * 512 + lane * 16);
        }
#pragma unroll
        for (int i = 0; i < ENTRIES; i++) {
            unsigned entry = stage + LOW_BIT_SLICE_VALUES + i * 64 + lane / 4 * 4;
            s.entries[i][0] = read_shared_word(entry);
            s.entries[i][1] = read_shared_word(entry + 32);
        }
    }

    /* Adds the products of two digits, scaled. @param scale of the input, and the lane's digit
       @param half_sum of the group's inputs */
    static __device__ __forceinline__ void add_group(struct sums &sum, const int products[4],
                                                     const unsigned entries[2], int second,
                                                     float scale, float half_sum) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float part = scale * (float)(products[2 * r] + second * products[2 * r + 1]);
            if constexpr (GROUP == 0) {
                sum.x[r] += part;
            } else {
                sum.x[r] +=
                    scale_of_entry(entries[r], S()) * (part + minus_zero_of(entries[r]) * half_sum);
            }
        }
    }

    /* A slice of int8 is one block of inputs. */
    static __device__ __forceinline__ void multiply_bytes(struct sums &sum, const struct slice &s,
                                                          const struct input &in, unsigned i) {
        unsigned at = i * INTEGER_BLOCK_BYTES;
        float scale = in.first * __uint_as_float(read_shared_word(in.scales + at));
        int products[2][4] = {};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint4 x = read_shared(in.address + at + half * INTEGER_HALF_BYTES);
            mma_m16n8k32(products[half], s.values[2 * half], x.x, x.y);
            mma_m16n8k32(products[half], s.values[2 * half + 1], x.z, x.w);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            products[0][j] += products[1][j];
        }
        add_group(sum, products[0], s.entries[0], in.second, scale, 0.0f);
    }

    /* 64 columns of int4 are two steps; each is a group, or both are half of one. */
    static __device__ __forceinline__ void multiply_nibbles(struct sums &sum, const struct slice &s,
                                                            const struct input &in, unsigned i,
                                                            int block) {
        constexpr unsigned NIBBLES = 0x0f0f0f0fu;
        unsigned at = (2 * i + block) * INTEGER_BLOCK_BYTES;
        const float2 info = read_shared_pair(in.scales + at);
        float scale = in.first * info.x;
        uint4 half_sums = {};
        if (GROUP == 32) {
            half_sums = read_shared(in.scales + at + 16);
        }
        const unsigned half_sum[4] = {half_sums.x, half_sums.y, half_sums.z, half_sums.w};
        int products[4][4] = {}; /* of each step: chains of their own */
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint4 x = read_shared(in.address + at + half * INTEGER_HALF_BYTES);
            const uint4 w = s.values[2 * block + half];
#pragma unroll
            for (int high = 0; high < 2; high++) {
                const unsigned mask = NIBBLES << 4 * high;
                const uint4 a = make_uint4(w.x & mask, w.y & mask, w.z & mask, w.w & mask);
                int chain = GROUP == 32 ? 2 * half + high : high;
                mma_m16n8k32<true>(products[chain], a, high ? x.z : x.x, high ? x.w : x.y);
            }
        }
        if (GROUP == 32) {
#pragma unroll
            for (int step = 0; step < 4; step++) {
                add_group(sum, products[step], s.entries[(4 * block + step) % GROUPS], in.second,
                          step % 2 == 1 ? NIBBLE * scale : scale, __uint_as_float(half_sum[step]));
            }
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                products[0][j] = 16 * products[0][j] + products[1][j];
            }
            add_group(sum, products[0], s.entries[block % GROUPS], in.second, scale, info.y);
        }
    }

    static __device__ __forceinline__ void multiply_slice(struct sums &sum, const struct slice &s,
                                                          const struct input &in, unsigned i) {
        if constexpr (GROUP == 0) {
            multiply_bytes(sum, s, in, i);
        } else {
            multiply_nibbles(sum, s, in, i, 0);
            multiply_nibbles(sum, s, in, i, 1);
        }
    }

    /* The lane beside has the upper two digits. */
    static __device__ __forceinline__ float2 row_sums(const struct sums &sum) {
        return make_float2(sum.x[0] + __shfl_xor_sync(~0u, sum.x[0], 1),
                           sum.x[1] + __shfl_xor_sync(~0u, sum.x[1], 1));
    }
};

#endif
