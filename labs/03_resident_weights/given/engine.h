/**
 * @file engine.h
 * @brief Stage 03 of the course: every operator on the GPU, memory managed by resident.h.
 */
#ifndef WARPBOOK_LABS_03_RESIDENT_WEIGHTS_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_03_RESIDENT_WEIGHTS_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/models/engine.h"
#include "labs/03_resident_weights/resident.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of device_open()
 */
MUST_CHECK enum status engine_resident_create(struct engine *engine, struct error *error);

/**
 * @brief Finds stage 03 below the stages that are layers over it.
 * @param engine stage 03, or a later stage that is a layer over it
 * @return the state of stage 03; it lives as long as the engine
 */
struct resident *engine_resident_of(const struct engine *engine);

/** *stream = the stream of all its work. @return the status of resident_call() */
MUST_CHECK enum status engine_resident_stream(struct resident *resident, device_stream *stream,
                                              struct error *error);

#ifdef __cplusplus
}
#endif

#endif
