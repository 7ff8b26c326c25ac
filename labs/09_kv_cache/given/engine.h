/**
 * @file engine.h
 * @brief Stage 09 of the course: the stage before it, and a decoder that takes one token after the
 *        other through lab 09's operators.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_09_KV_CACHE_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Lab 09's operators: kv_linear() and kv_attention(), or two like them. */
struct kv_functions {
    enum status (*linear)(const struct kv_linear *linear, device_stream stream,
                          struct error *error);
    enum status (*attention)(const struct kv_attention *attention, void *workspace,
                             device_stream stream, struct error *error);
};

/**
 * @brief Makes the engine.
 *
 * Its decoder takes heads of up to KV_MAX_HS channels; other models run operator by operator, as on
 * the stage below.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_kv_cache_create(struct engine *engine, struct error *error);

/** As engine_kv_cache_create() with other operators, for comparing. @param functions copied */
MUST_CHECK enum status engine_kv_cache_create_with(struct engine *engine,
                                                   const struct kv_functions *functions,
                                                   struct error *error);

#ifdef __cplusplus
}
#endif

#endif
