/**
 * @file engine.h
 * @brief Lab 11's engine for training: given kernels, and the lab's three functions.
 */
#ifndef WARPBOOK_LABS_11_TRAINING_GIVEN_ENGINE_H_
#define WARPBOOK_LABS_11_TRAINING_GIVEN_ENGINE_H_

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/train/train_engine.h"
#include "labs/11_training/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Makes the engine: activations fp32 or bf16, weights fp32.
 * @param dtype NN_F32 or NN_BF16
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, STATUS_INVALID_ARGUMENT (dtype), STATUS_UNSUPPORTED
 *         (bf16 on a GPU before compute capability 8.0), or what device_open() says
 */
MUST_CHECK enum status training_engine_create(struct train_engine *engine, enum nn_dtype dtype,
                                              struct error *error);

/** As training_engine_create() with other functions, for comparing. @param functions copied */
MUST_CHECK enum status training_engine_create_with(struct train_engine *engine, enum nn_dtype dtype,
                                                   const struct training_functions *functions,
                                                   struct error *error);

/** @return the stream of an engine made here: all of its work is on it. */
device_stream training_engine_stream(const struct train_engine *engine);

/** @return how often the work of at_once() was one launch. */
size_t training_engine_launched_at_once(const struct train_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
