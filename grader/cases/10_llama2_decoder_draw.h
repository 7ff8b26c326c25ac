/**
 * @file 10_llama2_decoder_draw.h
 * @brief Which token may be drawn? The sampler of common/model/sampler.h in double.
 */
#ifndef WARPBOOK_GRADER_CASES_10_LLAMA2_DECODER_DRAW_H_
#define WARPBOOK_GRADER_CASES_10_LLAMA2_DECODER_DRAW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "labs/10_llama2_decoder/sampling.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Is that the token, but for a coin that falls on the edge between two?
 * @param logits host, (V), finite
 * @param how    as it was before the draw
 * @param text   receives what is wrong
 */
bool decoder_token_allowed(const float *logits, size_t V, const struct sampling *how, int32_t token,
                           char *text, size_t size);

/** @return the generator's state behind a draw. */
uint64_t decoder_state_behind(const struct sampling *how);

#ifdef __cplusplus
}
#endif

#endif
