/**
 * @file engine.h
 * @brief Stage 09 of the course: the stage before it, and a decoder that runs one token after the
 * other on lab 09's operators.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_09_KV_CACHE_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Lab 09's operators: kv_linear() and kv_attention(), or other implementations. */
struct kv_functions {
    enum status (*linear)(const struct kv_linear *linear, device_stream stream,
                          struct error *error);
    enum status (*attention)(const struct kv_attention *attention, void *workspace,
                             device_stream stream, struct error *error);
};

/**
 * @brief Creates the engine.
 *
 * Its decoder supports heads of up to KV_MAX_HS channels; other models run operator by operator, as
 * on stage 07. So do relatives of Llama2 with more positions than lab 03's attention takes keys.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of device_open()
 */
MUST_CHECK enum status engine_kv_cache_create(struct engine *engine, struct error *error);

/** As engine_kv_cache_create() with other operators, for comparisons. @param functions copied */
MUST_CHECK enum status engine_kv_cache_create_with(struct engine *engine,
                                                   const struct kv_functions *functions,
                                                   struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void kv_linear_name_tensors(const struct kv_linear *linear);
void kv_attention_name_tensors(const struct kv_attention *attention);

#ifdef __cplusplus
}
#endif

#endif
