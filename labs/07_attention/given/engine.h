/**
 * @file engine.h
 * @brief Stage 07 of the course: the stage before it with lab 07's attention, padded and packed.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_07_ATTENTION_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/07_attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_attention_create(struct engine *engine, struct error *error);

/** As engine_attention_create() with another function than attention(), for comparing. */
MUST_CHECK enum status engine_attention_create_with(struct engine *engine, attention_function *run,
                                                    struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void attention_name_tensors(const struct attention_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
