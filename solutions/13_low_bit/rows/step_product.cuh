/**
 * @file step_product.cuh
 * @brief A product of the step: a block's tiles times eight texts, and what becomes of the results.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_

#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/13_low_bit/rows/step_multiply.cuh"

enum {
    FINISH_WARPS = 4, /* that finish a tile */
    /* floats of a warp's sums of a tile in shared memory: where rows from 8 on begin, so that the
     * reads of a finishing warp have banks of their own, and where the next warp's begin */
    STEP_SECOND_ROWS = STEP_OUTPUTS / 2 + 4,
    STEP_WARP_SUMS = STEP_OUTPUTS + 8
};

/* A block's shared memory beside its pipelines. */
struct step_shared {
    float *sums;     /* (2, BATCH, STEP_WARPS, STEP_WARP_SUMS): of batches in turn */
    float *inputs;   /* (STEP_WARPS, PARTS, ROWS): sums of inputs */
    uint4 *norms;    /* (STEP_WARPS, STEP_READS, 4) */
    float *squares;  /* (2, STEP_WARPS, ROWS): sums of squares of a warp's chunks, second: of the
                        feed-forward network's input */
    float *residual; /* (block's tiles of C, STEP_OUTPUTS): the residual stream, unrounded */
    const struct step_layer *layers;
    unsigned batches; /* made: which of the two buffers comes next; all threads have it */
};

/* A thread's output of a tile: e = i * 32 + lane is element i of that lane's accumulator. */
struct output_place {
    unsigned row, text;
};

static __device__ __forceinline__ struct output_place place_of_output(unsigned e) {
    return {e % 32 / 4 + e / 64 * 8, e % 4 * 2 + e / 32 % 2};
}

/* ---- Product number `i` of the step: four a layer, then the classifier ---- */

static __device__ __forceinline__ unsigned kind_of(unsigned i, const struct step_arguments &p) {
    return i == STEP_LAYER_KINDS * p.L ? (unsigned)LOW_BIT_CLASSIFIER : i % STEP_LAYER_KINDS;
}

/* Where a product's input is. */
struct step_input {
    struct flagged_mailbox from;
    unsigned flag;
    const float *norm; /* of the input; NULL: none */
};

static __device__ __forceinline__ struct step_input input_of(unsigned i, unsigned steps,
                                                             const struct step_layer *layers,
                                                             const struct step_arguments &p) {
    unsigned kind = kind_of(i, p), l = i / STEP_LAYER_KINDS;
    if (kind == LOW_BIT_OUT || kind == LOW_BIT_DOWN) {
        return {kind == LOW_BIT_OUT ? p.heads : p.hidden, layer_flag(steps, l, p), NULL};
    }
    bool gate = kind == LOW_BIT_GATE_UP;
    return {p.x, residual_flag(steps, 2 * l + (gate ? 1 : 0), p),
            kind == LOW_BIT_QKV ? layers[l].attention_norm
            : gate              ? layers[l].ffn_norm
                                : p.final_norm};
}

/* Where its results go. */
struct step_output {
    unsigned kind, flag;
    struct flagged_mailbox to; /* none of the classifier */
    const float *scales;       /* of the matrix' rows; int8 */
};

template <typename W>
static __device__ __forceinline__ struct step_output output_of(unsigned i, unsigned steps,
                                                               const struct step_layer *layers,
                                                               const struct step_arguments &p) {
    unsigned kind = kind_of(i, p), l = i / STEP_LAYER_KINDS;
    const struct step_product &m = p.products[kind];
    const unsigned char *matrix = layers[l].streams[kind == LOW_BIT_CLASSIFIER ? 0 : kind];
    struct step_output o = {};
    o.kind = kind;
    o.scales = (const float *)(matrix + (size_t)m.tiles * m.slices * W::BYTES);
    if (kind == LOW_BIT_OUT || kind == LOW_BIT_DOWN) {
        o.to = p.x;
        o.flag = residual_flag(steps, 2 * l + (kind == LOW_BIT_OUT ? 1 : 2), p);
    } else {
        o.to = kind == LOW_BIT_QKV ? p.qkv : p.hidden;
        o.flag = layer_flag(steps, l, p);
    }
    return o;
}

/* ---- Multiplying ---- */

/* Where output e is in a warp's sums. */
static __device__ __forceinline__ unsigned place_in_sums(unsigned e) {
    return e / (STEP_OUTPUTS / 2) * STEP_SECOND_ROWS + e % (STEP_OUTPUTS / 2);
}

/* A warp's sums of squares of the input of a product with a norm: (STEP_WARPS, ROWS). */
static __device__ __forceinline__ float *squares_of(const struct step_shared &s, unsigned kind) {
    return s.squares + (kind == LOW_BIT_GATE_UP ? STEP_WARPS * ROWS : 0);
}

/* Adds a warp's squares, over the lanes that share a text. */
static __device__ __forceinline__ void add_squares(float *to, float squares, bool first) {
    squares += __shfl_xor_sync(~0u, squares, 1);
    squares += __shfl_xor_sync(~0u, squares, 2);
    if (threadIdx.x % 4 == 0) {
        float *sum = to + threadIdx.x / 32 * ROWS + threadIdx.x % 32 / 4;
        *sum = first ? squares : *sum + squares;
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

/* The chunk of a product's input, with all that it takes. @param first the warp's first one
 * @param adds_squares not in later batches, during which others read them */
template <typename W>
static __device__ __forceinline__ void
enter_chunk(const struct step_shared &s, unsigned number, unsigned steps, unsigned chunk,
            bool first, bool adds_squares, struct input_chunk *in, const struct step_arguments &p) {
    const struct step_input from = input_of(number, steps, s.layers, p);
    unsigned warp = threadIdx.x / 32, kind = kind_of(number, p), K = p.products[kind].K;
    uint4 *norm = s.norms + warp * (STEP_READS * 4);
    if (from.norm != NULL) {
        stage_norm(norm, from.norm, chunk, K);
    }
    load_chunk(in, reads_of_chunk(from.from, chunk, K, p.rows), from.flag);
    if (from.norm != NULL) {
        float squares = apply_norm(in, norm);
        if (adds_squares) {
            add_squares(squares_of(s, kind), squares, first);
        }
    }
    sum_inputs<W>(s.inputs + warp * (W::PARTS * ROWS), *in);
}

/* The warp's tiles of a batch times its chunks, to the batch's sums. */
template <typename W>
static __device__ __forceinline__ void
multiply_batch(const struct step_shared &s, struct slice_pipeline *pipe, unsigned number,
               unsigned steps, const struct step_product &m, const struct warp_part &part,
               unsigned batch, struct input_chunk *in, const struct step_arguments &p) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_WARP_SUMS);
    bool once = part.first_chunk + m.warps >= m.chunks; /* the chunk stays from batch to batch */
#pragma unroll 1
    for (unsigned chunk = part.first_chunk; chunk < m.chunks; chunk += m.warps) {
        unsigned slices = m.slices - chunk * W::OF_CHUNK;
        if (batch == 0 || !once) {
            enter_chunk<W>(s, number, steps, chunk, chunk == part.first_chunk, batch == 0, in, p);
        }
#pragma unroll 1
        for (unsigned tile = batch; tile < part.tiles && tile < batch + W::BATCH; tile++) {
            float *to = sums + ((tile - batch) * STEP_WARPS + warp) * STEP_WARP_SUMS + lane;
            float x[4] = {};
            multiply_chunk<W>(x, pipe, *in, s.inputs + warp * (W::PARTS * ROWS), slices, p.L);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float *sum = to + place_in_sums(i * 32);
                *sum = chunk == part.first_chunk ? x[i] : *sum + x[i];
            }
        }
    }
}

/* A thread's output of a tile, for which four warps are there. A gate's lane and its up's are eight
 * apart, those of two rows that are a pair four; a warp reads each bank once. */
static __device__ __forceinline__ unsigned finished_output() {
    unsigned lane = threadIdx.x % 32, q = threadIdx.x / 32 % FINISH_WARPS;
    unsigned row = q % 2 + lane / 4 % 2 * 2 + lane / 16 * 4;
    return lane / 8 % 2 * (STEP_OUTPUTS / 2) + q / 2 * 32 + row * 4 + lane % 4;
}

/* What becomes of output e of the block's tile number `tile`. All lanes of a warp execute it.
   @param x the product, scaled */
static __device__ __forceinline__ void finish_output(const struct step_shared &s,
                                                     const struct step_output &o,
                                                     const struct step_product &m, unsigned first,
                                                     unsigned tile, unsigned e, float x,
                                                     const struct step_arguments &p) {
    const struct output_place at = place_of_output(e);
    bool gate = o.kind == LOW_BIT_GATE_UP;
    unsigned of_tile = gate ? LOW_BIT_TILE_ROWS / 2 : LOW_BIT_TILE_ROWS;
    unsigned n = (first + tile) * of_tile + at.row;
    bool valid = n < m.N && at.text < p.rows && at.row < of_tile;
    if (o.kind == LOW_BIT_CLASSIFIER || o.kind == LOW_BIT_QKV) {
        size_t i = (size_t)at.text * m.N + n;
        if (valid && o.kind == LOW_BIT_QKV) {
            publish(o.to, i, x, o.flag);
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
        publish_pair(o.to, at.text, n, x, second, o.flag);
    }
}

/* Adds up a group's warps, of which there are at most STEP_WARPS. @param sums of its first one */
static __device__ __forceinline__ float sum_warps(const float *sums, unsigned warps) {
    float x[4] = {};
#pragma unroll
    for (unsigned w = 0; w < STEP_WARPS; w++) {
        x[w % 4] += w < warps ? sums[w * STEP_WARP_SUMS] : 0.0f;
    }
    return (x[0] + x[1]) + (x[2] + x[3]);
}

/* The scale of the thread's row of a tile, of which there may be none; sums of int8 are in units of
 * 2^-24. */
template <typename W>
static __device__ __forceinline__ float
row_scale(const struct step_output &o, const struct step_product &m, unsigned tile, unsigned row) {
    return W::GROUP == 0 && tile < m.tiles
               ? per_unit(0) * __ldg(o.scales + (size_t)tile * LOW_BIT_TILE_ROWS + row)
               : 1.0f;
}

/* The outputs of a batch. @param scale of the thread's row of its first tile */
template <typename W>
static __device__ __forceinline__ void
finish_batch(const struct step_shared &s, const struct step_output &o, unsigned batch, float rstd,
             float scale, const struct step_arguments &p) {
    const struct step_product &m = p.products[o.kind];
    const struct tile_range own = own_tiles(m.tiles);
    const float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_WARP_SUMS);
    unsigned e = finished_output(), row = place_of_output(e).row;
    unsigned warps = smaller(m.warps, m.chunks);
    unsigned first = threadIdx.x / 32 / FINISH_WARPS;
    for (unsigned i = first; i < W::BATCH * m.groups; i += STEP_WARPS / FINISH_WARPS) {
        unsigned tile = batch * m.groups + i;
        if (tile < own.count) {
            const float *from =
                sums + (i / m.groups * STEP_WARPS + i % m.groups * m.warps) * STEP_WARP_SUMS +
                place_in_sums(e);
            float x = sum_warps(from, warps) * rstd;
            x *= i == first ? scale : row_scale<W>(o, m, own.first + tile, row);
            finish_output(s, o, m, own.first, tile, e, x, p);
        }
    }
}

/* All of the block's tiles of a matrix. */
template <typename W>
static __device__ __forceinline__ void
multiply_matrix(struct step_shared *s, struct slice_pipeline *pipe, unsigned number, unsigned steps,
                const struct step_arguments &p) {
    unsigned kind = kind_of(number, p);
    bool has_norm = kind != LOW_BIT_OUT && kind != LOW_BIT_DOWN;
    const struct step_product &m = p.products[kind];
    const struct tile_range own = own_tiles(m.tiles);
    const struct warp_part part = part_of(m);
    const struct output_place at = place_of_output(finished_output());
    unsigned first = threadIdx.x / 32 / FINISH_WARPS; /* of the batch's tiles, to be finished */
    struct input_chunk in;
    float rstd = 1.0f;
#pragma unroll 1
    for (unsigned batch = 0; batch * m.groups < own.count; batch += W::BATCH) {
        float scale = row_scale<W>(output_of<W>(number, steps, s->layers, p), m,
                                   own.first + batch * m.groups + first, at.row);
        if (batch < part.tiles) {
            multiply_batch<W>(*s, pipe, number, steps, m, part, batch, &in, p);
        }
        __syncthreads();
        if (batch == 0 && has_norm) {
            rstd = rstd_of(squares_of(*s, kind), smaller(m.warps, m.chunks), at.text, p);
        }
        finish_batch<W>(*s, output_of<W>(number, steps, s->layers, p), batch, rstd, scale, p);
        s->batches++;
    }
}

#endif
