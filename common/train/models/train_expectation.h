/**
 * @file train_expectation.h
 * @brief Compares training on any engine with the recordings of PyTorch in
 *        expectations/train.json, for tests.
 *
 * Cases: "classifier" and "masked" (BERT: C 32, heads of 16 channels), "language" and
 * "language_tied" (Llama2: C 64, heads of 16 channels, half as many key heads).
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_EXPECTATION_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_EXPECTATION_H_

#include <stddef.h>

#include "common/train/train_engine.h"

/**
 * @brief Compares the engine's gradient of the case's first batch with the framework's: the norm of
 *        each tensor, and each recorded element relative to the tensor's largest. Fails the running
 *        test if they differ, and prints the largest error.
 *
 * A tensor without a gradient (a key's bias, which softmax cancels) is compared relative to 1e-3 of
 * the whole gradient, as it contains only rounding errors.
 */
void train_expectation_gradient(const struct train_engine *engine, const char *name,
                                double tolerance);

/**
 * @brief Compares the loss of each of the first @p steps steps (at most 200) with the framework's.
 *        Fails the running test if they differ, and prints the largest error.
 * @param tolerance relative
 */
void train_expectation_losses(const struct train_engine *engine, const char *name, size_t steps,
                              double tolerance);

#endif
