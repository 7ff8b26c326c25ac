/**
 * @file llama2_decoder.h
 * @brief Arguments of the decoder entries of struct engine, for a stage that runs the whole Llama2
 *        decoder itself.
 *
 * This is the largest fused operator. Unlike the other entries, these get the weights as the file
 * stores them, in host memory: the stage decides how to keep them on the device.
 */
#ifndef WARPBOOK_COMMON_MODELS_LLAMA2_DECODER_H_
#define WARPBOOK_COMMON_MODELS_LLAMA2_DECODER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/checkpoints/llama2/llama2_weights.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes and weights, passed once; all of it outlives the decoder. */
struct llama2_decoder_model {
    const struct llama2_config *config;          /**< checked */
    const struct llama2_stored_weights *weights; /**< host; a shared classifier's data equals the
                                                    embedding's */
    enum nn_dtype dtype;                         /**< of matrices and of the KV cache on the device;
                                                    norms, activations and logits are fp32 */
    size_t batch;                                /**< most tokens of one call, 1 .. config->T */
};

/** Tokens at positions position .. position + count - 1; the model has checked them. */
struct llama2_decoder_call {
    const int32_t *tokens; /**< (count), host */
    size_t count;          /**< 1 .. batch */
    size_t position;       /**< keys and values of earlier positions are in the cache */
    float *logits;         /**< (V), host: those of the last token; NULL: not wanted */
};

/** How the next token is sampled from logits, as by struct sampler. */
struct llama2_sampling {
    float temperature; /**< 0: greedy, the first of equal largest logits */
    float top_p;       /**< <= 0 or >= 1: off */
    size_t top_k;      /**< 0: off */
    uint64_t seed;     /**< state of struct sampler's generator, not 0 */
};

#ifdef __cplusplus
}
#endif

#endif
