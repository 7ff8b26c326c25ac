/**
 * @file gpt_neox_decoder.h
 * @brief Arguments of an engine that runs the whole GPT-NeoX decoder itself; as llama2_decoder.h.
 */
#ifndef WARPBOOK_COMMON_MODELS_GPT_NEOX_DECODER_H_
#define WARPBOOK_COMMON_MODELS_GPT_NEOX_DECODER_H_

#include <stddef.h>

#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes and weights, passed once; all of it outlives the decoder. */
struct gpt_neox_decoder_model {
    const struct gpt_neox_config *config;          /**< checked */
    const struct gpt_neox_stored_weights *weights; /**< host; a shared classifier's data equals the
                                                      embedding's */
    enum nn_dtype dtype;                           /**< of matrices and of the KV cache on the
                                                      device; the rest is fp32 */
    size_t batch;                                  /**< most tokens of one call, 1 .. config->T */
};

#ifdef __cplusplus
}
#endif

#endif
