/**
 * @file step_product.cuh
 * @brief A product of the step: a block's tiles times eight texts.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_

#include "solutions/13_low_bit/rows/step_epilogue.cuh"

/* Adds a warp's squares of text lane / 4. */
static __device__ __forceinline__ void add_squares(float *to, float squares, bool first) {
    if (threadIdx.x % 4 == 0) {
        float *sum = to + lane_row() * STEP_WARPS + threadIdx.x / 32;
        *sum = first ? squares : *sum + squares;
    }
}

/* The chunk of a product's input, with all that it takes. @param first the warp's first one
 * @param adds_squares not in later batches, during which others read them */
template <typename W>
static __device__ __forceinline__ void
enter_chunk(const struct step_shared &s, unsigned number, unsigned steps, unsigned chunk,
            bool first, bool adds_squares, struct input_chunk *in, const struct step_arguments &p) {
    const struct step_input from = input_of(number, steps, p);
    unsigned warp = threadIdx.x / 32, kind = kind_of(number, p);
    unsigned tiles = product_of(s, LOW_BIT_OUT).all.tiles;
    bool adds = has_norm(kind) && adds_squares;
    uint4 squares;
    if (adds) {
        squares = read_squares(p.squares, chunk);
    }
    load_chunk(in, reads_of_chunk(from.from, chunk, product_of(s, kind).all.K, p.rows), from.flag);
    if (adds) {
        add_squares(squares_of(s, kind), sum_squares(squares, p.squares, chunk, tiles, from.flag),
                    first);
    }
    sum_inputs<W>(s.inputs + warp * (W::PARTS * ROWS), in);
}

/* The sums of a warp without a chunk. */
template <typename W>
static __device__ __forceinline__ void clear_sums(float *sums, unsigned warp) {
#pragma unroll 1
    for (unsigned tile = 0; tile < W::BATCH; tile++) {
        float4 *to = (float4 *)(sums + (tile * STEP_WARPS + warp) * STEP_OUTPUTS);
        to[threadIdx.x % 32] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
}

/* Whether a warp has several chunks of a matrix and two tiles; of groups of 128 without a norm. */
template <typename W>
static __device__ __forceinline__ bool has_two_tiles(const struct block_product &m,
                                                     const struct warp_part &part, unsigned kind) {
    return W::GROUP == 128 && !has_norm(kind) && part.tiles == 2 &&
           part.first_chunk + warps_of_group(m.all) < m.all.chunks;
}

/* sums += half of the slices of a chunk, one of each of the warp's tiles, times the chunk. */
template <typename W>
static __device__ __forceinline__ void
multiply_halves(float sums[2][4], struct slice_pipeline *pipe, const unsigned stages[2],
                const struct input_chunk &in, const float *inputs, unsigned half) {
    struct half_slice<W> halves[2];
#pragma unroll
    for (unsigned tile = 0; tile < 2; tile++) {
        halves[tile] = read_half<W>(stages[tile], half);
        if (half == 1) {
            release_slice<W>(pipe);
        }
    }
    const struct half_product<W> products[2] = {
        {sums[0], halves, (int)half}, {
            sums[1], halves + 1, (int)half
        }
    };
    multiply_group_128<W>(products[0], in);
    multiply_group_128<W>(products[1], in);
}

/* The warp's two tiles times its chunks: each half of the next chunk is on its way as soon as that
 * of this one has been multiplied. */
template <typename W>
static __device__ __forceinline__ void
multiply_two_tiles(const struct step_shared &s, struct slice_pipeline *pipe, unsigned number,
                   unsigned steps, const struct step_product &m, const struct warp_part &part,
                   float *sums, struct input_chunk *in, const struct step_arguments &p) {
    const struct step_input input = input_of(number, steps, p);
    unsigned warp = threadIdx.x / 32, warps = warps_of_group(m);
    float *inputs = s.inputs + warp * (W::PARTS * ROWS);
    float x[2][4] = {};
    ask_for_reads<0, STEP_READS>(in, reads_of_chunk(input.from, part.first_chunk, m.K, p.rows),
                                 input.flag);
#pragma unroll 1
    for (unsigned chunk = part.first_chunk; chunk < m.chunks; chunk += warps) {
        const struct chunk_reads next = reads_of_chunk(input.from, chunk + warps, m.K, p.rows);
        wait_for_chunk(in, reads_of_chunk(input.from, chunk, m.K, p.rows), input.flag);
        sum_inputs<W>(inputs, in);
        const unsigned stages[2] = {wait_for_slice<W>(pipe), wait_for_slice<W>(pipe, 1)};
        multiply_halves<W>(x, pipe, stages, *in, inputs, 0);
        ask_for_reads<0, STEP_READS / 2>(in, next, input.flag);
        multiply_halves<W>(x, pipe, stages, *in, inputs, 1);
        ask_for_reads<STEP_READS / 2, STEP_READS>(in, next, input.flag);
    }
#pragma unroll
    for (unsigned tile = 0; tile < 2; tile++) {
        float4 *to = (float4 *)(sums + (tile * STEP_WARPS + warp) * STEP_OUTPUTS);
        to[threadIdx.x % 32] = make_float4(x[tile][0], x[tile][1], x[tile][2], x[tile][3]);
    }
}

/* The warp's tiles of a batch times its chunks, to the batch's sums. */
template <typename W>
static __device__ __forceinline__ void
multiply_batch(const struct step_shared &s, struct slice_pipeline *pipe, unsigned number,
               unsigned steps, unsigned batch, struct input_chunk *in,
               const struct step_arguments &p) {
    const struct block_product product = product_of(s, kind_of(number, p));
    const struct step_product &m = product.all;
    const struct warp_part part = part_of(product);
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = warps_of_group(m);
    float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_OUTPUTS);
    if (part.first_chunk >= m.chunks) {
        clear_sums<W>(sums, warp);
    }
    if (batch >= part.tiles) {
        return;
    }
    if constexpr (W::GROUP == 128) {
        if (has_two_tiles<W>(product, part, kind_of(number, p))) {
            multiply_two_tiles<W>(s, pipe, number, steps, m, part, sums, in, p);
            return;
        }
    }
    bool once = part.first_chunk + warps >= m.chunks; /* the chunk stays from batch to batch */
#pragma unroll 1
    for (unsigned chunk = part.first_chunk; chunk < m.chunks; chunk += warps) {
        unsigned slices = m.slices - chunk * W::OF_CHUNK;
        if (batch == 0 || !once) {
            enter_chunk<W>(s, number, steps, chunk, chunk == part.first_chunk,
                           batch == 0 && part.group == 0, in, p);
        }
#pragma unroll 1
        for (unsigned tile = batch; tile < part.tiles && tile < batch + W::BATCH; tile++) {
            unsigned slot = (tile - batch) * STEP_WARPS + warp;
            float4 *to = (float4 *)(sums + slot * STEP_OUTPUTS) + lane;
            float x[4] = {};
            if (chunk != part.first_chunk) {
                const float4 before = *to;
                x[0] = before.x, x[1] = before.y, x[2] = before.z, x[3] = before.w;
            }
            multiply_chunk<W>(x, pipe, *in, s.inputs + warp * (W::PARTS * ROWS), slices);
            *to = make_float4(x[0], x[1], x[2], x[3]);
        }
    }
}

/* All of the block's tiles of a matrix. */
template <typename W>
static __device__ __forceinline__ void
multiply_matrix(struct step_shared *s, struct slice_pipeline *pipe, unsigned number, unsigned steps,
                const struct step_arguments &p) {
    unsigned kind = kind_of(number, p);
    struct input_chunk in;
    load_norms(*s, number, p);
#pragma unroll 1
    for (unsigned batch = 0;; batch += W::BATCH) {
        const struct block_product m = product_of(*s, kind);
        unsigned skipped = batch << m.all.group_bits;
        if (skipped >= m.own.count) {
            break;
        }
        float2 scales = make_float2(1.0f, 1.0f);
        unsigned tile = skipped + finished_tile(*s);
        if (tile < m.own.count) {
            scales = row_scales<W>(output_of<W>(number, steps, *s, p), m.own.first + tile);
        }
        multiply_batch<W>(*s, pipe, number, steps, batch, &in, p);
        __syncthreads();
        finish_batch<W>(*s, output_of<W>(number, steps, *s, p), batch, scales, p);
        s->batches++;
    }
}

#endif
