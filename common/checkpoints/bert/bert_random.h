/**
 * @file bert_random.h
 * @brief Random BERT weights from a seed, for benches and tests without a checkpoint.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_RANDOM_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_RANDOM_H_

#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"

/** A random model: its weights and the memory that holds them. */
struct bert_random {
    struct bert_config config;
    struct bert_weights weights; /**< inside the arena */
    struct arena arena;
};

/**
 * @brief Creates a model with normally distributed weights: mean 0, and standard deviation
 *        1/sqrt(input features) for matrices, 0.02 for vectors; LayerNorm weights have mean 1.
 *        There is a pooler, and a classifier if config->labels is not 0.
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bert_random_create(struct bert_random *model,
                                          const struct bert_config *config, uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void bert_random_free(struct bert_random *model);

#endif
