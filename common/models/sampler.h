/**
 * @file sampler.h
 * @brief Samples the next token from logits: greedy, temperature, top-k, top-p, with llama2.c's
 *        random generator.
 *
 * The same seed and logits give the same tokens as llama2.c (A. Karpathy,
 * run.c): xorshift64* (Vigna 2016), upper 24 of 32 bits as a float. llama2.c has
 * no top_k. With it only the k most likely tokens keep their probability (of
 * equal ones those with the lowest numbers), and top_p is a share of their sum.
 */
#ifndef WARPBOOK_COMMON_MODELS_SAMPLER_H_
#define WARPBOOK_COMMON_MODELS_SAMPLER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/llama2_decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sampler_candidate {
    float probability;
    int32_t token;
};

struct sampler {
    size_t V;
    float temperature;                    /**< 0: greedy */
    float top_p;                          /**< nucleus (Holtzman et al. 2020); <= 0 or >= 1: off */
    size_t top_k;                         /**< 0: off */
    uint64_t state;                       /**< 0: the last logits could not be sampled from */
    struct sampler_candidate *candidates; /**< (V) scratch */
};

/** @return STATUS_INVALID_ARGUMENT if V is 0, or the seed, from which xorshift yields only 0 */
MUST_CHECK enum status sampler_create(struct sampler *sampler, size_t V,
                                      const struct llama2_sampling *how);

void sampler_free(struct sampler *sampler);

/**
 * @brief Samples a token. If a logit is NaN, or the largest is not finite, `state` becomes 0, which
 *        no seed leads to, and the token is 0.
 * @param logits host, (V); overwritten unless greedy
 * @return the chosen token
 */
int32_t sampler_next(struct sampler *sampler, float *logits);

/** Advances the generator as sampler_next() does, after an engine has drawn with its state. */
void sampler_skip(struct sampler *sampler);

#ifdef __cplusplus
}
#endif

#endif
