/**
 * @file rows_product.cuh
 * @brief The product of up to eight rows with a matrix in the low-bit decoder's order.
 *
 * A block has tiles of 16 rows of weights in turn, and its warps a tile's slices in turn, two of
 * them in flight, also from one tile to the next. Weights are the 16 x 32 factor of mma.m16n8k32,
 * the eight rows' digits the 32 x 8 one: eight rows read what one reads. Weights are asked for
 * before the kernel in front is done.
 *
 * Bytes: the matrix once; the input, a byte a channel, row and digit, from L1 and L2 for each tile.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_PRODUCT_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/memory.cuh"
#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/13_low_bit/decoder/group_entry.cuh"
#include "solutions/13_low_bit/decoder/integer_mma.cuh"
#include "solutions/13_low_bit/decoder/low_bit_layout.h"
#include "solutions/13_low_bit/rows/rows_input.cuh"

/* What becomes of a product: it is stored; added to what is there; or it is gates and ups, of which
 * silu(gate) * up is stored. */
enum rows_end { ROWS_STORE, ROWS_ADD, ROWS_GATE };

struct rows_call {
    const unsigned char *stream;
    unsigned tiles, slices, slice_bytes;
    struct rows_input in;
    unsigned norm_blocks; /* of the input, whose RMSNorm divides the product; 0: none */
    float channels, eps;  /* of the norm */
    float *out;           /* (rows, N) */
    unsigned rows, N;
};

/* Warps of a block; slices that each has in flight. */
#ifndef ROWS_FORM
#define ROWS_FORM 8, 2
#endif

struct product_form {
    int warps, in_flight;
};

static constexpr struct product_form ROWS_FORM_OF_FILE = {ROWS_FORM};

enum {
    PRODUCT_WARPS = ROWS_FORM_OF_FILE.warps,
    PRODUCT_THREADS = PRODUCT_WARPS * 32,
    PRODUCT_IN_FLIGHT = ROWS_FORM_OF_FILE.in_flight
};

static_assert((int)PRODUCT_WARPS >= (int)ROWS, "a warp finds a row's root mean square");

/* A slice in registers. GROUP: columns with one scale; 0: int8, by row. */
template <int GROUP> struct row_slice {
    static constexpr int ENTRIES = GROUP == 0 ? 0 : 256 / GROUP;
    uint4 values[4];
    unsigned entries[ENTRIES > 0 ? ENTRIES : 1][2];
};

/* A warp's slice number n of all it has: of which tile, and which of its slices; none at the end of
 * a tile whose slices the warps do not share evenly. */
struct slice_place {
    unsigned tile, slice;
};

static __device__ __forceinline__ struct slice_place place_of(unsigned n, unsigned of_tile) {
    return {blockIdx.x + n / of_tile * gridDim.x, threadIdx.x / 32 + n % of_tile * PRODUCT_WARPS};
}

template <int GROUP>
static __device__ __forceinline__ void
load_slice(struct row_slice<GROUP> &s, const struct rows_call &c, const struct slice_place &place) {
    unsigned lane = threadIdx.x % 32;
    if (place.tile >= c.tiles || place.slice >= c.slices) {
        return;
    }
    const unsigned char *from =
        c.stream + ((size_t)place.tile * c.slices + place.slice) * c.slice_bytes;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        s.values[i] = load_no_allocate(from + i * 512 + lane * 16);
    }
    const unsigned *entries = (const unsigned *)(from + LOW_BIT_SLICE_VALUES) + lane / 4;
#pragma unroll
    for (int i = 0; i < s.ENTRIES; i++) {
        s.entries[i][0] = __ldg(entries + i * 16);
        s.entries[i][1] = __ldg(entries + i * 16 + 8);
    }
}

/* Products of the digits: of rows 2t and 2t + 1 of the input with row g of the tile, then g + 8. */
struct digit_products {
    int x[ROWS_DIGITS][4];
};

static __device__ __forceinline__ float whole_product(const struct digit_products &p, int i) {
    float product = (float)(p.x[0][i] + 256 * p.x[1][i]);
    if constexpr (ROWS_DIGITS == 3) {
        product += 65536.0f * (float)p.x[ROWS_DIGITS - 1][i];
    }
    return product;
}

/* sums += products, scaled, of a group. @param sum of the group's inputs, of two rows */
template <typename S>
static __device__ __forceinline__ void add_row_group(float sums[4], const struct digit_products &p,
                                                     const unsigned entries[2], float2 scale,
                                                     float2 sum) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        unsigned entry = entries[i / 2];
        float of_weights = scale_of_entry(entry, S());
        float zero = minus_zero_of(entry), in_scale = i % 2 == 0 ? scale.x : scale.y;
        sums[i] +=
            of_weights * (in_scale * whole_product(p, i) + zero * (i % 2 == 0 ? sum.x : sum.y));
    }
}

/* The lane's two rows of an array (.., ROWS). */
static __device__ __forceinline__ float2 two_rows(const float *of, size_t i) {
    return *(const float2 *)(of + i * ROWS + threadIdx.x % 4 * 2);
}

/* The lane's digits of 64 channels. */
struct row_digits {
    uint4 x[ROWS_DIGITS];
};

static __device__ __forceinline__ struct row_digits load_digits(const struct rows_input &in,
                                                                unsigned half) {
    const uint4 *from =
        (const uint4 *)in.digits + (size_t)half * ROWS_DIGITS * 32 + threadIdx.x % 32;
    struct row_digits digits;
#pragma unroll
    for (int d = 0; d < ROWS_DIGITS; d++) {
        digits.x[d] = from[d * 32];
    }
    return digits;
}

/* @param second the second step of the 64 channels */
static __device__ __forceinline__ void multiply_digits(struct digit_products &p, const uint4 &a,
                                                       const struct row_digits &x, bool second) {
#pragma unroll
    for (int d = 0; d < ROWS_DIGITS; d++) {
        mma_m16n8k32(p.x[d], a, second ? x.x[d].z : x.x[d].x, second ? x.x[d].w : x.x[d].y);
    }
}

static __device__ __forceinline__ void multiply_row_bytes(float sums[4],
                                                          const struct row_slice<0> &s,
                                                          const struct rows_input &in,
                                                          unsigned slice) {
    struct digit_products p = {};
    float2 scale = two_rows(in.scales, slice);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const struct row_digits x = load_digits(in, 2 * slice + half);
        multiply_digits(p, s.values[2 * half], x, false);
        multiply_digits(p, s.values[2 * half + 1], x, true);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sums[i] += (i % 2 == 0 ? scale.x : scale.y) * whole_product(p, i);
    }
}

template <int GROUP, typename S>
static __device__ __forceinline__ void
multiply_row_nibbles(float sums[4], const struct row_slice<GROUP> &s, const struct rows_input &in,
                     unsigned slice) {
    constexpr unsigned NIBBLES = 0x0f0f0f0fu;
#pragma unroll
    for (int half = 0; half < 4; half++) { /* 64 columns */
        unsigned block = 2 * slice + half / 2;
        const struct row_digits x = load_digits(in, 4 * slice + half);
        float2 scale = two_rows(in.scales, block);
        static_assert(GROUP == 32 || GROUP == 128, "groups");
        struct digit_products p = {};
#pragma unroll
        for (int high = 0; high < 2; high++) {
            const uint4 w = s.values[half];
            const uint4 a = make_uint4(w.x >> 4 * high & NIBBLES, w.y >> 4 * high & NIBBLES,
                                       w.z >> 4 * high & NIBBLES, w.w >> 4 * high & NIBBLES);
            multiply_digits(p, a, x, high == 1);
            if (GROUP == 32) {
                unsigned group = 2 * half + high;
                add_row_group<S>(sums, p, s.entries[group % s.ENTRIES], scale,
                                 two_rows(in.group_sums, 8 * slice + group));
                p = {};
            }
        }
        if (GROUP == 128) { /* half a group: its zero point multiplies half of the sum */
            float2 sum = two_rows(in.sums, block);
            add_row_group<S>(sums, p, s.entries[half / 2 % s.ENTRIES], scale,
                             make_float2(0.5f * sum.x, 0.5f * sum.y));
        }
    }
}

template <int GROUP, typename S>
static __device__ __forceinline__ void
multiply_row_slice(float sums[4], const struct row_slice<GROUP> &s, const struct rows_input &in,
                   unsigned slice) {
    if constexpr (GROUP == 0) {
        multiply_row_bytes(sums, s, in, slice);
    } else {
        multiply_row_nibbles<GROUP, S>(sums, s, in, slice);
    }
}

/* Shared memory. Sums are in two buffers, so that a tile needs one barrier. */
struct product_shared {
    float sums[2][PRODUCT_WARPS][4 * 32];
    float rstd[ROWS];
};

/* A warp's row: 1 / RMS of the input. */
static __device__ __forceinline__ void find_rstd(float rstd[ROWS], const struct rows_call &c) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float squares = 0.0f;
    if (warp >= ROWS) {
        return;
    }
    for (unsigned i = lane; i < c.norm_blocks; i += 32) {
        squares += c.in.squares[i * ROWS + warp];
    }
    squares = warp_sum(squares);
    if (lane == 0) {
        rstd[warp] = c.norm_blocks > 0 ? rsqrtf(squares / c.channels + c.eps) : 1.0f;
    }
}

/* Row `of_tile` of a tile times row `row`, over all warps. */
static __device__ __forceinline__ float sum_warps(const float (*sums)[4 * 32], unsigned of_tile,
                                                  unsigned row) {
    unsigned at = (of_tile / 8 * 2 + row % 2) * 32 + of_tile % 8 * 4 + row / 2;
    float sum = 0.0f;
#pragma unroll
    for (int w = 0; w < PRODUCT_WARPS; w++) {
        sum += sums[w][at];
    }
    return sum;
}

/* The scales by row of a tile stand behind all slices. */
template <int GROUP>
static __device__ __forceinline__ float scale_of_row(const struct rows_call &c, unsigned tile,
                                                     unsigned of_tile) {
    if constexpr (GROUP != 0) {
        return 1.0f;
    }
    const unsigned char *slices_end = c.stream + (size_t)c.tiles * c.slices * c.slice_bytes;
    return __ldg((const float *)slices_end + (size_t)tile * LOW_BIT_TILE_ROWS + of_tile);
}

/* Stores a tile. */
template <int GROUP, enum rows_end END>
static __device__ __forceinline__ void store_tile(const struct product_shared *shared, int buffer,
                                                  unsigned tile, const struct rows_call &c) {
    constexpr unsigned TILE = END == ROWS_GATE ? LOW_BIT_TILE_ROWS / 2 : LOW_BIT_TILE_ROWS;
    unsigned of_tile = threadIdx.x % TILE, row = threadIdx.x / TILE, n = tile * TILE + of_tile;
    if (row >= c.rows || n >= c.N) {
        return;
    }
    float *to = c.out + (size_t)row * c.N + n;
    float x = sum_warps(shared->sums[buffer], of_tile, row) * shared->rstd[row] *
              scale_of_row<GROUP>(c, tile, of_tile);
    if constexpr (END == ROWS_GATE) {
        x = silu_of(x) * sum_warps(shared->sums[buffer], of_tile + TILE, row) * shared->rstd[row] *
            scale_of_row<GROUP>(c, tile, of_tile + TILE);
    }
    *to = END == ROWS_ADD ? *to + x : x;
}

template <int GROUP, typename S, enum rows_end END>
static __global__ void __launch_bounds__(PRODUCT_THREADS) rows_product(const struct rows_call c) {
    __shared__ struct product_shared shared;
    unsigned of_tile = (c.slices + PRODUCT_WARPS - 1) / PRODUCT_WARPS;
    unsigned count = (c.tiles - blockIdx.x + gridDim.x - 1) / gridDim.x * of_tile;
    struct row_slice<GROUP> flight[PRODUCT_IN_FLIGHT];
    launch_dependent_grids();
#pragma unroll
    for (int d = 0; d < PRODUCT_IN_FLIGHT; d++) {
        load_slice<GROUP>(flight[d], c, place_of(d, of_tile));
    }
    wait_on_dependent_grids();
    find_rstd(shared.rstd, c);
    float sums[4] = {};
    int buffer = 0;
    for (unsigned first = 0; first < count; first += PRODUCT_IN_FLIGHT) {
#pragma unroll
        for (int d = 0; d < PRODUCT_IN_FLIGHT; d++) {
            const struct slice_place place = place_of(first + d, of_tile);
            if (first + d < count && place.slice < c.slices) {
                multiply_row_slice<GROUP, S>(sums, flight[d], c.in, place.slice);
            }
            load_slice<GROUP>(flight[d], c, place_of(first + d + PRODUCT_IN_FLIGHT, of_tile));
            if (first + d < count && (first + d + 1) % of_tile == 0) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    shared.sums[buffer][threadIdx.x / 32][i * 32 + threadIdx.x % 32] = sums[i];
                    sums[i] = 0.0f;
                }
                __syncthreads();
                store_tile<GROUP, END>(&shared, buffer, place.tile, c);
                buffer = 1 - buffer;
            }
        }
    }
}

#endif
