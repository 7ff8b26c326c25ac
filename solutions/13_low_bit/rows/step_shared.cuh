/**
 * @file step_shared.cuh
 * @brief What a block of the step keeps in shared memory, and where a product's input is and its
 * results go.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_SHARED_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_SHARED_CUH_

#include "solutions/13_low_bit/rows/step_multiply.cuh"

/* A block's shared memory beside its pipelines. */
struct step_shared {
    float *sums;     /* (2, BATCH, STEP_WARPS, STEP_OUTPUTS): of batches in turn */
    float *inputs;   /* (STEP_WARPS, PARTS, ROWS): sums of inputs; of two parts: none */
    float *squares;  /* (2, ROWS, STEP_WARPS): sums of squares of a warp's chunks, second: of the
                        feed-forward network's input */
    float *norms;    /* (2, block's tiles of C, rows of a tile): the next norm's weights, second:
                        after the feed-forward network */
    float *residual; /* (block's tiles of C, STEP_OUTPUTS): the residual stream, unrounded; four of
                        a lane */
    const struct step_layer *layers;
    unsigned products; /* address of (LOW_BIT_PRODUCTS) struct block_product */
    unsigned batches;  /* made: which of the two buffers comes next; all threads have it */
};

/* A matrix, read anew in each place: registers are few. */
static __device__ __forceinline__ struct block_product product_of(const struct step_shared &s,
                                                                  unsigned kind) {
    unsigned at = s.products + kind * (unsigned)sizeof(struct block_product);
    const uint4 a = read_stage(at), b = read_stage(at + 16);
    static_assert(sizeof(struct block_product) == 32, "two reads");
    return {{a.x, a.y, a.z, a.w, b.x, b.y}, {b.z, b.w}};
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
static __device__ __forceinline__ struct step_output
output_of(unsigned i, unsigned steps, const struct step_shared &s, const struct step_arguments &p) {
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

/* The warps' sums of squares of the input of a product with a norm: (ROWS, STEP_WARPS). */
static __device__ __forceinline__ float *squares_of(const struct step_shared &s, unsigned kind) {
    return s.squares + (kind == LOW_BIT_GATE_UP ? STEP_WARPS * ROWS : 0);
}

#endif
