/**
 * @file bert_random.h
 * @brief BERT weights from a seed, for benches and tests of shapes without a checkpoint.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_RANDOM_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_RANDOM_H_

#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Random model: weights and the memory that holds them. */
struct bert_random {
    struct bert_config config;
    struct bert_weights weights; /**< inside the arena */
    struct arena arena;
};

/**
 * @brief Fills a model with normal values: matrices of standard deviation 1/sqrt(inputs), vectors
 *        0.02, to which norm weights add 1. There is a pooler, and a classifier if config->labels
 *        is not 0.
 */
MUST_CHECK enum status bert_random_create(struct bert_random *model,
                                          const struct bert_config *config, uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void bert_random_free(struct bert_random *model);

#ifdef __cplusplus
}
#endif

#endif
