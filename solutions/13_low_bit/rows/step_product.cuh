/**
 * @file step_product.cuh
 * @brief A product of the step: a block's tiles times eight texts, and what becomes of the results.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PRODUCT_CUH_

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
    float *squares;  /* (2, ROWS, STEP_WARPS): sums of squares of a warp's chunks, second: of the
                        feed-forward network's input */
    float *norms;    /* (2, block's tiles of C, rows of a tile): the next norm's weights, second:
                        after the feed-forward network */
    float *residual; /* (block's tiles of C, STEP_OUTPUTS): the residual stream, unrounded */
    const struct step_layer *layers;
    unsigned products; /* address of (LOW_BIT_PRODUCTS) struct block_product */
    unsigned batches; /* made: which of the two buffers comes next; all threads have it */
};

/* A matrix, read anew in each place: registers are few. */
static __device__ __forceinline__ struct block_product product_of(const struct step_shared &s,
                                                                  unsigned kind) {
    unsigned at = s.products + kind * (unsigned)sizeof(struct block_product);
    const uint4 a = read_stage(at), b = read_stage(at + 16);
    static_assert(sizeof(struct block_product) == 32, "two reads");
    return {{a.x, a.y, a.z, a.w, b.x, b.y}, {b.z, b.w}};
}

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
};

static __device__ __forceinline__ bool has_norm(unsigned kind) {
    return kind != LOW_BIT_OUT && kind != LOW_BIT_DOWN;
}

static __device__ __forceinline__ struct step_input input_of(unsigned i, unsigned steps,
                                                             const struct step_arguments &p) {
    unsigned kind = kind_of(i, p), l = i / STEP_LAYER_KINDS;
    if (!has_norm(kind)) {
        return {kind == LOW_BIT_OUT ? p.heads : p.hidden, layer_flag(steps, l, p)};
    }
    return {p.x, residual_flag(steps, 2 * l + (kind == LOW_BIT_GATE_UP ? 1 : 0), p)};
}

/* Where its results go. */
struct step_output {
    unsigned kind, flag;
    const float *scales; /* of the matrix' rows; int8 */
};

template <typename W>
static __device__ __forceinline__ struct step_output output_of(unsigned i, unsigned steps,
                                                               const struct step_shared &s,
                                                               const struct step_arguments &p) {
    unsigned kind = kind_of(i, p), l = i / STEP_LAYER_KINDS;
    const struct step_product m = product_of(s, kind).all;
    const unsigned char *matrix = s.layers[l].streams[kind == LOW_BIT_CLASSIFIER ? 0 : kind];
    struct step_output o = {};
    o.kind = kind;
    o.scales = (const float *)(matrix + (size_t)m.tiles * m.slices * W::BYTES);
    o.flag = has_norm(kind) ? layer_flag(steps, l, p)
                            : residual_flag(steps, 2 * l + (kind == LOW_BIT_OUT ? 1 : 2), p);
    return o;
}

/* ---- Multiplying ---- */

/* Where output e is in a warp's sums. */
static __device__ __forceinline__ unsigned place_in_sums(unsigned e) {
    return e / (STEP_OUTPUTS / 2) * STEP_SECOND_ROWS + e % (STEP_OUTPUTS / 2);
}

/* The warps' sums of squares of the input of a product with a norm: (ROWS, STEP_WARPS). */
static __device__ __forceinline__ float *squares_of(const struct step_shared &s, unsigned kind) {
    return s.squares + (kind == LOW_BIT_GATE_UP ? STEP_WARPS * ROWS : 0);
}

/* Adds a warp's squares of two texts. */
static __device__ __forceinline__ void add_squares(float *to, float2 squares, bool first) {
    unsigned lane = threadIdx.x % 32;
    if (lane < 4) {
        float *sum = to + lane * 2 * STEP_WARPS + threadIdx.x / 32;
        sum[0] = first ? squares.x : sum[0] + squares.x;
        sum[STEP_WARPS] = first ? squares.y : sum[STEP_WARPS] + squares.y;
    }
}

/* 1 / RMS of the thread's text. Warps without squares have zeros. */
static __device__ __forceinline__ float rstd_of(const float *squares, unsigned text,
                                                const struct step_arguments &p) {
    const float4 *x = (const float4 *)(squares + text * STEP_WARPS);
    float sum[4];
    static_assert(STEP_WARPS == 16, "four reads");
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        sum[i] = (x[i].x + x[i].y) + (x[i].z + x[i].w);
    }
    return rsqrtf(((sum[0] + sum[1]) + (sum[2] + sum[3])) * p.per_C + p.eps);
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
    struct square_reads squares;
    if (adds) {
        read_squares(&squares, p.squares, chunk, tiles);
    }
    load_chunk(in, reads_of_chunk(from.from, chunk, product_of(s, kind).all.K, p.rows), from.flag);
    if (adds) {
        add_squares(squares_of(s, kind), sum_squares(&squares, p.squares, chunk, tiles, from.flag),
                    first);
    }
    sum_inputs<W>(s.inputs + warp * (W::PARTS * ROWS), *in);
}

/* The sums of a warp without a chunk. */
template <typename W>
static __device__ __forceinline__ void clear_sums(float *sums, unsigned warp) {
#pragma unroll 1
    for (unsigned tile = 0; tile < W::BATCH; tile++) {
        float *to = sums + (tile * STEP_WARPS + warp) * STEP_WARP_SUMS;
#pragma unroll 1
        for (unsigned i = threadIdx.x % 32; i < STEP_WARP_SUMS; i += 32) {
            to[i] = 0.0f;
        }
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
    float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_WARP_SUMS);
    if (part.first_chunk >= m.chunks) {
        clear_sums<W>(sums, warp);
    }
    if (batch >= part.tiles) {
        return;
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
            float *to = sums + ((tile - batch) * STEP_WARPS + warp) * STEP_WARP_SUMS + lane;
            float x[4] = {};
            multiply_chunk<W>(x, pipe, *in, s.inputs + warp * (W::PARTS * ROWS), slices);
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

/* x * sigmoid(x), within some units of fp32's last place; what is published has 11 bits. */
static __device__ __forceinline__ float fast_silu(float x) {
    return __fdividef(x, 1.0f + __expf(-x));
}

/* Publishes an output of the residual stream, times the next norm's weight, and the squares of a
 * warp's rows. All lanes of a warp execute it. @param tile of all @param valid whether there is
 * such an output; x is 0 otherwise */
static __device__ __forceinline__ void publish_residual(const struct output_place &at,
                                                        unsigned tile, float x, float norm,
                                                        bool valid, unsigned flag,
                                                        const struct step_arguments &p) {
    float normed = x * norm, second = __shfl_xor_sync(~0u, normed, 4), squares = x * x;
    if (valid && at.row % 4 < 2) {
        publish_pair(p.x, at.text, tile * LOW_BIT_TILE_ROWS + at.row, normed, second, flag);
    }
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
        squares += __shfl_xor_sync(~0u, squares, distance);
    }
    if (threadIdx.x % 32 < 4) {
        publish(p.squares, square_place(tile, at.text, at.row % 2), squares, flag);
    }
}

/* The weights of the norm behind OUT or DOWN, of the block's rows. */
static __device__ __forceinline__ float *norms_of(const struct step_shared &s, unsigned kind,
                                                  const struct step_arguments &p) {
    return s.norms + (kind == LOW_BIT_DOWN ? p.residual_tiles * LOW_BIT_TILE_ROWS : 0);
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
            publish(p.qkv, i, x, o.flag);
        } else if (valid) {
            p.logits[i] = x;
        }
        return;
    }
    if (gate) {
        x = fast_silu(x) * __shfl_xor_sync(~0u, x, 8);
        float second = __shfl_xor_sync(~0u, x, 4);
        if (valid && at.row % 4 < 2) {
            publish_pair(p.hidden, at.text, n, x, second, o.flag);
        }
        return;
    }
    float *residual = s.residual + tile * STEP_OUTPUTS + e;
    x = valid ? x + *residual : 0.0f;
    *residual = x;
    publish_residual(at, first + tile, x,
                     norms_of(s, o.kind, p)[tile * LOW_BIT_TILE_ROWS + at.row], valid, o.flag, p);
}

/* Adds up the sums of eight warps. */
static __device__ __forceinline__ float sum_eight(const float *sums) {
    float x[8];
#pragma unroll
    for (unsigned w = 0; w < 8; w++) {
        x[w] = sums[w * STEP_WARP_SUMS];
    }
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* Adds up a group's warps. @param sums of its first one @param warps a power of two */
static __device__ __forceinline__ float sum_warps(const float *sums, unsigned warps) {
    if (warps < 8) {
        float x = sums[0];
        for (unsigned w = 1; w < warps; w++) {
            x += sums[w * STEP_WARP_SUMS];
        }
        return x;
    }
    float x = sum_eight(sums);
    if (warps > 8) {
        x += sum_eight(sums + 8 * STEP_WARP_SUMS);
    }
    return x;
}

/* The scale of the thread's row of a tile, of which there may be none; sums of int8 are in units of
 * 2^-24. */
template <typename W>
static __device__ __forceinline__ float
row_scale(const struct step_output &o, const struct step_product &m, unsigned tile, unsigned row) {
    return W::GROUP == 0 && tile < m.tiles
               ? PER_UNIT * __ldg(o.scales + (size_t)tile * LOW_BIT_TILE_ROWS + row)
               : 1.0f;
}

/* The outputs of a batch. @param scale of the thread's row of its first tile */
template <typename W>
static __device__ __forceinline__ void
finish_batch(const struct step_shared &s, const struct step_output &o, unsigned batch, float rstd,
             float scale, const struct step_arguments &p) {
    const struct block_product product = product_of(s, o.kind);
    const struct step_product &m = product.all;
    const struct tile_range &own = product.own;
    const float *sums = s.sums + s.batches % 2 * (W::BATCH * STEP_WARPS * STEP_WARP_SUMS);
    unsigned e = finished_output(), row = place_of_output(e).row;
    unsigned warps = warps_of_group(m), bits = m.group_bits;
    unsigned first = threadIdx.x / 32 / FINISH_WARPS, skipped = batch << bits;
    unsigned count = smaller(own.count - skipped, (unsigned)W::BATCH << bits);
    for (unsigned i = first; i < count; i += STEP_WARPS / FINISH_WARPS) {
        unsigned group = i & ((1 << bits) - 1), slot = (i >> bits) * STEP_WARPS;
        const float *from =
            sums + (slot + group * warps) * STEP_WARP_SUMS + place_in_sums(e);
        float x = sum_warps(from, warps) * rstd;
        x *= i == first ? scale : row_scale<W>(o, m, own.first + skipped + i, row);
        finish_output(s, o, m, own.first, skipped + i, e, x, p);
    }
}

/* Two products ahead: memory may have to be asked. A thread a row. */
static __device__ __forceinline__ void load_norms(const struct step_shared &s, unsigned number,
                                                  const struct step_arguments &p) {
    unsigned kind = kind_of(number, p), l = number / STEP_LAYER_KINDS;
    const struct tile_range own = product_of(s, LOW_BIT_OUT).own;
    if (kind == LOW_BIT_QKV || kind == LOW_BIT_GATE_UP) {
        unsigned channel = own.first * LOW_BIT_TILE_ROWS + threadIdx.x;
        const float *norm = kind == LOW_BIT_QKV ? s.layers[l].ffn_norm
                            : l + 1 < p.L       ? s.layers[l + 1].attention_norm
                                                : p.final_norm;
        if (threadIdx.x < own.count * LOW_BIT_TILE_ROWS && channel < p.C) {
            norms_of(s, kind + 1, p)[threadIdx.x] = __ldg(norm + channel);
        }
    }
}

/* All of the block's tiles of a matrix. */
template <typename W>
static __device__ __forceinline__ void
multiply_matrix(struct step_shared *s, struct slice_pipeline *pipe, unsigned number, unsigned steps,
                const struct step_arguments &p) {
    unsigned kind = kind_of(number, p);
    const struct output_place at = place_of_output(finished_output());
    unsigned first = threadIdx.x / 32 / FINISH_WARPS; /* of the batch's tiles, to be finished */
    struct input_chunk in;
    float rstd = 1.0f;
    load_norms(*s, number, p);
#pragma unroll 1
    for (unsigned batch = 0;; batch += W::BATCH) {
        const struct block_product m = product_of(*s, kind);
        unsigned skipped = batch << m.all.group_bits;
        if (skipped >= m.own.count) {
            break;
        }
        float scale = row_scale<W>(output_of<W>(number, steps, *s, p), m.all,
                                   m.own.first + skipped + first, at.row);
        multiply_batch<W>(*s, pipe, number, steps, batch, &in, p);
        __syncthreads();
        if (batch == 0 && has_norm(kind)) {
            rstd = rstd_of(squares_of(*s, kind), at.text, p);
        }
        finish_batch<W>(*s, output_of<W>(number, steps, *s, p), batch, rstd, scale, p);
        s->batches++;
    }
}

#endif
