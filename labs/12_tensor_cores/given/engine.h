/**
 * @file engine.h
 * @brief Stage 12 of the course: lab 08's encoder in bf16, with lab 12's product.
 */
#ifndef WARPBOOK_LABS_12_TENSOR_CORES_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_12_TENSOR_CORES_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/models/engine.h"
#include "labs/12_tensor_cores/tensor_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine: BERT's layers in bf16, everything else as on stage 08 in fp32.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or what device_open() says
 */
MUST_CHECK enum status engine_tensor_cores_create(struct engine *engine, struct error *error);

/** The same with another product, for comparing. @param product must outlive the engine */
MUST_CHECK enum status engine_tensor_cores_create_with(struct engine *engine,
                                                       const struct gemm16_step *product,
                                                       struct error *error);

#ifdef __cplusplus
}
#endif

#endif
