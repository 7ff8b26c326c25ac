/**
 * @file compare_logits.h
 * @brief Whether two runs of a model give the same logits.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_COMPARE_LOGITS_H_
#define WARPBOOK_COMMON_BENCH_MODELS_COMPARE_LOGITS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @return the largest |got - want| of @p count values, relative to the largest |want|; infinite
 * when a value is not finite, also a wanted one
 */
double largest_difference(const float *got, const float *want, size_t count);

/**
 * @brief Compares logits.
 * @param got       host, (count)
 * @param got_name  for the message: "v2_tile"
 * @param want      host, (count)
 * @param want_name for the message
 * @return STATUS_OK; STATUS_MISMATCH, naming both, when the largest difference is 1e-3 of the
 *         largest logit of @p want or more, or when a logit of @p got is not finite
 */
MUST_CHECK enum status compare_logits(const float *got, const char *got_name, const float *want,
                                      const char *want_name, size_t count, struct error *error);

/** @return how far a stage's logits may be from another's, relative to the largest of them. */
double logits_tolerance(enum nn_dtype dtype);

/**
 * @brief Compares a stage's logits with those of the first stage that ran.
 * @param what       for the message: "after the prompt"
 * @param difference receives largest_difference()
 * @return STATUS_OK; STATUS_MISMATCH, naming both stages, when it is above logits_tolerance()
 */
MUST_CHECK enum status compare_stage_logits(const float *got, const char *got_name,
                                            enum nn_dtype dtype, const char *what,
                                            const float *want, const char *want_name, size_t count,
                                            double *difference, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
