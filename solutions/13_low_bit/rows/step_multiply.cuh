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

/* A sum of products with PAIR_OF_UNITS in units of a part's accumulators. */
template <typename W> static __device__ __forceinline__ float in_part_units(float sum, int part) {
    return part_unit<W>(part) == PAIR_OF_UNITS ? sum : 16.0f * sum;
}

/* The sums of inputs of each part and text, in units of its accumulators: what weights of 1 have as
 * products. Inputs are the first operand, of which rows 0 to 7 are the texts of a part and rows 8
 * to 15 those of the next one. Sums of two parts stay in registers; more go to a warp's shared
 * memory: (PARTS, ROWS). */
template <typename W>
static __device__ __forceinline__ void sum_inputs(float *to, struct input_chunk *in) {
    constexpr int READS = part_reads<W>();
    unsigned lane = threadIdx.x % 32, one = PAIR_OF_UNITS;
    __syncwarp();
#pragma unroll
    for (int part = 0; part < (int)W::PARTS; part += 2) {
        float c[2][4] = {}; /* products that wait for each other are slow */
#pragma unroll
        for (int i = 0; i < READS; i++) {
            const uint4 &x = in->x[part * READS + i], &y = in->x[(part + 1) * READS + i];
            mma_m16n8k16(c[0], {{x.x, y.x, x.y, y.y}}, one, one, __half());
            mma_m16n8k16(c[1], {{x.z, y.z, x.w, y.w}}, one, one, __half());
        }
        /* of text lane / 4: all columns are the same */
        float first = in_part_units<W>(c[0][0] + c[1][0], part);
        float second = in_part_units<W>(c[0][2] + c[1][2], part + 1);
        if constexpr (W::PARTS == 2) {
            int from = (int)(lane % 4 * 8);
            in->sums[0] =
                make_float2(__shfl_sync(~0u, first, from), __shfl_sync(~0u, first, from + 4));
            in->sums[1] =
                make_float2(__shfl_sync(~0u, second, from), __shfl_sync(~0u, second, from + 4));
        } else if (lane % 4 < 2) {
            to[((unsigned)part + lane % 4) * ROWS + lane / 4] = lane % 4 == 0 ? first : second;
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

/* @param entries of rows g and g + 8 */
template <typename S>
static __device__ __forceinline__ struct group_scales scales_of(const unsigned entries[2]) {
    return {{scale_of_entry(entries[0], S()), scale_of_entry(entries[1], S())},
            {minus_zero_of(entries[0]), minus_zero_of(entries[1])}};
}

/* Half of a slice in registers: a stage is given back as soon as both halves are. */
template <typename W> struct half_slice {
    static constexpr unsigned GROUPS = W::ENTRIES / 2;
    uint4 weights[2];
    unsigned entries[GROUPS == 0 ? 1 : GROUPS][2]; /* of rows g and g + 8 */
};

template <typename W>
static __device__ __forceinline__ struct half_slice<W> read_half(unsigned stage, unsigned half) {
    constexpr unsigned GROUPS = half_slice<W>::GROUPS;
    unsigned lane = threadIdx.x % 32;
    struct half_slice<W> h;
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        h.weights[i] = read_stage(stage + (half * 2 + i) * 512 + lane * 16);
    }
#pragma unroll
    for (int i = 0; i < (int)GROUPS; i++) {
        unsigned group = half * GROUPS + (unsigned)i;
        unsigned at = stage + LOW_BIT_SLICE_VALUES + group * 64 + lane / 4 * 4;
        h.entries[i][0] = read_word_at(at);
        h.entries[i][1] = read_word_at(at + 32);
    }
    return h;
}

/* 16 channels of int4, the first or the second ones of 32: the low nibbles of a load or its high
 * ones. */
static __device__ __forceinline__ void
multiply_half_of_read(float c[4], const uint4 &w, int high, const uint4 &in, int second) {
    const unsigned mask = high ? 0x00f000f0u : 0x000f000fu;
    unsigned even = second ? w.z : w.x, odd = second ? w.w : w.y;
    const struct fragment a = {{even & mask, odd & mask, even >> 8 & mask, odd >> 8 & mask}};
    mma_m16n8k16(c, a, second ? in.z : in.x, second ? in.w : in.y, __half());
}

/* All 32. */
static __device__ __forceinline__ void multiply_nibbles(float c[4], const uint4 &w, int high,
                                                        const uint4 &in) {
    const unsigned mask = high ? 0x00f000f0u : 0x000f000fu;
    const struct fragment a[2] = {{{w.x & mask, w.y & mask, w.x >> 8 & mask, w.y >> 8 & mask}},
                                  {{w.z & mask, w.w & mask, w.z >> 8 & mask, w.w >> 8 & mask}}};
    multiply_read(c, a, in);
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

/* Half of a slice, and what it is multiplied with and added to. */
template <typename W> struct half_product {
    float *sums; /* (4) */
    const struct half_slice<W> *weights;
    int half; /* of the chunk */
};

/* sums += half a slice in groups of 128, which is a group, times the warp's chunk; of two halves.
 * Products of high nibbles are 16 times too large. Those of low nibbles do not wait for them, nor
 * one half's for the other's. */
template <typename W>
static __device__ __forceinline__ void multiply_groups_128(const struct half_product<W> products[2],
                                                           const struct input_chunk &in) {
    float low[2][4] = {}, high[2][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) { /* 16 channels of 32, then the others */
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const uint4 &w = products[n].weights->weights[i / 2];
            const uint4 *x = in.x + products[n].half * 4 + i / 2 * 2;
            multiply_half_of_read(low[n], w, 0, x[0], i % 2);
            multiply_half_of_read(high[n], w, 1, x[1], i % 2);
        }
    }
#pragma unroll
    for (int n = 0; n < 2; n++) {
        const struct group_scales g = scales_of<typename W::scale>(products[n].weights->entries[0]);
        float zeros[4];
        begin_group(zeros, g, in.sums[products[n].half]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            low[n][i] += 0x1p-4f * (zeros[i] + high[n][i]);
        }
        add_group(products[n].sums, low[n], g, PER_UNIT);
    }
}

/* The same of one half: these two chains leave enough registers for two tiles. */
template <typename W>
static __device__ __forceinline__ void multiply_group_128(const struct half_product<W> &product,
                                                          const struct input_chunk &in) {
    const struct group_scales g = scales_of<typename W::scale>(product.weights->entries[0]);
    float low[4] = {}, high[4] = {}, zeros[4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 *x = in.x + product.half * 4 + i * 2;
        multiply_nibbles(low, product.weights->weights[i], 0, x[0]);
        multiply_nibbles(high, product.weights->weights[i], 1, x[1]);
    }
    begin_group(zeros, g, in.sums[product.half]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        low[i] += 0x1p-4f * (zeros[i] + high[i]);
    }
    add_group(product.sums, low, g, PER_UNIT);
}

/* sums += half a slice in four groups of 32: the low nibbles of a load, or its high ones. */
template <typename W>
static __device__ __forceinline__ void
multiply_groups_32(float sums[4], const struct half_slice<W> &h, const struct input_chunk &in,
                   const float *inputs, int half) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int group = half * 4 + i, high = i % 2;
        const struct group_scales g = scales_of<typename W::scale>(h.entries[i]);
        float c[4];
        begin_group(c, g, sums_of_part(inputs, group));
        multiply_nibbles(c, h.weights[i / 2], high, in.x[group]);
        add_group(sums, c, g, high ? PER_16TIMES : PER_UNIT);
    }
}

/* The same of 64 channels of int8, in units of 2^-24; as numbers from 0 on, whose zero point is
 * 128. @param quarter of the chunk */
template <typename W>
static __device__ __forceinline__ void multiply_int8(float sums[4], const struct half_slice<W> &h,
                                                     const struct input_chunk &in, int quarter) {
    float c[2][4] = {}; /* products that wait for each other are slow */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint4 &w = h.weights[i];
        const struct fragment a[2] = {
            {{even_bytes(w.x), even_bytes(w.y), odd_bytes(w.x), odd_bytes(w.y)}},
            {{even_bytes(w.z), even_bytes(w.w), odd_bytes(w.z), odd_bytes(w.w)}}};
        multiply_read(c[i], a, in.x[quarter * 2 + i]);
    }
    const float2 zero = quarter % 2 == 0 ? in.sums[quarter / 2] : make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += (c[0][i] + c[1][i]) - 128.0f * (i % 2 == 0 ? zero.x : zero.y);
    }
}

/* Two halves of slices. @param inputs what sum_inputs() has left @param slice of the chunk's */
template <typename W>
static __device__ __forceinline__ void multiply_two(const struct half_product<W> products[2],
                                                    const struct input_chunk &in,
                                                    const float *inputs, unsigned slice) {
    if constexpr (W::GROUP == 128) {
        multiply_groups_128<W>(products, in);
    } else {
#pragma unroll
        for (int n = 0; n < 2; n++) {
            const struct half_product<W> &p = products[n];
            if constexpr (W::GROUP == 0) {
                multiply_int8<W>(p.sums, *p.weights, in, (int)slice * 2 + p.half);
            } else {
                multiply_groups_32<W>(p.sums, *p.weights, in, inputs, p.half);
            }
        }
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
            const struct half_slice<W> first = read_half<W>(stage, 0),
                                       second = read_half<W>(stage, 1);
            release_slice<W>(pipe);
            const struct half_product<W> products[2] = {
                {sums, &first, 0}, {
                    sums, &second, 1
                }
            };
            multiply_two<W>(products, in, inputs, i);
        }
    }
}

#endif
