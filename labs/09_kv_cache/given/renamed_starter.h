/**
 * @file renamed_starter.h
 * @brief The two functions of starter.cu under other names, to run beside yours in one program.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_GIVEN_RENAMED_STARTER_H_
#define WARPBOOK_LABS_09_KV_CACHE_GIVEN_RENAMED_STARTER_H_

#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/** As kv_linear(). */
MUST_CHECK enum status starter_kv_linear(const struct kv_linear *linear, device_stream stream,
                                         struct error *error);

/** As kv_attention(): with `inputs`, computes keys and values of all earlier tokens again. */
MUST_CHECK enum status starter_kv_attention(const struct kv_attention *attention, void *workspace,
                                            device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
