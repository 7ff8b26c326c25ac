/**
 * @file engine_layer.h
 * @brief An engine made of another one: every entry passes on, until the stage replaces some.
 *
 * So a stage's engine is a few lines:
 *
 *     static enum status my_matmul(void *context, float *out, ...) {
 *         struct stage *stage = engine_layer_own(context);
 *         ...
 *     }
 *
 *     status = engine_layer_create(engine, "04_sgemm", &base, stage, free);
 *     engine->matmul = my_matmul;
 */
#ifndef WARPBOOK_COMMON_MODELS_ENGINE_LAYER_H_
#define WARPBOOK_COMMON_MODELS_ENGINE_LAYER_H_

#include "common/base/status.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes an engine that passes every call on to @p base.
 *
 * A stage that replaces an operator sets the fused entries that contain it to
 * NULL, or to its own: passed on, they would go by the base's operator.
 *
 * The new engine owns @p base and @p own and destroys both, own first; on
 * failure too. *base is zeroed. A caller who keeps the base passes a copy of it
 * with destroy = NULL.
 *
 * @param name        of the new engine; must live as long
 * @param own         what replaced entries need, or NULL
 * @param destroy_own frees @p own, or NULL
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status engine_layer_create(struct engine *engine, const char *name,
                                           struct engine *base, void *own,
                                           void (*destroy_own)(void *own));

/** @return what was given as own; @p context is the one a replaced entry was called with. */
void *engine_layer_own(void *context);

/** @return the engine below, for a replaced entry that calls on. */
const struct engine *engine_layer_base(void *context);

#ifdef __cplusplus
}
#endif

#endif
