/**
 * @file engine.h
 * @brief Stage 01 of the course: the CPU engine (common/cpu) with lab 01's matmul.
 */
#ifndef WARPBOOK_LABS_01_CPU_MATMUL_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_01_CPU_MATMUL_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine.
 * @param threads most threads of one operator, at least 1
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status engine_cpu_matmul_create(struct engine *engine, int threads);

#ifdef __cplusplus
}
#endif

#endif
