/**
 * @file seed.h
 * @brief The seed of a graded run, which a submission cannot foresee.
 */
#ifndef WARPBOOK_GRADER_HARNESS_SEED_H_
#define WARPBOOK_GRADER_HARNESS_SEED_H_

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

#ifdef __cplusplus
}
#endif

#endif
