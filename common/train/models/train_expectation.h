/**
 * @file train_expectation.h
 * @brief For tests: training on any engine against the recordings of PyTorch in
 *        expectations/train.json.
 *
 * Cases: "classifier" and "masked" (BERT: C 32, heads of 16 channels), "language" and
 * "language_tied" (Llama2: C 64, heads of 16 channels, half as many key heads).
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_EXPECTATION_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_EXPECTATION_H_

#include <stddef.h>

#include "common/train/train_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Notes a failure of the running test unless the engine's gradient of the case's first batch
 *        is the framework's: of each tensor the norm, and each recorded element as a share of the
 *        tensor's largest. Prints the largest error.
 *
 * A tensor that has no gradient (a key's bias, which softmax does not feel) is held to 1e-3 of the
 * whole gradient: what is there is left over when terms cancel.
 */
void train_expectation_gradient(const struct train_engine *engine, const char *name,
                                double tolerance);

/**
 * @brief Notes a failure unless the loss of each of the first @p steps steps (at most 200) is the
 *        framework's. Prints the largest error.
 * @param tolerance relative
 */
void train_expectation_losses(const struct train_engine *engine, const char *name, size_t steps,
                              double tolerance);

#ifdef __cplusplus
}
#endif

#endif
