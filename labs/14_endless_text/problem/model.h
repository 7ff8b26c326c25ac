/**
 * @file model.h
 * @brief A random model of either family with its weights on the device, and the same in double on
 *        the CPU: its attention looks up what it sees by places in the keys and values of the whole
 *        text.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_PROBLEM_MODEL_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_PROBLEM_MODEL_H_

#include "common/base/rng.h"
#include "labs/14_endless_text/given/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ENDLESS_CASE_LAYERS = 4, ENDLESS_CASE_WEIGHTS = 14 * ENDLESS_CASE_LAYERS + 4 };

/** A weight, host and device. */
struct endless_weight {
    float *host; /**< as stored */
    void *device;
};

struct endless_case {
    struct endless_model model; /**< device memory; its layers are `layers` */
    struct endless_layer layers[ENDLESS_CASE_LAYERS];
    struct endless_weight weights[ENDLESS_CASE_WEIGHTS];
    struct endless_model host; /**< the same with pointers to host memory, fp32 */
    struct endless_layer host_layers[ENDLESS_CASE_LAYERS];
    size_t count; /**< weights */
    size_t tokens, position;
    double *k, *v;  /**< (L, tokens, KVH*HS) */
    double *buffer; /**< activations */
    float *want;    /**< (V): logits of the last token */
};

/**
 * @brief Draws weights and puts them on the device.
 * @param shape  sizes, flags and dtype; its pointers are not looked at
 * @param biases whether matrices and norms have biases
 * @param tokens the longest text
 */
MUST_CHECK enum status endless_case_create(struct endless_case *c,
                                           const struct endless_model *shape, bool biases,
                                           size_t tokens, uint64_t seed, struct error *error);

/** Computes the logits of the next token, in c->want. */
void endless_case_next(struct endless_case *c, int32_t token);

/** @return difference allowed to a logit: 1e-4 of the largest in fp32, 8 roundings in 16 bits. */
double endless_case_tolerance(const struct endless_case *c);

/** Begins a new text. */
void endless_case_restart(struct endless_case *c);

/** Frees; allowed after endless_case_create() has failed. */
void endless_case_free(struct endless_case *c);

/** A small model like GPT-NeoX: LayerNorms, parallel residual, partial rotary embedding in halves.
 */
struct endless_model endless_small_neox(enum nn_dtype dtype);

/** A small Llama2: RMSNorm, sequential residual, grouped heads, SwiGLU. */
struct endless_model endless_small_llama2(enum nn_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
