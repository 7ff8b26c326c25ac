/**
 * @file ladder.h
 * @brief The steps of solution 08, each with the signature of encoder_run(), and shared operators.
 *
 * All steps run on the same encoder, made by encoder_create(). They call the kernels of labs 04 to
 * 07; a step decides which rows these compute, and when data is copied.
 */
#ifndef WARPBOOK_SOLUTIONS_08_BERT_CLASSIFIER_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_08_BERT_CLASSIFIER_STEPS_LADDER_H_

#include "labs/08_bert_classifier/encoder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status encoder_run_function(struct encoder *encoder, const struct encoder_batch *batch,
                                         struct error *error);

/** One version of encoder_run(). */
struct encoder_step {
    const char *name; /**< "e2_packed" */
    encoder_run_function *run;
};

/**
 * @brief The versions in the order they were written; the last one is encoder_run().
 * @param count receives their number
 */
const struct encoder_step *encoder_ladder(size_t *count);

encoder_run_function encoder_e1_padded;
encoder_run_function encoder_e2_packed;
encoder_run_function encoder_e3_fused;
encoder_run_function encoder_e4_one_upload;
encoder_run_function encoder_e5_first_rows;

/** Buffers for `capacity` rows; device memory, except staged. */
struct encoder {
    const struct encoder_model *model;
    device_stream stream;
    void *workspace; /**< FUSED_WORKSPACE_BYTES, as lab 06 wants it */
    size_t capacity;
    float *x;         /**< (rows, C): the hidden state */
    float *qkv;       /**< (rows, 3C) */
    float *attended;  /**< (rows, C): attention's result */
    float *projected; /**< (rows, C): a sublayer's result */
    float *inner;     /**< (rows, hidden) */
    int32_t *staged;  /**< host, page-locked: this batch's lists, contiguous */
    int32_t *lists;   /**< device: the same, at the same offsets */
    size_t used;      /**< numbers used of both */
};

/** Grows the buffers if they are too small; their contents are lost then. */
MUST_CHECK enum status encoder_reserve(struct encoder *e, size_t rows, struct error *error);

/** @name A batch's lists of numbers
 * @{ */

struct encoder_list {
    int32_t *host, *device;
    size_t count;
};

/** Allocates the next `count` numbers of both; a batch starts with e->used = 0. */
struct encoder_list encoder_list_create(struct encoder *e, size_t count);

/** Starts the copy of one list. */
MUST_CHECK enum status encoder_upload(const struct encoder *e, const struct encoder_list *list,
                                      struct error *error);

/** Inputs of the embeddings, a number a row. */
struct encoder_ids {
    struct encoder_list ids, types, positions;
};

/** Creates and fills three lists for the batch's rows, without padding. */
struct encoder_ids encoder_list_rows(struct encoder *e, const struct encoder_batch *batch);
/** @} */

/** @name Single operators, a launch each (matmul: two where K is split)
 * @{ */

/** out (rows, C) = table[ids], or += it. */
MUST_CHECK enum status encoder_gather(const struct encoder *e, float *out, const float *table,
                                      const int32_t *ids, size_t rows, bool accumulate,
                                      struct error *error);

/** Uploads the lists one by one; x (rows, C) = LayerNorm(word + position + type) in four launches.
 */
MUST_CHECK enum status encoder_embed_one_by_one(const struct encoder *e,
                                                const struct encoder_ids *lists, size_t rows,
                                                struct error *error);

/** Layout of the rows, padded or packed, for attention. */
struct encoder_view {
    size_t rows, B, longest;
    const uint8_t *mask;                 /**< (B, longest), device: padded; or NULL */
    const int32_t *starts, *host_starts; /**< (B + 1): packed; or NULL */
};

/** attended = attention of each sequence to itself, by the thirds of qkv (rows, 3C). */
MUST_CHECK enum status encoder_attend(const struct encoder *e, const struct encoder_view *view,
                                      struct error *error);

/** A layer's function. */
typedef enum status encoder_layer_function(const struct encoder *e,
                                           const struct encoder_layer *layer,
                                           const struct encoder_view *view, struct error *error);

/** x = the layer's result: 14 launches. */
MUST_CHECK encoder_layer_function encoder_layer_one_by_one;

/** A packed batch, with this function for each layer: e2 and e3. */
MUST_CHECK enum status encoder_run_packed(struct encoder *e, const struct encoder_batch *batch,
                                          encoder_layer_function *run_layer, struct error *error);
/** @} */

/** @name Lab 06's operators
 * @{ */

/** out (rows, N) = in (rows, K) * weight^T + bias. */
MUST_CHECK enum status encoder_linear(const struct encoder *e, float *out, const float *in,
                                      const struct encoder_linear *layer, size_t rows, size_t N,
                                      size_t K, struct error *error);

/** x (rows, C) = the layer's result from x and attended: all operators after attention. */
MUST_CHECK enum status encoder_after_attention(const struct encoder *e, float *x,
                                               const struct encoder_layer *layer, size_t rows,
                                               struct error *error);

/** x = the layer's result: 7 launches, or up to 9 for few rows. */
MUST_CHECK encoder_layer_function encoder_layer_fused;
/** @} */

/** e4: x (rows, C) = LayerNorm(word + position + type) in one launch; the lists are on the device.
 */
MUST_CHECK enum status encoder_embed_at_once(const struct encoder *e, const int32_t *ids,
                                             const int32_t *types, const int32_t *positions,
                                             size_t rows, struct error *error);

/**
 * e4: the batch's lists in one copy, then its embeddings.
 * @param view receives the layout of the rows
 */
MUST_CHECK enum status encoder_prologue(struct encoder *e, const struct encoder_batch *batch,
                                        struct encoder_view *view, struct error *error);

/** Copies x to first and, if wanted, hidden. @param firsts (B), device: rows of x */
MUST_CHECK enum status encoder_store_results(const struct encoder *e,
                                             const struct encoder_batch *batch,
                                             const int32_t *firsts, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
