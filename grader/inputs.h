/**
 * @file inputs.h
 * @brief Inputs that a submission cannot foresee.
 */
#ifndef WARPBOOK_GRADER_INPUTS_H_
#define WARPBOOK_GRADER_INPUTS_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Seed of this run: from the operating system, or $WARPBOOK_SEED to repeat a run.
 *
 * It is printed once, so that a failure can be repeated with
 * `bazel test --test_env=WARPBOOK_SEED=N ...`.
 */
uint64_t grader_seed(void);

/**
 * @brief Normal values with an offset and a scale of each row's own, so that no
 *        row can be had from another and no row is negligible.
 * @param out host, (rows, columns)
 */
void grader_fill(struct rng *rng, float *out, size_t rows, size_t columns);

#ifdef __cplusplus
}
#endif

#endif
