/**
 * @file decoder_model.h
 * @brief decoder.h's description of a model whose weights llama2_device.h has loaded.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_DECODER_MODEL_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_GIVEN_DECODER_MODEL_H_

#include "common/models/llama2_device.h"
#include "labs/10_llama2_decoder/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return the model's sizes and dtype, without its weights. */
struct decoder_model decoder_sizes_of(const struct llama2_config *config, enum nn_dtype dtype);

/**
 * @brief Describes a model: its sizes, and where its weights are.
 *
 * @param config  read now; what else of the result is read later is in the next two
 * @param weights of this config; what it points to outlives the result
 * @param layers  (config->L), host memory; receives the layers' weights and outlives the result
 */
struct decoder_model decoder_model_of(const struct llama2_config *config,
                                      const struct llama2_device *weights,
                                      struct decoder_layer *layers);

#ifdef __cplusplus
}
#endif

#endif
