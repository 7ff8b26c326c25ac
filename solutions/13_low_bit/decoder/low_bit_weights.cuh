/**
 * @file low_bit_weights.cuh
 * @brief d8's products with weights of 8 and 4 bits: how they are stored, and how a warp multiplies
 * them.
 *
 * A matrix is tiles of 16 rows; of gate and up together, 8 rows of each. A tile is slices of 2048
 * bytes of weights in the order of fragments.cuh: 16 rows x 128 columns of 8 bits, or x 256 of 4
 * bits, behind which the slice has its groups' scales and zero points, a word each. A block has
 * whole tiles, one after another in memory, and each of its warps a run of their slices. int8 and
 * e4m3: behind the matrix a scale a row, in fp32.
 *
 * Tensor cores multiply 8 columns of inputs at the price of one. The first is the input rounded to
 * bf16, the second what that rounding left: together 16 bits of it, for nothing.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_WEIGHTS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_WEIGHTS_CUH_

#include "solutions/10_llama2_decoder/steps/d8_run.cuh"
#include "solutions/13_low_bit/decoder/low_bit_layout.h"
#include "solutions/13_low_bit/steps/multiply_unit.cuh"

/* Floats of shared memory between the sums of neighbouring segments: a segment is the part of a
 * tile that one warp has. */
enum { LOW_BIT_SEGMENT = LOW_BIT_TILE_ROWS };

static __device__ __forceinline__ unsigned read_shared_word(unsigned address) {
    unsigned x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
    return x;
}

/* The block's input in shared memory: of each 32 columns 64 bytes of bf16, then 64 bytes of what
 * rounding left. Lanes of the even rows of the fragment read the first, of odd rows the second. */
struct split_input {
    unsigned address; /* of the lane */

    __device__ __forceinline__ uint4 operator()(int, unsigned column) const {
        return read_shared(address + column * 4);
    }
};

/* Weights of TYPE in groups of GROUP columns, 0: by row, whose scales are of type S. */
template <enum low_bit_type TYPE, int GROUP, typename S> struct low_bit_weights {
    typedef form<TYPE, GROUP, S, 1, 1, ONE_WARPS, 1> F;
    typedef __nv_bfloat16 embedding;
    typedef struct key8 cache;
    static constexpr unsigned COLUMNS = 2 * F::UNIT; /* of a slice */

    static_assert(ONE_STAGE_BYTES == LOW_BIT_SLICE_VALUES + 2 * F::GROUPS * 64, "ONE_FORM");

    static __device__ __forceinline__ unsigned rows_of_tile(unsigned kind) {
        return kind == ONE_GATE ? LOW_BIT_TILE_ROWS / 2 : LOW_BIT_TILE_ROWS;
    }

    static __device__ __forceinline__ unsigned tiles_of(const struct one_arguments &p,
                                                        unsigned kind) {
        return kind == ONE_UP
                   ? 0
                   : (::outputs_of(p, kind) + rows_of_tile(kind) - 1) / rows_of_tile(kind);
    }

    /* A "row" is a tile. */
    static __device__ __forceinline__ struct share share_of(const struct one_arguments &p,
                                                            unsigned kind) {
        struct share s = rows_of_block(tiles_of(p, kind));
        s.slices = (inputs_of(p, kind) + COLUMNS - 1) / COLUMNS;
        s.row_bytes = s.slices * ONE_STAGE_BYTES;
        s.slice_step = 1;
        s.byte_step = ONE_STAGE_BYTES;
        return s;
    }

    /* The first slice of a warp's run. */
    static __device__ __forceinline__ unsigned run_begin(const struct share &s, unsigned warp) {
        return s.rows * s.slices * warp / ONE_WARPS;
    }

    static __device__ __forceinline__ struct warp_slices slices_of(const struct share &s,
                                                                   unsigned warp) {
        unsigned first = run_begin(s, warp);
        return {run_begin(s, warp + 1) - first, first % s.slices, (size_t)first * ONE_STAGE_BYTES};
    }

    static __device__ __forceinline__ void store_four(struct block_state *b, unsigned i, float4 x,
                                                      unsigned) {
        const __nv_bfloat16 type = {};
        unsigned char *to = (unsigned char *)b->x + i / 8 * 128 + i % 8 * 8;
        uint2 high = make_uint2(pack(x.x, x.y, type), pack(x.z, x.w, type));
        float2 first = unpack(high.x, type), second = unpack(high.y, type);
        *(uint2 *)to = high;
        *(uint2 *)(to + 64) = make_uint2(pack(x.x - first.x, x.y - first.y, type),
                                         pack(x.z - second.x, x.w - second.y, type));
    }

    /* Zeros up to a whole slice, whose weights are zeros there, too. */
    static __device__ __forceinline__ void store_padding(struct block_state *b, unsigned K) {
        unsigned end = (K + COLUMNS - 1) / COLUMNS * COLUMNS;
        for (unsigned i = K / 4 + threadIdx.x; i < end / 4; i += ONE_THREADS) {
            store_four(b, i, make_float4(0, 0, 0, 0), K);
        }
    }

    /* A unit of a slice, with its scales. */
    static __device__ __forceinline__ void read_unit(struct unit_registers<F> &u, unsigned stage,
                                                     unsigned unit) {
        unsigned lane = threadIdx.x % 32;
        u.values[0][0] = read_shared(stage + unit * 1024 + lane * 16);
        u.values[0][1] = read_shared(stage + unit * 1024 + 512 + lane * 16);
#pragma unroll
        for (int i = 0; i < F::GROUPS; i++) {
            unsigned entry =
                stage + LOW_BIT_SLICE_VALUES + (unit * F::GROUPS + (unsigned)i) * 64 + lane / 4 * 4;
            u.scales[0][i][0] = read_shared_word(entry);
            u.scales[0][i][1] = read_shared_word(entry + 32);
        }
    }

    /* The warp's run of slices, to sums of 16 rows a segment: segment tile + warp, where tiles
     * count from the block's first. */
    static __device__ __forceinline__ float *multiply(struct pipeline *pipe,
                                                      const struct block_state *b, unsigned kind,
                                                      float *sums, unsigned held_back,
                                                      const struct one_arguments &p) {
        const struct share *share = &pipe->plan->shares[kind];
        const struct warp_slices *own = warp_slices_of(pipe->plan, kind);
        unsigned count = own->count, slice = own->slice, slices = share->slices;
        unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        if (share->rows == 0) {
            return sums;
        }
        float *to = sums + (run_begin(*share, warp) / slices + warp) * LOW_BIT_SEGMENT + lane / 4;
        if (count == 0 &&
            lane % 4 == 0) { /* nothing of its segment, which is added up all the same */
            to[0] = to[8] = 0.0f;
        }
        const struct split_input in = {shared_address(b->x) + (lane / 4 & 1) * 64 + lane % 4 * 16};
        float sum[1][1][4] = {};
        for (unsigned i = 0; i < count; i++) {
            unsigned stage = pipeline_wait(pipe);
            struct unit_registers<F> u[2];
            read_unit(u[0], stage, 0);
            read_unit(u[1], stage, 1);
            pipeline_release(pipe, i + held_back >= count, p);
            multiply_unit<F>(sum, u[0], in, 2 * slice);
            multiply_unit<F>(sum, u[1], in, 2 * slice + 1);
            if (++slice == slices || i + 1 == count) {
                if (lane % 4 == 0) { /* the lane with the first two columns */
                    to[0] = sum[0][0][0] + sum[0][0][1];
                    to[8] = sum[0][0][2] + sum[0][0][3];
                }
                to += LOW_BIT_SEGMENT;
                slice = 0;
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sum[0][0][j] = 0.0f;
                }
            }
        }
        return sums;
    }

    static __device__ __forceinline__ struct outputs
    own_outputs(const struct pipeline *pipe, unsigned kind, const struct one_arguments &p) {
        const struct share *share = &pipe->plan->shares[kind];
        unsigned rows = rows_of_tile(kind), N = ::outputs_of(p, kind);
        unsigned first = share->first * rows, end = first + share->rows * rows;
        return {first, (end < N ? end : N) - first};
    }

    /* What a thread finds out about its output while the product is under way: its scale, of a gate
     * and of its up; the segments that are added up, and its row in them. */
    struct scales {
        float first, second;
        unsigned begin, end; /* floats of b->sums */
    };

    static __device__ __forceinline__ struct scales scales_of(const struct pipeline *pipe,
                                                              const struct block_state *b,
                                                              unsigned kind, unsigned i,
                                                              const struct one_arguments &p) {
        const struct share *share = &pipe->plan->shares[kind];
        unsigned rows = rows_of_tile(kind), tile = i / rows, row = i % rows;
        unsigned slices = share->slices, all = share->rows * slices;
        struct scales s = {1.0f, 1.0f, 0, 0};
        if (i >= own_outputs(pipe, kind, p).count) {
            return s;
        }
        /* the warp of slice n is the last one whose run begins at or before n */
        s.begin = tile + ((tile * slices + 1) * ONE_WARPS - 1) / all;
        s.end = tile + ((tile + 1) * slices * ONE_WARPS - 1) / all + 1;
        s.begin = s.begin * LOW_BIT_SEGMENT + row;
        s.end = s.end * LOW_BIT_SEGMENT + row;
        if (GROUP == 0) {
            const void *matrix =
                kind == ONE_CLASSIFIER ? p.classifier : pipe->plan->layers[b->layer].streams[kind];
            const float *scales = (const float *)((const char *)matrix +
                                                  (size_t)tiles_of(p, kind) * share->row_bytes);
            scales += ((size_t)share->first + tile) * LOW_BIT_TILE_ROWS + row;
            s.first = __ldg(scales);
            s.second = kind == ONE_GATE ? __ldg(scales + rows) : 1.0f;
        }
        return s;
    }

    /* The sum over the warps that have parts of a row. @param offset of the row */
    static __device__ __forceinline__ float sum_of(const struct block_state *b,
                                                   const struct scales &s, unsigned offset) {
        float sum = 0.0f;
#pragma unroll 4
        for (unsigned at = s.begin; at < s.end; at += LOW_BIT_SEGMENT) {
            sum += b->sums[at + offset];
        }
        return sum * b->rstd;
    }

    static __device__ __forceinline__ float product_of(const struct pipeline *,
                                                       const struct block_state *b, unsigned,
                                                       unsigned, const struct scales &s) {
        return sum_of(b, s, 0) * s.first;
    }

    static __device__ __forceinline__ float2 gate_and_up(const struct pipeline *,
                                                         const struct block_state *b, unsigned,
                                                         const struct scales &s) {
        return make_float2(sum_of(b, s, 0) * s.first,
                           sum_of(b, s, LOW_BIT_TILE_ROWS / 2) * s.second);
    }
};

#endif
