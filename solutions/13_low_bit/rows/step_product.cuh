/**
 * @file step_product.cuh
 * @brief A product of the step: a block's tiles times eight texts, and what becomes of the results.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_

#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/13_low_bit/rows/step_multiply.cuh"

enum { FINISH_WARPS = 8 }; /* that finish a tile */

/* A block's shared memory beside its pipelines. */
struct step_shared {
    float *sums;      /* (2, BATCH, STEP_WARPS, STEP_OUTPUTS): of batches in turn */
    float *norms;     /* (STEP_WARPS, STEP_CHUNK) */
    float *squares;   /* (2, STEP_WARPS, ROWS): sums of squares of a warp's chunks, second: of the
                         feed-forward network's input */
    float *residual;  /* (block's tiles of C, STEP_OUTPUTS): the residual stream, unrounded */
    unsigned batches; /* made: which of the two buffers comes next; all threads have it */
};

/* A thread's output of a tile: e = i * 32 + lane is element i of that lane's accumulator. */
struct output_place {
    unsigned row, text;
};

static __device__ __forceinline__ struct output_place place_of_output(unsigned e) {
    return {e % 32 / 4 + e / 64 * 8, e % 4 * 2 + e / 32 % 2};
}

/* A product under way. */
struct step_call {
    unsigned kind, layer;
    struct flagged_mailbox in, out; /* out: none of the classifier */
    unsigned in_flag, out_flag;
    const float *norm;         /* of the input; NULL: none */
    const unsigned char *rows; /* the matrix' scales of rows */
};

/* A warp's squares, added up over the lanes that share a text. */
static __device__ __forceinline__ void store_squares(float *to, float squares) {
    squares += __shfl_xor_sync(~0u, squares, 1);
    squares += __shfl_xor_sync(~0u, squares, 2);
    if (threadIdx.x % 4 == 0) {
        to[threadIdx.x / 32 * ROWS + threadIdx.x % 32 / 4] = squares;
    }
}

/* 1 / RMS of the thread's text. */
static __device__ __forceinline__ float rstd_of(const float *squares, unsigned warps, unsigned text,
                                                const struct step_arguments &p) {
    float sum = 0.0f;
#pragma unroll
    for (unsigned w = 0; w < STEP_WARPS; w++) {
        sum += w < warps ? squares[w * ROWS + text] : 0.0f;
    }
    return rsqrtf(sum / (float)p.C + p.eps);
}

/* The warp's tiles of a batch times its chunks, to the batch's sums. */
template <typename W>
static __device__ __forceinline__ float
multiply_batch(const struct step_shared &s, struct slice_pipeline *pipe, const struct step_call &c,
               const struct step_product &m, const struct warp_part &part, unsigned batch,
               struct input_chunk *in, const struct step_arguments &p) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_OUTPUTS);
    bool once = part.first_chunk + m.warps >= m.chunks; /* the chunk stays from batch to batch */
    float squares = 0.0f;
#pragma unroll 1
    for (unsigned chunk = part.first_chunk; chunk < m.chunks; chunk += m.warps) {
        unsigned slices = m.slices - chunk * W::OF_CHUNK;
        if (batch == 0 || !once) {
            float *norm = c.norm != NULL ? s.norms + warp * STEP_CHUNK : NULL;
            if (norm != NULL) {
                stage_norm(norm, c.norm, chunk, m.K);
            }
            squares += load_chunk(in, reads_of_chunk(c.in, chunk, m.K, p.rows), c.in_flag, norm);
        }
#pragma unroll 1
        for (unsigned tile = batch; tile < part.tiles && tile < batch + W::BATCH; tile++) {
            float *to = sums + ((tile - batch) * STEP_WARPS + warp) * STEP_OUTPUTS + lane;
            float x[4] = {};
            multiply_chunk<W>(x, pipe, *in, slices, p);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                to[i * 32] = chunk == part.first_chunk ? x[i] : to[i * 32] + x[i];
            }
        }
    }
    return squares;
}

/* A thread's part of finishing a tile, for which 8 warps are there: half of the partial sums of an
 * output. A gate's lane and its up's are eight apart, those of two rows that are a pair four. */
struct finish_place {
    unsigned e, half;
};

static __device__ __forceinline__ struct finish_place finish_place() {
    unsigned lane = threadIdx.x % 32, q = threadIdx.x / 32 % FINISH_WARPS;
    unsigned row = q % 2 + lane / 4 % 2 * 2 + q / 2 % 2 * 4;
    return {lane / 8 % 2 * (STEP_OUTPUTS / 2) + q / 4 * 32 + row * 4 + lane % 4, lane / 16};
}

/* What becomes of output e of the block's tile number `tile`. All lanes of a warp execute it.
   @param x the product, scaled */
static __device__ __forceinline__ void
finish_output(const struct step_shared &s, const struct step_call &c, const struct step_product &m,
              unsigned first, unsigned tile, unsigned e, float x, const struct step_arguments &p) {
    const struct output_place at = place_of_output(e);
    bool gate = c.kind == LOW_BIT_GATE_UP;
    unsigned of_tile = gate ? LOW_BIT_TILE_ROWS / 2 : LOW_BIT_TILE_ROWS;
    unsigned n = (first + tile) * of_tile + at.row;
    bool valid = n < m.N && at.text < p.rows && at.row < of_tile && threadIdx.x % 32 < 16;
    if (c.kind == LOW_BIT_CLASSIFIER || c.kind == LOW_BIT_QKV) {
        size_t i = (size_t)at.text * m.N + n;
        if (valid && c.kind == LOW_BIT_QKV) {
            publish(c.out, i, x, c.out_flag);
        } else if (valid) {
            p.logits[i] = x;
        }
        return;
    }
    float *residual = s.residual + tile * STEP_OUTPUTS + e, up = __shfl_xor_sync(~0u, x, 8);
    if (gate) {
        x = silu_of(x) * up;
    } else if (valid) {
        x += *residual;
        *residual = x;
    }
    float second = __shfl_xor_sync(~0u, x, 4);
    if (valid && at.row % 4 < 2) {
        publish_pair(c.out, at.text, n, x, second, c.out_flag);
    }
}

/* Adds up half of a group's warps, of which there are at most STEP_WARPS. @param sums of its first
 * one */
static __device__ __forceinline__ float sum_half(const float *sums, unsigned warps, unsigned half) {
    float x[2] = {};
#pragma unroll
    for (unsigned w = 0; w < STEP_WARPS / 2; w++) {
        x[w % 2] += 2 * w + half < warps ? sums[(2 * w + half) * STEP_OUTPUTS] : 0.0f;
    }
    return x[0] + x[1];
}

/* The scale of the thread's row of a tile, of which there may be none. */
template <typename W>
static __device__ __forceinline__ float
row_scale(const struct step_call &c, const struct step_product &m, unsigned tile, unsigned row) {
    return W::GROUP == 0 && tile < m.tiles
               ? __ldg((const float *)c.rows + (size_t)tile * LOW_BIT_TILE_ROWS + row)
               : 1.0f;
}

/* The outputs of a batch. @param scale of the thread's row of its first tile */
template <typename W>
static __device__ __forceinline__ void
finish_batch(const struct step_shared &s, const struct step_call &c, const struct step_product &m,
             const struct tile_range &own, unsigned batch, float rstd, float scale,
             const struct step_arguments &p) {
    const float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_OUTPUTS);
    const struct finish_place at = finish_place();
    unsigned row = place_of_output(at.e).row, warps = smaller(m.warps, m.chunks);
    unsigned first = threadIdx.x / 32 / FINISH_WARPS;
    for (unsigned i = first; i < W::BATCH * m.groups; i += STEP_WARPS / FINISH_WARPS) {
        unsigned tile = batch * m.groups + i;
        if (tile < own.count) {
            const float *from =
                sums + (i / m.groups * STEP_WARPS + i % m.groups * m.warps) * STEP_OUTPUTS + at.e;
            float x = sum_half(from, warps, at.half) * rstd;
            x *= i == first ? scale : row_scale<W>(c, m, own.first + tile, row);
            x += __shfl_xor_sync(~0u, x, 16);
            finish_output(s, c, m, own.first, tile, at.e, x, p);
        }
    }
}

/* All of the block's tiles of a matrix. */
template <typename W>
static __device__ __forceinline__ void
multiply_matrix(struct step_shared *s, struct slice_pipeline *pipe, const struct step_call &c,
                const struct step_arguments &p) {
    const struct step_product &m = p.products[c.kind];
    const struct tile_range own = own_tiles(m.tiles);
    const struct warp_part part = part_of(m);
    float *of_block = s->squares + (c.kind == LOW_BIT_GATE_UP ? STEP_WARPS * ROWS : 0);
    const struct output_place at = place_of_output(finish_place().e);
    unsigned first = threadIdx.x / 32 / FINISH_WARPS; /* of the batch's tiles, to be finished */
    struct input_chunk in;
    float rstd = 1.0f;
#pragma unroll 1
    for (unsigned batch = 0; batch * m.groups < own.count; batch += W::BATCH) {
        float squares = 0.0f;
        float scale = row_scale<W>(c, m, own.first + batch * m.groups + first, at.row);
        if (batch < part.tiles) {
            squares = multiply_batch<W>(*s, pipe, c, m, part, batch, &in, p);
        }
        if (batch == 0 && c.norm != NULL) {
            store_squares(of_block, squares);
        }
        __syncthreads();
        if (batch == 0 && c.norm != NULL) {
            rstd = rstd_of(of_block, smaller(m.warps, m.chunks), at.text, p);
        }
        finish_batch<W>(*s, c, m, own, batch, rstd, scale, p);
        s->batches++;
    }
}

#endif
