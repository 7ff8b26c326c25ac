/**
 * @file llama2_rope.h
 * @brief Frequencies of rotary embedding, scaled for contexts longer than the original one.
 *
 * Linear: Chen et al. 2023, Position Interpolation. Llama3: Llama Team 2024, The Llama 3 Herd of
 * Models, and Meta's reference code. YaRN: Peng et al. 2023.
 */
#ifndef WARPBOOK_COMMON_MODELS_LLAMA2_ROPE_H_
#define WARPBOOK_COMMON_MODELS_LLAMA2_ROPE_H_

#include "common/checkpoints/llama2/llama2_weights.h"

/** Computes the radians that each pair of channels turns per position. @param frequencies (HS/2) */
void llama2_rope_frequencies(float *frequencies, const struct llama2_config *config);

#endif
