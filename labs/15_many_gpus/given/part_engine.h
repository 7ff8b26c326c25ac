/**
 * @file part_engine.h
 * @brief Given: lab 10's engine over a rank's part of a Llama2 and the cut decoder (decoder.h).
 */
#ifndef WARPBOOK_LABS_15_MANY_GPUS_GIVEN_PART_ENGINE_H_
#define WARPBOOK_LABS_15_MANY_GPUS_GIVEN_PART_ENGINE_H_

#include "common/models/engine.h"
#include "labs/15_many_gpus/many_gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

/** COLLECTIVE: makes the engine. @param comm outlives it */
MUST_CHECK enum status engine_part_create(struct engine *engine, struct comm *comm,
                                          struct error *error);

#ifdef __cplusplus
}
#endif

#endif
