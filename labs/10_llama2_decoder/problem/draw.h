/**
 * @file draw.h
 * @brief Which token may be drawn? The sampler of common/models/sampler.h in double.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_DRAW_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_PROBLEM_DRAW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "labs/10_llama2_decoder/given/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Whether the sampler draws that token; a coin on the edge between two may draw either.
 * @param logits host, (V), finite
 * @param how    as it was before the draw
 * @param text   receives the mistake
 */
bool decoder_token_allowed(const float *logits, size_t V, const struct sampling *how, int32_t token,
                           char *text, size_t size);

/**
 * @brief The same for logits that are known up to an error only.
 * @param how by top_p, or greedy; not by top_k
 * @param off largest error of a logit
 * @return STATUS_OK, with the verdict in *plausible, or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status decoder_token_plausible(const float *logits, size_t V,
                                               const struct sampling *how, int32_t token,
                                               double off, bool *plausible);

enum { DECODER_STATES = 100 };

/**
 * @brief Draws how->state so that the token tells whether the sampler uses its settings.
 *
 * From a random state, a sampler that ignores the temperature, top_p or top_k may still draw an
 * allowed token. Of DECODER_STATES random states this takes the one that tells most of the three.
 *
 * @param logits host, (V), finite
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status decoder_telling_state(const float *logits, size_t V, struct sampling *how,
                                             struct rng *rng);

/** @return the generator's state after a draw. */
uint64_t decoder_state_behind(const struct sampling *how);

#ifdef __cplusplus
}
#endif

#endif
