/**
 * @file engine.h
 * @brief Stage 02 of the course: stage 01's engine with its matmul on the GPU; each call copies its
 *        operands.
 */
#ifndef WARPBOOK_LABS_02_GPU_MATMUL_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_02_GPU_MATMUL_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine. All memory stays on the host; matmul copies its operands to the GPU.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of device_open()
 */
MUST_CHECK enum status engine_gpu_matmul_create(struct engine *engine, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
