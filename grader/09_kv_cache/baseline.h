/**
 * @file baseline.h
 * @brief What lab 09's starter does: the baseline of its speedups.
 */
#ifndef WARPBOOK_GRADER_09_KV_CACHE_BASELINE_H_
#define WARPBOOK_GRADER_09_KV_CACHE_BASELINE_H_

#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As kv_linear(): a thread an output. */
MUST_CHECK enum status kv_linear_baseline(const struct kv_linear *linear, device_stream stream,
                                          struct error *error);

/** As kv_attention(): with inputs, keys and values of all earlier tokens are computed anew. */
MUST_CHECK enum status kv_attention_baseline(const struct kv_attention *attention, void *workspace,
                                             device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
