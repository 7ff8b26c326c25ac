/**
 * @file llama2_random.h
 * @brief Llama2 weights from a seed, for benches and tests of shapes without a checkpoint.
 */
#ifndef WARPBOOK_COMMON_MODEL_LLAMA2_RANDOM_H_
#define WARPBOOK_COMMON_MODEL_LLAMA2_RANDOM_H_

#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/formats/llama2_weights.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Random model: weights and the memory that holds them. */
struct llama2_random {
    struct llama2_config config;
    struct llama2_weights weights;
    struct arena arena;
};

/** Sizes people know by their number of parameters. */
enum llama2_shape {
    LLAMA2_SHAPE_15M,  /**< stories15M: C 288, hidden 768, 6 layers, 6 heads */
    LLAMA2_SHAPE_110M, /**< stories110M: C 768, hidden 2048, 12 layers, 12 heads */
    LLAMA2_SHAPE_1B    /**< TinyLlama 1.1B: C 2048, hidden 5632, 22 layers, 32 heads, 4 KV heads */
};

/** @return sizes of the shape with 32,000 tokens; contexts 256, 1024 and 2048. */
struct llama2_config llama2_shape_config(enum llama2_shape shape);

/**
 * @brief Fills a model with normal values of standard deviation 1/sqrt(inputs), norms around 1,
 *        classifier shared with the embedding, so that activations neither vanish nor explode.
 * @param config HS must be C / NH
 */
MUST_CHECK enum status llama2_random_create(struct llama2_random *model,
                                            const struct llama2_config *config, uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void llama2_random_free(struct llama2_random *model);

#ifdef __cplusplus
}
#endif

#endif
