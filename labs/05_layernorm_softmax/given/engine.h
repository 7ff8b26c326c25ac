/**
 * @file engine.h
 * @brief Stage 05 of the course: stage 04's engine with lab 05's norms and softmax.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_layernorm_softmax_create(struct engine *engine, struct error *error);

/** As engine_layernorm_softmax_create() with another function, for comparing. */
MUST_CHECK enum status engine_layernorm_softmax_create_with(struct engine *engine,
                                                            rows_function *run,
                                                            struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void rows_name_tensors(const struct rows_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
