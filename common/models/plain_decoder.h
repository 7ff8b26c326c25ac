/**
 * @file plain_decoder.h
 * @brief Llama2 in one file of straightforward C, compiled with -O3, to compare engines with.
 */
#ifndef WARPBOOK_COMMON_MODELS_PLAIN_DECODER_H_
#define WARPBOOK_COMMON_MODELS_PLAIN_DECODER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_weights.h"

struct plain_decoder; /**< opaque: activations and KV cache */

/** @param weights must outlive the decoder; only the interleaved rotary layout is supported */
MUST_CHECK enum status plain_decoder_create(struct plain_decoder **decoder,
                                            const struct llama2_config *config,
                                            const struct llama2_weights *weights);

void plain_decoder_free(struct plain_decoder *decoder);

/**
 * @brief Runs one token.
 * @param token    in [0, V)
 * @param position in [0, T); earlier positions must have been run
 * @return logits (V), valid until the next call
 */
const float *plain_decoder_forward(struct plain_decoder *decoder, int32_t token, size_t position);

#endif
