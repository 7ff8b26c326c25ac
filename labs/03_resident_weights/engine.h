/**
 * @file engine.h
 * @brief Stage 03 of the course: every operator on the GPU, memory as resident.h has it.
 */
#ifndef WARPBOOK_LABS_03_RESIDENT_WEIGHTS_ENGINE_H_
#define WARPBOOK_LABS_03_RESIDENT_WEIGHTS_ENGINE_H_

#include "common/base/status.h"
#include "common/model/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_resident_create(struct engine *engine, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
