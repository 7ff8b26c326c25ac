/**
 * @file decoder.h
 * @brief Contract of lab 10: the complete Llama2 decoder, from token ids to the next token.
 *
 * Lab 09's operators, lab 04's and 16-bit matmul, attention, norms and sampling are solved and
 * linked; what you write is how they are put together: which launches, what is waited for, and what
 * a prompt of many tokens does differently from one token.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_DECODER_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_DECODER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/nn/nn.h"
#include "labs/10_llama2_decoder/given/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Device memory, 256-byte aligned; norms fp32, matrices of the model's dtype. */
struct decoder_layer {
    const float *attention_norm; /**< (C) */
    const void *qkv;             /**< ((NH + 2 KVH) * HS, C): rows of q, then k, then v */
    const void *out;             /**< (C, NH*HS) */
    const float *ffn_norm;       /**< (C) */
    const void *gate_up;         /**< (2 * hidden, C): rows of the gate, then of up */
    const void *down;            /**< (C, hidden) */
};

/** The model: sizes and weights. */
struct decoder_model {
    size_t C, hidden, L; /**< channels, channels inside the feed-forward, layers */
    size_t NH, KVH, HS;  /**< query heads, a multiple of key heads; head size, even, at most
                            KV_MAX_HS */
    size_t V, T;         /**< vocabulary, longest context */
    float eps, theta;    /**< of the norms, of rotary embedding */
    enum nn_rope_layout layout;
    enum nn_dtype dtype;                /**< of matrices, and of the KV cache that you make */
    const void *embedding;              /**< (V, C) */
    const struct decoder_layer *layers; /**< (L), HOST memory */
    const float *final_norm;            /**< (C) */
    const void *classifier;             /**< (V, C); may be the embedding */
};

/** What a decoder works on beside its own memory: DEVICE memory, the same for all its life. */
struct decoder_io {
    float *logits;             /**< (V): those of the last token fed */
    int32_t *token;            /**< the token that decoder_step() drew */
    struct sampling *sampling; /**< how it draws; the caller sets it between calls */
};

struct decoder; /**< yours: KV cache, activations, and whatever you keep from call to call */

/**
 * @brief Makes a decoder with room for a context of T tokens.
 *
 * @param model outlives the decoder, the weights too; they do not change
 * @param io    copied; what it points to outlives the decoder
 * @param batch most tokens of one decoder_prefill(), 1 .. T
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY; STATUS_INVALID_ARGUMENT, with a line that names it, for
 *         sizes that the kernels do not take; STATUS_DEVICE
 */
MUST_CHECK enum status decoder_create(struct decoder **decoder, const struct decoder_model *model,
                                      const struct decoder_io *io, size_t batch,
                                      device_stream stream, struct error *error);

/**
 * @brief Feeds tokens of a prompt at positions position .. position + count - 1.
 *
 * What earlier calls fed before `position` stays; what was fed at or behind it is forgotten. The
 * work is on the stream given at creation; it may return before that is done. io->logits holds the
 * last token's logits then, to a relative 1e-4 of the CPU's reference in fp32, whatever the order
 * of sums.
 *
 * @param tokens HOST, (count), each below V; the caller keeps them until it has synchronised
 */
MUST_CHECK enum status decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                       size_t position, struct error *error);

/**
 * @brief One token: draws it from io->logits into io->token as io->sampling says, feeds it at
 *        `position`, and leaves its logits in io->logits.
 *
 * Position is that of the call before, and one more, or any that decoder_prefill() could have. The
 * grader counts the launches of a call by recording it in a CUDA graph: a call that waits for the
 * GPU cannot be recorded, and CUDA takes no graph while it records. So a call that finds its stream
 * recorded (cudaStreamIsCapturing()) launches what is in your graph one by one.
 */
MUST_CHECK enum status decoder_step(struct decoder *decoder, size_t position, struct error *error);

/** Frees it; the caller has synchronised. NULL is allowed. */
void decoder_free(struct decoder *decoder);

#ifdef __cplusplus
}
#endif

#endif
