/**
 * @file calibration.h
 * @brief An engine on the CPU that, while a model runs, gathers X^T X of the inputs of chosen
 *        matrices, and by how much they have drifted: the calibration pass of GPTQ.
 *
 * A piece of text runs twice: with the weights as they were, whose inputs are kept, and with those
 * that are rounded already in their places, whose inputs X are gathered and compared.
 */
#ifndef WARPBOOK_COMMON_QUANTIZE_CALIBRATION_H_
#define WARPBOOK_COMMON_QUANTIZE_CALIBRATION_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/models/engine.h"

/** Makes the engine. Its context is for the functions below. @param threads at least 1 */
MUST_CHECK enum status calibration_engine_create(struct engine *engine, int threads);

/** What was gathered for a matrix. */
struct calibration_sums {
    double *hessian; /**< X^T X (K, K), at and above the diagonal */
    double *drift;   /**< (Y - X)^T X (K, K), Y the inputs with the weights as they were */
};

/**
 * @brief Begins to gather for a matrix.
 * @param weights as the model got it: host, (rows, K)
 * @param tokens  the longest piece of text
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY: 2 K * K doubles, tokens * K floats
 */
MUST_CHECK enum status calibration_add(struct engine *engine, const float *weights, size_t K,
                                       size_t tokens);

/** Begins a piece of text, with the weights as they were. */
void calibration_begin(struct engine *engine);

/** Begins the same piece once more, with rounded weights, and gathers. */
void calibration_repeat(struct engine *engine);

/** @return of the inputs so far; NULL pointers: not gathered. */
struct calibration_sums calibration_of(const struct engine *engine, const float *weights);

/**
 * @brief From now on the model computes with other weights in place of these, but for
 *        calibration_begin().
 * @param other (rows, K), of malloc(); the engine becomes its owner, also after a failure
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status calibration_replace(struct engine *engine, const float *weights,
                                           float *other);

/** Forgets what was gathered; replaced weights stay. */
void calibration_clear(struct engine *engine);

#endif
