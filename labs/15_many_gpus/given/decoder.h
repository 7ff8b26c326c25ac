/**
 * @file decoder.h
 * @brief Given: lab 10's decoder, cut into parts: a token over the lab's many_linear(), a prompt's
 *        tokens as rows over its many_all_reduce().
 *
 *     x += sum over ranks of out_r attention_r(norm x);   x += sum over ranks of down_r ffn_r(norm
 * x)
 *
 * x, the logits and the token drawn are the same bits on all ranks. A step is recorded in a CUDA
 * graph if the functions can be recorded. All functions are collective.
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_DECODER_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_DECODER_H_

#include <stdint.h>

#include "labs/10_llama2_decoder/decoder.h"
#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

struct many_decoder;

/**
 * @param model the rank's part (many_parts.model); it and its weights outlive the decoder
 * @param io    memory of the rank's GPU; copied
 * @param batch tokens of a prompt that are rows of one matrix, at most; 1: one by one
 * @param step  whose functions are used; copied
 * @param stream of all work
 */
MUST_CHECK enum status many_decoder_create(struct many_decoder **decoder, struct comm *comm,
                                           const struct decoder_model *model,
                                           const struct decoder_io *io, size_t batch,
                                           const struct many_step *step, device_stream stream,
                                           struct error *error);

/** Feeds a token at a position; io.logits are its. @param token below V, the same on all ranks */
MUST_CHECK enum status many_decoder_feed(struct many_decoder *decoder, int32_t token,
                                         size_t position, struct error *error);

/** Feeds a prompt's tokens from a position on; io.logits are those of the last. @param tokens host,
 *  (count): below V, the same on all ranks @param count at least 1 */
MUST_CHECK enum status many_decoder_prefill(struct many_decoder *decoder, const int32_t *tokens,
                                            size_t count, size_t position, struct error *error);

/** Draws a token from io.logits into io.token as io.sampling says, and feeds it at a position. */
MUST_CHECK enum status many_decoder_step(struct many_decoder *decoder, size_t position,
                                         struct error *error);

/** Frees; the caller has synchronised. NULL is allowed. */
void many_decoder_free(struct many_decoder *decoder);

#ifdef __cplusplus
}
#endif

#endif
