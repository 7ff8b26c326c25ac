/**
 * @file cpu_engine.h
 * @brief An engine for inference on the CPU, in fp32: every operator vectorised and on all cores,
 *        around a matmul that the caller brings.
 *
 * Lab 01's stage is this engine with the learner's matmul. common/nn has the same operators as an
 * oracle in double.
 */
#ifndef WARPBOOK_COMMON_CPU_CPU_ENGINE_H_
#define WARPBOOK_COMMON_CPU_CPU_ENGINE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"

/** out (M, N) = in (M, K) * weight (N, K)^T on at most @p threads threads, at least 1. */
typedef enum status cpu_engine_matmul(float *out, const float *in, const float *weight, size_t M,
                                      size_t N, size_t K, int threads);

/**
 * @brief Makes the engine.
 *
 * It fuses the bias, the activation and the norm that follow a matmul. A layer above that replaces
 * matmul must set linear, linear_activation and linear_residual_layernorm to NULL.
 *
 * @param name    must live as long as the engine
 * @param threads most threads of one operator, at least 1; beside other work fewer: team.h
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status cpu_engine_create(struct engine *engine, const char *name,
                                         cpu_engine_matmul *matmul, int threads);

#endif
