/**
 * @file gpt_neox_random.h
 * @brief Random GPT-NeoX weights from a seed, for benches and tests that need no checkpoint.
 */
#ifndef WARPBOOK_COMMON_MODELS_GPT_NEOX_RANDOM_H_
#define WARPBOOK_COMMON_MODELS_GPT_NEOX_RANDOM_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"

/** Random model: weights and the memory that holds them. */
struct gpt_neox_random {
    struct gpt_neox_config config;
    struct gpt_neox_weights weights;
    struct arena arena;
};

/** The sizes of Pythia (Biderman et al. 2023), known by their number of parameters. */
enum gpt_neox_shape {
    GPT_NEOX_SHAPE_70M,  /**< C 512, 6 layers, 8 heads of 64 */
    GPT_NEOX_SHAPE_160M, /**< C 768, 12 layers, 12 heads of 64 */
    GPT_NEOX_SHAPE_410M, /**< C 1024, 24 layers, 16 heads of 64 */
    GPT_NEOX_SHAPE_1_4B, /**< C 2048, 24 layers, 16 heads of 128 */
    GPT_NEOX_SHAPE_2_8B, /**< C 2560, 32 layers, 32 heads of 80 */
    GPT_NEOX_SHAPE_6_9B, /**< C 4096, 32 layers, 32 heads of 128 */
    GPT_NEOX_SHAPE_12B,  /**< C 5120, 36 layers, 40 heads of 128 */
    GPT_NEOX_SHAPES
};

/** @return the shape's sizes: hidden is 4 C, a quarter of each head is rotated, T is 2048. */
struct gpt_neox_config gpt_neox_shape_config(enum gpt_neox_shape shape);

/** @return "70M", "160M", "410M", "1.4B", "2.8B", "6.9B", "12B". */
const char *gpt_neox_shape_name(enum gpt_neox_shape shape);

/** Parses "70m", "160m" and so on. @return STATUS_INVALID_ARGUMENT for other texts */
MUST_CHECK enum status gpt_neox_shape_parse(const char *text, enum gpt_neox_shape *shape,
                                            struct error *error);

/**
 * @brief Fills a model with normal values: matrices of standard deviation 1/sqrt(inputs), norms
 *        around 1, biases around 0, so that activations neither vanish nor explode.
 * @param shared whether the classifier is the embedding
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status gpt_neox_random_create(struct gpt_neox_random *model,
                                              const struct gpt_neox_config *config, bool shared,
                                              uint64_t seed);

/** Frees; a zero-initialised one is allowed. */
void gpt_neox_random_free(struct gpt_neox_random *model);

#endif
