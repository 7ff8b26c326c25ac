/**
 * @file decoding.h
 * @brief A Llama2 on the learner's engine, run in the worker, that decodes whole texts: their loops
 *        are timed as one call.
 *
 * Weights are random and made from a seed that is the model's alone, as in models.h.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_DECODING_H_
#define WARPBOOK_GRADER_ISOLATION_DECODING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/llama2.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The model of rounded_llama2.h, given to the engine as it is stored. */
struct decoding_create_call {
    struct llama2_config config;
    enum nn_dtype dtype; /**< of matrices and KV cache */
    bool own_classifier;
    uint64_t seed; /**< of the weights */
    size_t batch;  /**< most tokens of a prompt */
    void *model;   /**< receives what the others are given */
};

/** Feeds a text, a token a call, with logits of each. */
struct decoding_text_call {
    void *model;
    const int32_t *tokens;  /**< arena, (count) */
    size_t count, position; /**< and of the first one */
    float *logits;          /**< arena, (V): receives those of the last; or (count, V), see each */
    size_t each;            /**< V: those of each token are wanted; 0: of the last */
};

/** Feeds a prompt at once, and has the engine draw what follows. */
struct decoding_write_call {
    void *model;
    const int32_t *prompt; /**< arena, (length) */
    size_t length;
    struct llama2_sampling sampling;
    size_t count;     /**< of tokens to draw */
    int32_t *written; /**< arena, (count): receives them */
};

enum status worker_decoding_create(void *call, struct error *error);
enum status worker_decoding_text(void *call, struct error *error);
enum status worker_decoding_write(void *call, struct error *error);
/** Takes a struct decoding_text_call, of which it uses model only. */
enum status worker_decoding_free(void *call, struct error *error);

#define WORKER_DECODING                                                                  \
    {"decoding_create", sizeof(struct decoding_create_call), worker_decoding_create},    \
        {"decoding_text", sizeof(struct decoding_text_call), worker_decoding_text},      \
        {"decoding_write", sizeof(struct decoding_write_call), worker_decoding_write}, { \
        "decoding_free", sizeof(struct decoding_text_call), worker_decoding_free         \
    }

#ifdef __cplusplus
}
#endif

#endif
