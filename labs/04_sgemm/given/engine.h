/**
 * @file engine.h
 * @brief Stage 04 of the course: stage 03's engine with lab 04's SGEMM as its matmul.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_04_SGEMM_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/04_sgemm/sgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_sgemm_create(struct engine *engine, struct error *error);

/** As engine_sgemm_create() with another function than sgemm(), for comparing. */
MUST_CHECK enum status engine_sgemm_create_with(struct engine *engine, sgemm_function *run,
                                                struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void sgemm_name_tensors(const struct sgemm_problem *problem);

#ifdef __cplusplus
}
#endif

#endif
