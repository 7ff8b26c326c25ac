/**
 * @file model_outcome.h
 * @brief A few training steps of a small model, and how alike two engines' results are; for tests.
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_MODEL_OUTCOME_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_MODEL_OUTCOME_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/train/models/train_model.h"

enum { MODEL_OUTCOME_STEPS = 2 };

/** What the steps give; zero-initialised when empty. */
struct model_outcome {
    double loss[MODEL_OUTCOME_STEPS], norm[MODEL_OUTCOME_STEPS];
    double *gradient; /**< (count), of the first step */
    double *weights;  /**< (count), after the last one */
    size_t count;
};

/** Most differences, as shares of the right value: of a gradient's norm, and of a loss. */
struct model_outcome_allowed {
    double gradient, loss;
};

/**
 * @brief Trains with the same weights, batches and dropout on any engine.
 * @param whole steps by train_model_step(), except the first, whose gradient is read
 * @return false after noting a failure of the running test; @p o is to be freed also then
 */
bool model_outcome_run(struct model_outcome *o, const struct train_engine *engine,
                       const struct train_config *config, bool whole);

void model_outcome_free(struct model_outcome *o);

/** Fails the running test unless losses, norms, gradient and weights agree. */
void model_outcome_compare(const struct model_outcome *want, const struct model_outcome *got,
                           struct model_outcome_allowed allowed, const char *what);

/** Fails the running test unless both have the same bits. */
void model_outcome_same(const struct model_outcome *first, const struct model_outcome *second,
                        const char *what);

#endif
