/**
 * @file low_bit_tiles.cuh
 * @brief d8's products with weights of 8 and 4 bits: how a matrix is shared by blocks and warps.
 *
 * A matrix is tiles of 16 rows; of gate and up together, 8 rows of each. A tile is slices of 2048
 * bytes of weights: 16 rows x 128 columns of 8 bits, or x 256 of 4 bits, behind which the slice has
 * its groups' scales and zero points, a word each. A block has whole tiles, one after another in
 * memory, and each of its warps a run of their slices. int8 and e4m3: behind the matrix a scale a
 * row, in fp32. How a warp multiplies a slice is the matter of e4m3_weights.cuh and
 * integer_weights.cuh.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_TILES_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_TILES_CUH_

#include "solutions/10_llama2_decoder/steps/d8_run.cuh"
#include "solutions/13_low_bit/decoder/low_bit_layout.h"

/* Floats of shared memory between the sums of neighbouring segments: a segment is the part of a
 * tile that one warp has. */
enum { LOW_BIT_SEGMENT = LOW_BIT_TILE_ROWS };

/* Weights of type W, whose slices have COLUMNS columns. W has
 *
 *     slice                     the registers of a slice
 *     read(slice, stage)        reads one, with its scales, from shared memory
 *     input                     where a lane finds the block's input
 *     sums                      a lane's part of the sums of a tile, zeros at first
 *     multiply_slice(sums, slice, input, i)  adds slice i of a tile times its columns of the input
 *     row_sums(sums)            sums of the lane's two rows, in the lanes that divide by 4
 *
 * @param BY_ROW whether scales are by row */
template <typename W, unsigned COLUMNS_, bool BY_ROW> struct low_bit_tiles {
    typedef __nv_bfloat16 embedding;
    typedef struct key8 cache;
    static constexpr unsigned COLUMNS = COLUMNS_; /* of a slice */

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
        float *to = sums +
                    (small_quotient(run_begin(*share, warp), slices) + warp) * LOW_BIT_SEGMENT +
                    lane / 4;
        if (count == 0 &&
            lane % 4 == 0) { /* nothing of its segment, which is added up all the same */
            to[0] = to[8] = 0.0f;
        }
        const typename W::input in = W::input_of(b);
        typename W::sums sum = {};
        for (unsigned i = 0; i < count; i++) {
            typename W::slice weights;
            W::read(weights, pipeline_wait(pipe));
            pipeline_release(pipe, i + held_back >= count, p);
            W::multiply_slice(sum, weights, in, slice);
            if (++slice == slices || i + 1 == count) {
                float2 of_rows = W::row_sums(sum);
                if (lane % 4 == 0) {
                    to[0] = of_rows.x;
                    to[8] = of_rows.y;
                }
                to += LOW_BIT_SEGMENT;
                slice = 0;
                sum = {};
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
        unsigned rows = rows_of_tile(kind), tile = rows == 8 ? i / 8 : i / LOW_BIT_TILE_ROWS;
        unsigned row = i - tile * rows;
        unsigned slices = share->slices, all = share->rows * slices;
        struct scales s = {1.0f, 1.0f, 0, 0};
        if (i >= own_outputs(pipe, kind, p).count) {
            return s;
        }
        /* the warp of slice n is the last one whose run begins at or before n */
        s.begin = tile + small_quotient((tile * slices + 1) * ONE_WARPS - 1, all);
        s.end = tile + small_quotient((tile + 1) * slices * ONE_WARPS - 1, all) + 1;
        s.begin = s.begin * LOW_BIT_SEGMENT + row;
        s.end = s.end * LOW_BIT_SEGMENT + row;
        if (BY_ROW) {
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
        enum { AT_ONCE = 8 };
        float sum[2] = {};
#pragma unroll 1
        for (unsigned at = s.begin; at < s.end; at += AT_ONCE * LOW_BIT_SEGMENT) {
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++) {
                unsigned segment = at + i * LOW_BIT_SEGMENT;
                sum[i % 2] += segment < s.end ? b->sums[segment + offset] : 0.0f;
            }
        }
        return (sum[0] + sum[1]) * b->rstd;
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
