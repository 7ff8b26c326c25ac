/**
 * @file calibration.h
 * @brief An engine on the CPU that, while a model runs, gathers X^T X of the inputs of chosen
 *        matrices: the calibration pass of GPTQ.
 */
#ifndef WARPBOOK_COMMON_QUANTIZE_CALIBRATION_H_
#define WARPBOOK_COMMON_QUANTIZE_CALIBRATION_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"

/** Makes the engine. Its context is for the functions below. @param threads at least 1 */
MUST_CHECK enum status calibration_engine_create(struct engine *engine, int threads);

/**
 * @brief Begins to gather for a matrix.
 * @param weights as the model got it: host, (rows, K)
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY: K * K doubles
 */
MUST_CHECK enum status calibration_add(struct engine *engine, const float *weights, size_t K);

/** @return X^T X (K, K), at and above the diagonal, of the inputs so far; NULL: not gathered. */
double *calibration_of(const struct engine *engine, const float *weights);

/**
 * @brief From now on the model computes with other weights in place of these.
 * @param other (rows, K), of malloc(); the engine becomes its owner, also after a failure
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status calibration_replace(struct engine *engine, const float *weights,
                                           float *other);

/** Forgets what was gathered; replaced weights stay. */
void calibration_clear(struct engine *engine);

#endif
