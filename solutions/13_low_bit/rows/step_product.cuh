/**
 * @file step_product.cuh
 * @brief A product of the step: a block's tiles times eight texts, and what becomes of the results.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_

#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/13_low_bit/rows/step_multiply.cuh"

/* A block's shared memory beside its pipelines. */
struct step_shared {
    float *sums;      /* (2, STEP_BATCH, STEP_WARPS, STEP_OUTPUTS): of batches in turn */
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
    for (unsigned w = 0; w < warps; w++) {
        sum += squares[w * ROWS + text];
    }
    return rsqrtf(sum / (float)p.C + p.eps);
}

/* The warp's tiles of a batch times its chunks, to the batch's sums. */
template <typename W>
static __device__ __forceinline__ float
multiply_batch(const struct step_shared &s, struct slice_pipeline *pipe, const struct step_call &c,
               const struct step_product &m, const struct warp_part &part, unsigned batch,
               struct input_chunk *in, unsigned *left, const struct step_arguments &p) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *sums = s.sums + s.batches % 2 * (STEP_BATCH * STEP_WARPS * STEP_OUTPUTS);
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
            squares += load_chunk<W>(in, reads_of_chunk(c.in, chunk, m.K, p.rows), c.in_flag, norm,
                                     pipe, p);
        }
#pragma unroll 1
        for (unsigned tile = batch; tile < part.tiles && tile < batch + STEP_BATCH; tile++) {
            float *to = sums + ((tile - batch) * STEP_WARPS + warp) * STEP_OUTPUTS + lane;
            float x[4] = {};
            multiply_chunk<W>(x, pipe, *in, slices, *left, p);
            *left -= slices < W::OF_CHUNK ? slices : W::OF_CHUNK;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                to[i * 32] = chunk == part.first_chunk ? x[i] : to[i * 32] + x[i];
            }
        }
    }
    return squares;
}

/* What becomes of output e of the block's tile number `tile`. @param x the product, scaled
   @param up of a gate its up */
static __device__ __forceinline__ void finish_output(const struct step_shared &s,
                                                     const struct step_call &c,
                                                     const struct step_product &m, unsigned first,
                                                     unsigned tile, unsigned e, float x, float up,
                                                     const struct step_arguments &p) {
    const struct output_place at = place_of_output(e);
    unsigned of_tile = c.kind == LOW_BIT_GATE_UP ? LOW_BIT_TILE_ROWS / 2 : LOW_BIT_TILE_ROWS;
    unsigned n = (first + tile) * of_tile + at.row;
    if (n >= m.N || at.text >= p.rows) {
        return;
    }
    if (c.kind == LOW_BIT_CLASSIFIER) {
        p.logits[(size_t)at.text * m.N + n] = x;
    } else if (c.kind == LOW_BIT_QKV) {
        publish(c.out, (size_t)at.text * m.N + n, x, c.out_flag);
    } else if (c.kind == LOW_BIT_GATE_UP) {
        publish(c.out, input_place(at.text, n), silu_of(x) * up, c.out_flag);
    } else {
        float *residual = s.residual + tile * STEP_OUTPUTS + e;
        x += *residual;
        *residual = x;
        publish(c.out, input_place(at.text, n), x, c.out_flag);
    }
}

/* Adds up the warps of a group. @param sums of its first warp */
static __device__ __forceinline__ float sum_group(const float *sums, unsigned warps) {
    float x = 0.0f;
#pragma unroll 4
    for (unsigned w = 0; w < warps; w++) {
        x += sums[w * STEP_OUTPUTS];
    }
    return x;
}

/* The scale of the thread's row of a tile. */
template <typename W>
static __device__ __forceinline__ float row_scale(const struct step_call &c, unsigned tile,
                                                  unsigned row) {
    return W::GROUP == 0 ? __ldg((const float *)c.rows + (size_t)tile * LOW_BIT_TILE_ROWS + row)
                         : 1.0f;
}

/* The outputs of a batch: a thread has one of every fourth tile. */
template <typename W>
static __device__ __forceinline__ void
finish_batch(const struct step_shared &s, const struct step_call &c, const struct step_product &m,
             const struct tile_range &own, unsigned batch, float rstd,
             const struct step_arguments &p) {
    const float *sums = s.sums + s.batches % 2 * (STEP_BATCH * STEP_WARPS * STEP_OUTPUTS);
    unsigned e = threadIdx.x % STEP_OUTPUTS, row = place_of_output(e).row;
    unsigned warps = smaller(m.warps, m.chunks);
    bool gate = c.kind == LOW_BIT_GATE_UP;
    if (gate && e >= STEP_OUTPUTS / 2) {
        return;
    }
    for (unsigned i = threadIdx.x / STEP_OUTPUTS; i < STEP_BATCH * m.groups;
         i += STEP_THREADS / STEP_OUTPUTS) {
        unsigned tile = batch * m.groups + i;
        if (tile < own.count) {
            const float *from =
                sums + (i / m.groups * STEP_WARPS + i % m.groups * m.warps) * STEP_OUTPUTS + e;
            float x = sum_group(from, warps) * rstd * row_scale<W>(c, own.first + tile, row),
                  up = 0;
            if (gate) {
                up = sum_group(from + STEP_OUTPUTS / 2, warps) * rstd *
                     row_scale<W>(c, own.first + tile, row + LOW_BIT_TILE_ROWS / 2);
            }
            finish_output(s, c, m, own.first, tile, e, x, up, p);
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
    struct input_chunk in;
    float rstd = 1.0f;
    unsigned left = 0;
    for (unsigned chunk = part.first_chunk; chunk < m.chunks; chunk += m.warps) {
        left += part.tiles * smaller(m.slices - chunk * W::OF_CHUNK, W::OF_CHUNK);
    }
#pragma unroll 1
    for (unsigned batch = 0; batch * m.groups < own.count; batch += STEP_BATCH) {
        float squares = 0.0f;
        if (batch < part.tiles) {
            squares = multiply_batch<W>(*s, pipe, c, m, part, batch, &in, &left, p);
        }
        if (batch == 0 && c.norm != NULL) {
            store_squares(of_block, squares);
        }
        __syncthreads();
        if (batch == 0 && c.norm != NULL) {
            rstd = rstd_of(of_block, smaller(m.warps, m.chunks),
                           place_of_output(threadIdx.x % STEP_OUTPUTS).text, p);
        }
        finish_batch<W>(*s, c, m, own, batch, rstd, p);
        s->batches++;
    }
}

#endif
