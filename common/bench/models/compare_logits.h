/**
 * @file compare_logits.h
 * @brief Whether two runs of a model give the same logits.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_COMPARE_LOGITS_H_
#define WARPBOOK_COMMON_BENCH_MODELS_COMPARE_LOGITS_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @return the largest |got - want| of @p count values, relative to the largest |want|; infinite
 * when a value of @p got is not finite
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

#ifdef __cplusplus
}
#endif

#endif
