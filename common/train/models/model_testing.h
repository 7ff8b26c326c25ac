/**
 * @file model_testing.h
 * @brief Small models of each kind, weights computed from names, and batches, for tests.
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_MODEL_TESTING_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_MODEL_TESTING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/train/models/train_model.h"

/** @return number @p index of a tensor, in [-1, 1), a multiple of 2^-23, as make_train.py has it.
 */
double model_testing_uniform(const char *name, size_t index);

/**
 * @brief Sets every parameter to values that are exact in fp32: matrices up to 1/4, vectors up to
 *        1/8, norms' weights within 1/8 of 1. Fails the running test if it cannot.
 */
bool model_testing_fill(struct train_model *model);

/**
 * @brief Makes a reference engine and a model on it, and fills the model.
 * @return false after noting a failure of the running test; both are to be freed also then
 */
bool model_testing_create(struct train_model **model, struct train_engine *engine,
                          const struct train_config *config);

/** Sizes of the small models. */
enum {
    MODEL_TESTING_V = 37,
    MODEL_TESTING_T = 9,
    MODEL_TESTING_LABELS = 3,
    MODEL_TESTING_ROWS = 40,
    MODEL_TESTING_SEQUENCES = 8
};

/** @return C 16, hidden 20, 2 layers, 2 heads. @param task TRAIN_CLASSIFY or TRAIN_MLM */
struct train_config model_testing_bert(enum train_task task, float dropout);

/** @return C 16, hidden 20, 2 layers, 4 heads, 2 key heads. */
struct train_config model_testing_llama2(bool tied, enum nn_rope_layout layout);
struct train_config model_testing_gpt_neox(bool tied, bool parallel);

/** A batch and its memory. */
struct model_testing_batch {
    int32_t ids[MODEL_TESTING_ROWS], labels[MODEL_TESTING_ROWS];
    int32_t starts[MODEL_TESTING_SEQUENCES + 1];
    size_t B;
};

/**
 * @brief Draws ids and labels: classes, or a token for two of three rows and -1 for the third.
 * @param lengths (B); their sum is at most MODEL_TESTING_ROWS
 * @return the batch as the model takes it
 */
struct train_batch model_testing_draw(struct model_testing_batch *batch, enum train_task task,
                                      const size_t *lengths, size_t B, uint64_t seed);

/** @return the batch as the model takes it. */
struct train_batch model_testing_view(const struct model_testing_batch *batch);

/** @return the batch's loss without dropout; NaN after noting a failure. */
double model_testing_evaluate(struct train_model *model, const struct train_batch *batch,
                              float scale);

/** @return the loss of a backward pass, whose gradient is added. */
double model_testing_backward(struct train_model *model, const struct train_batch *batch,
                              float scale, uint64_t seed, uint32_t step);

/** @return a state of all parameters, one after the other, which the caller frees; or NULL. */
double *model_testing_read(const struct train_model *model, enum train_state state, size_t *count);

/** Sets gradients to 0. */
bool model_testing_clear(struct train_model *model);

/** @return ||got - want|| / ||want||, infinite when not finite. */
double model_testing_distance(const double *got, const double *want, size_t count);

#endif
