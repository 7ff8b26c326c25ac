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

/**
 * @return a generator started from grader_seed(), some numbers later. The very first ones would
 * give the seed away, and with it all that follow, to a worker that is told the seed of a model.
 */
struct rng grader_rng(void);

/**
 * @brief A seed that a worker may be told, such as that of a model's weights.
 *
 * It is two numbers of @p rng in one, so that nobody gets from it to the generator, and from there
 * to other seeds and inputs.
 */
uint64_t grader_secret(struct rng *rng);

/** @return a generator of its own for one text: tokens that were seen say nothing about others. */
struct rng grader_text_rng(struct rng *rng);

#ifdef __cplusplus
}
#endif

#endif
