/**
 * @file ladder.h
 * @brief The steps of solution 10, each a pair like decoder_prefill() and decoder_step(), and their
 shared operators.
 *
 * All steps run on the same decoder, made by decoder_create(). Attention and products with many
 rows are the solved operators of earlier labs; sampling is given.

 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_LADDER_H_

#include <stdbool.h>

#include "labs/10_llama2_decoder/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status decoder_prefill_function(struct decoder *decoder, const int32_t *tokens,
                                             size_t count, size_t position, struct error *error);
typedef enum status decoder_step_function(struct decoder *decoder, size_t position,
                                          struct error *error);

struct decoder_path;

/** One version of both. */
struct decoder_version {
    const char *name; /**< "d2_fused" */
    decoder_prefill_function *prefill;
    decoder_step_function *step;
    const struct decoder_path *path; /**< its operators for one token */
};

/**
 * @brief The versions in the order they were written; the last one is decoder_prefill() and
 *        decoder_step().
 * @param count receives how many
 */
const struct decoder_version *decoder_ladder(size_t *count);

decoder_prefill_function decoder_d1_prefill, decoder_d2_prefill, decoder_d3_prefill,
    decoder_d4_prefill, decoder_d6_prefill;
/** Halfway to d6: a learner's middling submission, for the grader. */
decoder_prefill_function decoder_prefill_in_bands;
decoder_step_function decoder_d1_step, decoder_d2_step, decoder_d3_step, decoder_d4_step,
    decoder_d5_step, decoder_d7_step, decoder_d8_step;

/** Activations of many tokens: d6. Device memory; E is the model's type. */
struct decoder_rows {
    int32_t *tokens; /**< (batch) */
    float *x;        /**< (batch, C): the residual stream */
    void *y;         /**< (batch, C) of E: x normed */
    void *qkv;       /**< (batch, (NH + 2 KVH) * HS) of E */
    void *heads;     /**< (batch, NH*HS) of E: attention's result */
    void *gate_up;   /**< (batch, 2 * hidden) of E: where the product does not apply the gate */
    void *gated;     /**< (batch, hidden) of E */
    void *workspace; /**< of the products */
    /** (L, 2 * hidden, C) of E: gate_up's rows, a gate's and its up's in turn, for products that
     * apply the gate; NULL in fp32, and where there is no memory for it. */
    void *paired;
};

/** Recorded steps of d7: one for contexts up to 256, 512, ... tokens. */
enum { DECODER_BUCKETS = 40, DECODER_FIRST_BUCKET = 256 };

struct decoder_graph {
    void *executable, *embed; /**< cudaGraphExec_t; cudaGraphNode_t of its kernel with a position */
    void *graph;              /**< cudaGraph_t */
};

/** Mailboxes through which d8's blocks exchange values. */
enum { ONE_MAILBOXES = 5 };

/** State of d8's kernel; pointers are device memory. */
struct decoder_one {
    bool supported;        /**< whether the kernel supports the model and the GPU */
    size_t shared_from[2]; /**< positions from which two and four queries share a read of a key */
    size_t blocks, shared_bytes;    /**< of its launch: blocks, bytes of dynamic shared memory */
    void *layers;                   /**< (L) of struct one_layer */
    void *mailboxes[ONE_MAILBOXES]; /**< flag-with-data exchange between blocks */
    unsigned *tag;                  /**< tells values of this launch from an earlier one's */
};

struct decoder {
    const struct decoder_model *model;
    struct decoder_io io;
    size_t batch;
    device_stream stream;
    size_t multiprocessors, shared_bytes; /**< of the GPU; of a block */
    int major; /**< of the compute capability that the running code was compiled for */

    float *x;             /**< (C): the residual stream of the token under way */
    float *y;             /**< (C): x normed; a sublayer's result */
    float *heads;         /**< (NH*HS): attention's result */
    float *gate_up;       /**< (2 * hidden); from d3 on silu(gate) * up in its first half */
    void *k, *v;          /**< (L, T, KVH*HS), of the model's dtype */
    int32_t *position;    /**< of the token under way */
    void *workspace;      /**< KV_WORKSPACE_BYTES */
    void *draw_workspace; /**< sample_workspace_bytes(V) */
    float *host_logits;   /**< HOST, (V) */
    bool has_rows;        /**< whether d6 runs: prompts are a matrix of rows */
    struct decoder_rows rows;
    struct decoder_graph graphs[DECODER_BUCKETS];
    struct decoder_one one;
};

/** @name One token: operators that steps share
 * @{ */

/** A layer, on x, for the token at *d->position, which is below `longest`. */
typedef enum status decoder_layer_function(const struct decoder *d, size_t l, size_t longest,
                                           struct error *error);
/** io's logits = those of x. */
typedef enum status decoder_classify_function(const struct decoder *d, struct error *error);

/** Operators of a step for one token. */
struct decoder_path {
    decoder_layer_function *layer;
    decoder_classify_function *classify;
};

/** d1's to d4's; d5 and later use d4's. */
extern const struct decoder_path decoder_path_operators, decoder_path_fused, decoder_path_gate_up,
    decoder_path_stream;

/** heads = attention of layer l, by lab 09's operator. */
MUST_CHECK enum status decoder_attend(const struct decoder *d, size_t l, size_t longest,
                                      struct error *error);

/** out (N) = residual + weight (N, K) * n(in), by lab 09's operator. @param norm, residual or NULL
 */
MUST_CHECK enum status decoder_multiply(const struct decoder *d, float *out, const void *weight,
                                        const float *in, size_t N, size_t K, const float *norm,
                                        const float *residual, struct error *error);

/** x = the row of a token that the host knows; d->position = position. */
MUST_CHECK enum status decoder_embed(const struct decoder *d, int32_t token, size_t position,
                                     struct error *error);

/** x = the row of io's token; d->position = position. */
MUST_CHECK enum status decoder_embed_drawn(const struct decoder *d, size_t position,
                                           struct error *error);

/** All layers on x, then the logits. */
MUST_CHECK enum status decoder_run_token(const struct decoder *d, const struct decoder_path *path,
                                         size_t longest, struct error *error);

/** Tokens one after the other, logits of the last. */
MUST_CHECK enum status decoder_one_by_one(const struct decoder *d, const struct decoder_path *path,
                                          const int32_t *tokens, size_t count, size_t position,
                                          struct error *error);

/** A step that draws on the host: waits for the logits. */
MUST_CHECK enum status decoder_step_from_host(const struct decoder *d,
                                              const struct decoder_path *path, size_t position,
                                              struct error *error);
/** @} */

/** @name Products that stream: stream.cu
 * @{ */

/** d->gate_up (hidden) = silu(gate * n(x)) * (up * n(x)), n by layer l's ffn_norm. */
MUST_CHECK enum status decoder_stream_gate_up(const struct decoder *d, size_t l,
                                              struct error *error);
/** As decoder_multiply(). */
MUST_CHECK enum status decoder_stream_multiply(const struct decoder *d, float *out,
                                               const void *weight, const float *in, size_t N,
                                               size_t K, const float *norm, const float *residual,
                                               struct error *error);
/** @} */

/** @name Kernels for many tokens: rows.cu. E is the model's type
 * @{ */

/** rows.x (count, C) = the table's rows of rows.tokens. */
MUST_CHECK enum status decoder_rows_embed(const struct decoder *d, size_t count,
                                          struct error *error);
/** rows.y = RMSNorm(rows.x) with `norm`, (count, C). */
MUST_CHECK enum status decoder_rows_norm(const struct decoder *d, const float *norm, size_t count,
                                         struct error *error);
/* Rotates queries and keys; k and v become rows position .. of layer l's cache.
 * @param queries whether rows.qkv has queries, which stay there; else keys come first in a row
 */
MUST_CHECK enum status decoder_rows_rotate(const struct decoder *d, size_t l, bool queries,
                                           size_t count, size_t position, struct error *error);
/** Fills rows.paired, which has been allocated. */
MUST_CHECK enum status decoder_rows_pair(const struct decoder *d, struct error *error);
/** rows.gated = silu(gate) * up of rows.gate_up. */
MUST_CHECK enum status decoder_rows_gate(const struct decoder *d, size_t count,
                                         struct error *error);
/** x = row i of rows.x; d->position = position. */
MUST_CHECK enum status decoder_rows_copy(const struct decoder *d, size_t i, size_t position,
                                         struct error *error);
/** @} */

/** Adds up products over several GPUs, whose decoders have parts of a model: lab 15's. */
struct decoder_sums {
    void *context;
    bool first; /**< the rank whose products are added to the residual stream; one is */
    /** Device memory data (count) = the sum of all ranks' data, in place. */
    enum status (*add)(void *context, float *data, size_t count, struct error *error);
};

/** @name A prompt's tokens as rows: d6
 * @{ */

/** rows.x = the embeddings of tokens that the host knows. @param count at most d->batch */
MUST_CHECK enum status decoder_rows_begin(const struct decoder *d, const int32_t *tokens,
                                          size_t count, struct error *error);
/** A layer that is not the last. @param sums NULL: d has the whole model */
MUST_CHECK enum status decoder_rows_layer(const struct decoder *d, size_t l, size_t count,
                                          size_t position, const struct decoder_sums *sums,
                                          struct error *error);
/** The last layer's keys and values of all tokens; then x = the last token's row, which goes on as
 * a single token. */
MUST_CHECK enum status decoder_rows_end(const struct decoder *d, size_t count, size_t position,
                                        struct error *error);
/** @} */

/** d5's step, without waiting: what d7 records. @param position of the token drawn */
MUST_CHECK enum status decoder_draw_and_run(const struct decoder *d, size_t position,
                                            size_t longest, struct error *error);

/** The kernel that decoder_embed_drawn() launches. Its last argument is the position, int32_t. */
const void *decoder_embed_kernel(const struct decoder *d);
/** Its arguments, for changing a recorded launch. */
struct decoder_embed_arguments {
    float *x;
    const void *table;
    const int32_t *token;
    size_t C;
    int32_t *position_out;
    int32_t position;
};
struct decoder_embed_arguments decoder_embed_arguments(const struct decoder *d, size_t position);

/** d8's kernel alone, for benches: feeds io's token at a position. d->one.supported. */
MUST_CHECK enum status decoder_d8_feed(const struct decoder *d, size_t position,
                                       struct error *error);

/** Creates d->one. */
MUST_CHECK enum status decoder_one_create(struct decoder *d, struct error *error);
void decoder_one_free(struct decoder *d);

/** Frees the recorded steps. */
void decoder_graphs_free(struct decoder *d);

#ifdef __cplusplus
}
#endif

#endif
