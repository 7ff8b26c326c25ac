/**
 * @file remote_models.h
 * @brief Whole models on a worker's engine: what comes of them, and what they take.
 */
#ifndef WARPBOOK_GRADER_HARNESS_REMOTE_MODELS_H_
#define WARPBOOK_GRADER_HARNESS_REMOTE_MODELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/llama2.h"
#include "grader/harness/small_llama2.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Decodes with random weights on the reference engine here and on the worker's there; the
 *        running test fails when one of them does.
 * @param what    what the subject is told when it crashes: "a small Llama2 with your matmul"
 * @param seconds most that its decoding may take
 * @return whether there are logits to compare
 */
bool remote_small_llama2(struct small_llama2 *l, const char *what, unsigned seconds);

/** A random Llama2 in the worker in use, fed from here. */
struct remote_llama2 {
    void *model;     /**< the worker's */
    int32_t *tokens; /**< arena, (batch) */
    float *logits;   /**< arena, (V) */
    size_t batch, V;
};

/**
 * @brief Makes the model in the worker in use.
 * @param seed   of the weights: not the one that other inputs come from
 * @param batch  most tokens of one call
 * @param beside a model in the same worker whose engine it uses, too, and which is freed after it;
 *               NULL: it has its own
 * @return STATUS_OK or what the worker says
 */
MUST_CHECK enum status remote_llama2_create(struct remote_llama2 *llama2,
                                            const struct llama2_config *config, uint64_t seed,
                                            size_t batch, const struct remote_llama2 *beside,
                                            struct error *error);

/**
 * @brief Feeds tokens, as llama2_forward() does.
 * @param tokens host, (count)
 * @param logits receives those of the last token: (V), host
 * @param ms     receives the call's milliseconds, as remote_call_timed() has them; NULL: not timed
 */
MUST_CHECK enum status remote_llama2_forward(struct remote_llama2 *llama2, const int32_t *tokens,
                                             size_t count, size_t position, float *logits,
                                             double *ms, struct error *error);

/** Frees the worker's model; the worker that made it must be in use. */
void remote_llama2_free(struct remote_llama2 *llama2);

#ifdef __cplusplus
}
#endif

#endif
