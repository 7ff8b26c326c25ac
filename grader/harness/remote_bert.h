/**
 * @file remote_bert.h
 * @brief A batch through BERT: on the reference engine here, on the workers' engines, and its time.
 */
#ifndef WARPBOOK_GRADER_HARNESS_REMOTE_BERT_H_
#define WARPBOOK_GRADER_HARNESS_REMOTE_BERT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/bert.h"
#include "grader/harness/gpu.h"
#include "grader/isolation/remote.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A random BERT in the worker in use, and a batch for it. */
struct remote_bert {
    void *model;             /**< the worker's */
    struct bert_input input; /**< in the arena */
    float *logits;           /**< arena, (B, labels) */
    size_t count;            /**< B * labels */
};

/**
 * @brief Makes the model in the worker in use and hands it a batch.
 * @param seed  of the weights: not the one that other inputs come from
 * @param input host memory; `types` is not handed on
 * @param without enum worker_operators that do nothing, as bits; 0: the model as it is
 * @param secret whether the weights are to lie in the memory of the worker's device alone, where
 * that is simt: secret_weights.h
 * @return STATUS_OK or what the worker says
 */
MUST_CHECK enum status remote_bert_create(struct remote_bert *bert,
                                          const struct bert_config *config, uint64_t seed,
                                          const struct bert_input *input, size_t rows,
                                          unsigned without, bool secret, struct error *error);

/**
 * @brief Runs the batch.
 * @param logits receives (B, labels), host
 * @param ms     receives its milliseconds, as remote_call_timed() has them
 */
MUST_CHECK enum status remote_bert_run(struct remote_bert *bert, float *logits, double *ms,
                                       struct error *error);

/** Frees the worker's model; the worker that made it must be in use. */
void remote_bert_free(struct remote_bert *bert);

/** A BERT with random weights and a batch for it: the same for whoever runs it. */
struct remote_bert_job {
    struct bert_config config;
    uint64_t seed;           /**< of the weights: not the one that other inputs come from */
    struct bert_input input; /**< host memory, without types; at most config.T tokens a text */
    uint64_t fresh;          /**< seed of the tokens from the second call on; no worker knows it */
    bool secret;             /**< the weights: the subject has them in its device's memory alone */
    const char *what;        /**< what a learner is told when it crashes: "BERT, a batch" */
    unsigned seconds;        /**< most that all runs of one side may take */
    unsigned own;            /**< the lab's operators: enum worker_operators, as bits */
    struct work work;        /**< of these operators alone, in the whole batch */
    enum remote_products products; /**< in which type the engine multiplies; 0: fp32 */
};

/** @return these sizes of a BERT with two token types, GELU and BERT's eps. */
struct bert_config remote_bert_config(struct bert_config sizes);

/**
 * @brief Draws what a job whose time is taken has at random: its two seeds and its tokens.
 * @param ids receives @p count tokens, host; job->input refers to them
 */
void remote_bert_draw(struct remote_bert_job *job, int32_t *ids, size_t count);

/**
 * @brief Runs the batch on the reference engine, in this process.
 * @param calls  as for remote_bert_fastest(), each with the tokens that it has there
 * @param logits receives (calls, B, labels)
 */
MUST_CHECK enum status remote_bert_reference(const struct remote_bert_job *job, int calls,
                                             float *logits);

/**
 * @brief Runs the batch in a worker; the baseline's device is opened first, the subject's must be.
 *        The running test fails when that does not work. The worker stays in use.
 * @param calls  at least 1, each with tokens of its own; on simt one is as good as many
 * @param logits receives (calls, B, labels)
 * @return milliseconds of the fastest, infinite when there is none
 */
double remote_bert_fastest(const struct remote_bert_job *job, enum remote_side which, int calls,
                           float *logits);

/** grader_check_logits(), grader_check_close_logits() */
typedef void remote_bert_check(const float *got, const float *want, size_t count,
                               const char *whose);

enum { REMOTE_BERT_SMALL = 512 /* logits */ };

/**
 * @brief Runs a batch of at most REMOTE_BERT_SMALL logits by the subject; the running test fails
 *        unless it gives these logits.
 * @param want  (B, labels), host
 * @param whose as @p check has it
 */
void remote_bert_expect(const struct remote_bert_job *job, const float *want,
                        remote_bert_check *check, const char *whose);

/**
 * @brief All of a parity test of such a batch: the subject's logits must be the reference engine's.
 * @param job its seed is drawn here
 */
void remote_bert_parity(struct remote_bert_job job, remote_bert_check *check, const char *whose);

/**
 * @brief Times the batch on both sides, compares their logits, and checks the speedup. Where the
 *        baseline's time is recorded, the logits that must come are the reference's.
 *
 * What a submission cannot change, the rest of the model, is timed, too: by the baseline's worker,
 * with operators that do nothing in place of the lab's own.
 *
 * @param what whose logits they are: "BERT with your sgemm"
 */
void remote_bert_compare(const struct remote_bert_job *job, const struct grader_gpu *gpu,
                         struct speedup *speedup, int calls, const char *what);

/** Fails the running test when a batch took less than its matmuls do at the GPU's fp32 peak. */
void remote_bert_check_possible(const struct remote_bert_job *job, const struct grader_gpu *gpu,
                                double ms);

#ifdef __cplusplus
}
#endif

#endif
