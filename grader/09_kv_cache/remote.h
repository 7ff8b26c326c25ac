/**
 * @file remote.h
 * @brief Lab 09's operators in the worker in use, called instead of kv_cache.h's.
 */
#ifndef WARPBOOK_GRADER_09_KV_CACHE_REMOTE_H_
#define WARPBOOK_GRADER_09_KV_CACHE_REMOTE_H_

#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As kv_linear() and kv_attention(); STATUS_INTERRUPTED when the worker is no more. */
MUST_CHECK enum status remote_kv_linear(const struct kv_linear *linear, device_stream stream,
                                        struct error *error);
MUST_CHECK enum status remote_kv_attention(const struct kv_attention *attention, void *workspace,
                                           device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
