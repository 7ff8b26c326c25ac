/**
 * @file engine_layer.h
 * @brief An engine on top of another one: every entry calls the engine below, until a stage
 *        replaces some entries.
 *
 * With it a stage's engine is a few lines:
 *
 *     static enum status my_matmul(void *context, float *out, ...) {
 *         struct stage *stage = engine_layer_own(context);
 *         ...
 *     }
 *
 *     const struct stage stage = {.run = run};
 *     TRY(engine_layer_create_copy(engine, "04_sgemm", &base, &stage, sizeof stage, NULL, error));
 *     engine->matmul = my_matmul;
 */
#ifndef WARPBOOK_COMMON_MODELS_ENGINE_LAYER_H_
#define WARPBOOK_COMMON_MODELS_ENGINE_LAYER_H_

#include "common/base/status.h"
#include "common/models/engine.h"

/**
 * @brief Makes an engine that passes every call on to @p base.
 *
 * A stage that replaces an operator must also replace the fused entries that contain it, or set
 * them to NULL; otherwise they would still use the base's operator.
 *
 * The new engine owns @p base and @p own and destroys both, own first, also when this call fails.
 * *base is zeroed. To keep the base, pass a copy of it with destroy = NULL.
 *
 * @param name        of the new engine; must live as long
 * @param own         the stage's own context, for replaced entries, or NULL
 * @param destroy_own frees @p own, or NULL
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status engine_layer_create(struct engine *engine, const char *name,
                                           struct engine *base, void *own,
                                           void (*destroy_own)(void *own));

/**
 * @brief engine_layer_create() with a copy of the @p bytes bytes at @p own as the stage's context.
 * @param release releases what the context holds, but not the context; or NULL. As the base, that
 *                is released also when this call fails.
 * @param error   of a failure, or NULL
 */
MUST_CHECK enum status engine_layer_create_copy(struct engine *engine, const char *name,
                                                struct engine *base, const void *own, size_t bytes,
                                                void (*release)(void *own), struct error *error);

/** @return the stage's own context. @param context the context that a replaced entry received */
void *engine_layer_own(void *context);

/** @return the engine below, for a replaced entry that calls the replaced operator. */
const struct engine *engine_layer_base(void *context);

#endif
