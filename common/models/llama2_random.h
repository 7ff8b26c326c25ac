/**
 * @file llama2_random.h
 * @brief Random Llama2 weights from a seed, for benches and tests that need no checkpoint.
 */
#ifndef WARPBOOK_COMMON_MODELS_LLAMA2_RANDOM_H_
#define WARPBOOK_COMMON_MODELS_LLAMA2_RANDOM_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/checkpoints/llama2/llama2_weights.h"

/** Random model: weights and the memory that holds them. */
struct llama2_random {
    struct llama2_config config;
    struct llama2_weights weights;
    struct arena arena;
};

/** Model sizes known by their number of parameters. */
enum llama2_shape {
    LLAMA2_SHAPE_260K, /**< stories260K: C 64, hidden 172, 5 layers, 8 heads, 4 KV heads, 512 tokens
                        */
    LLAMA2_SHAPE_15M,  /**< stories15M: C 288, hidden 768, 6 layers, 6 heads */
    LLAMA2_SHAPE_110M, /**< stories110M: C 768, hidden 2048, 12 layers, 12 heads */
    LLAMA2_SHAPE_1B,   /**< TinyLlama 1.1B: C 2048, hidden 5632, 22 layers, 32 heads, 4 KV heads */
    LLAMA2_SHAPE_7B,   /**< Llama2 7B: C 4096, hidden 11008, 32 layers, 32 heads */
    LLAMA2_SHAPES
};

/** @return the shape's sizes; V is 512 for 260K, else 32,000; T is 512, 256, 1024, 2048, 4096. */
struct llama2_config llama2_shape_config(enum llama2_shape shape);

/** @return "260K", "15M", "110M", "1.1B", "7B". */
const char *llama2_shape_name(enum llama2_shape shape);

/** Parses "260k", "15m", "110m", "1.1b", "7b". @return STATUS_INVALID_ARGUMENT for other texts */
MUST_CHECK enum status llama2_shape_parse(const char *text, enum llama2_shape *shape,
                                          struct error *error);

/**
 * @brief Fills a model with normal values of standard deviation 1/sqrt(inputs) and norms around 1,
 *        so that activations neither vanish nor explode. The classifier is the embedding.
 * @param config HS must be C / NH
 */
MUST_CHECK enum status llama2_random_create(struct llama2_random *model,
                                            const struct llama2_config *config, uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void llama2_random_free(struct llama2_random *model);

/** Random weights as a file would store them, for shapes too large to draw every number. */
struct llama2_random_stored {
    struct llama2_config config;
    struct llama2_stored_weights weights;
    void *block, *norms; /* the tensors are views of these */
};

/**
 * @brief Makes weights in little host memory: matrices are views of one block of normal values,
 *        each at another offset; the block is about as large as the largest matrix. Norms are
 *        around 1.
 *
 * The standard deviation is 1/sqrt(C) in all of them, so that activations neither vanish nor
 * explode. Rows of a matrix differ from each other.
 *
 * @param shared whether the classifier is the embedding
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status llama2_random_stored_create(struct llama2_random_stored *model,
                                                   const struct llama2_config *config,
                                                   enum nn_dtype dtype, bool shared, uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void llama2_random_stored_free(struct llama2_random_stored *model);

#endif
