/**
 * @file engine.h
 * @brief Stage 06 of the course: the stage below with lab 06's fused operators.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_fused_create(struct engine *engine, struct error *error);

/** As engine_fused_create() with another function than fused_epilogues(), for comparing. */
MUST_CHECK enum status engine_fused_create_with(struct engine *engine, fused_function *run,
                                                struct error *error);

/** The solved stage below, which fuses nothing, for comparing. */
MUST_CHECK enum status engine_unfused_create(struct engine *engine, struct error *error);

/**
 * As engine_fused_create(), but it fuses one add: `x + product` is one operation, FUSED_LINEAR_ADD,
 * and bias and LayerNorm are single operators of the stage below.
 */
MUST_CHECK enum status engine_lone_add_create(struct engine *engine, struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void fused_name_tensors(const struct fused_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
