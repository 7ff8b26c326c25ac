/**
 * @file sampler.h
 * @brief Next token from logits: greedy, temperature, top-p, with llama2.c's generator.
 *
 * The same seed and logits give the same tokens as llama2.c (A. Karpathy,
 * run.c): xorshift64* (Vigna 2016), upper 24 of 32 bits as a float.
 */
#ifndef WARPBOOK_COMMON_MODEL_SAMPLER_H_
#define WARPBOOK_COMMON_MODEL_SAMPLER_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sampler_candidate {
    float probability;
    int32_t token;
};

struct sampler {
    size_t V;
    float temperature; /**< 0: greedy */
    float top_p;       /**< nucleus (Holtzman et al. 2020); <= 0 or >= 1: off */
    uint64_t state;
    struct sampler_candidate *candidates; /**< (V) scratch */
};

/** @param seed not 0 (xorshift would stay at 0): STATUS_INVALID_ARGUMENT */
MUST_CHECK enum status sampler_create(struct sampler *sampler, size_t V, float temperature,
                                      float top_p, uint64_t seed);

void sampler_free(struct sampler *sampler);

/** @param logits host, (V); overwritten unless greedy @return the chosen token */
int32_t sampler_next(struct sampler *sampler, float *logits);

#ifdef __cplusplus
}
#endif

#endif
