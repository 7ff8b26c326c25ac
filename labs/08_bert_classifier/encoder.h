/**
 * @file encoder.h
 * @brief Contract of lab 08: BERT's encoder, from token ids to what the classifier reads.
 *
 * The kernels of labs 04 to 07 are solved and linked; what you write is how they are put together:
 * which rows are computed at all, in which launches, and what is copied when.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_ENCODER_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_ENCODER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Weight (out, in) and bias (out) of one linear layer; device, fp32. */
struct encoder_linear {
    const float *weight, *bias;
};

/** Device, fp32. */
struct encoder_layer {
    struct encoder_linear qkv;   /**< (3C, C), (3C): q, k and v, one below the other */
    struct encoder_linear out;   /**< (C, C), (C): attention's output */
    struct nn_norm attention;    /**< (C): x = LayerNorm(x + out) */
    struct encoder_linear up;    /**< (hidden, C), (hidden): the feed-forward's first */
    struct encoder_linear down;  /**< (C, hidden), (C): its second */
    struct nn_norm feed_forward; /**< (C): x = LayerNorm(x + down) */
};

/** The model: sizes; weights in device memory, fp32, 256-byte aligned. */
struct encoder_model {
    size_t C, hidden, L, NH;       /**< channels, channels inside the feed-forward, layers, heads */
    size_t V, T, types;            /**< rows of the three tables */
    enum nn_activation activation; /**< of the feed-forward */
    const float *word_embedding;   /**< (V, C) */
    const float *position_embedding;    /**< (T, C) */
    const float *type_embedding;        /**< (types, C) */
    struct nn_norm embedding;           /**< (C) */
    const struct encoder_layer *layers; /**< (L), HOST memory */
};

/**
 * One batch. Sequence b is the rows starts[b] .. starts[b + 1] - 1 of ids, types and hidden. Ids,
 * types and lengths are checked: they fit the model's tables.
 */
struct encoder_batch {
    const int32_t *ids;    /**< (rows), HOST */
    const int32_t *types;  /**< (rows), HOST; NULL: all 0 */
    const int32_t *starts; /**< (B + 1), HOST: the first 0, rising, the last rows */
    size_t B, rows;        /**< both at least 1 */
    size_t longest;        /**< of the sequences, in tokens */
    float *first;          /**< (B, C), device: the last layer's result for each sequence's first
                              token, all that the classifier reads */
    float *hidden;         /**< (rows, C), device: its result for all tokens; NULL: not wanted */
};

struct encoder; /**< yours: buffers, and whatever you keep from one batch to the next */

/**
 * @brief Makes an encoder for batches of at most max_tokens rows.
 *
 * @param model  outlives the encoder, the weights too; they do not change
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY; STATUS_INVALID_ARGUMENT, with a line that names it, for
 *         sizes that the kernels do not take; STATUS_DEVICE
 */
MUST_CHECK enum status encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                      size_t max_tokens, device_stream stream, struct error *error);

/**
 * @brief Starts the work of one batch on the stream given at creation, and does not wait for it.
 *
 * The caller keeps the batch's host memory until it has synchronised, and has done so before it
 * calls again. The grader counts launches by recording a second call in a CUDA graph, which a wait
 * in it would end.
 *
 * first, and hidden where it is wanted, hold what the model says, whatever the order of sums: next
 * to the CPU's reference to a relative 1e-4.
 */
MUST_CHECK enum status encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                                   struct error *error);

/** Frees it; the caller has synchronised. NULL is allowed. */
void encoder_free(struct encoder *encoder);

#ifdef __cplusplus
}
#endif

#endif
