/**
 * @file model.h
 * @brief Whole training steps: a model with random parameters and batches for it, by the worker in
 *        use and by the reference in double.
 */
#ifndef WARPBOOK_GRADER_11_TRAINING_MODEL_H_
#define WARPBOOK_GRADER_11_TRAINING_MODEL_H_

#include "common/base/rng.h"
#include "common/nn/dtype.h"
#include "common/train/models/train_model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct training_spec {
    struct train_config config;
    enum nn_dtype dtype;
    size_t B;
    int32_t lengths[32]; /**< (B): tokens of each sequence, the same in all batches */
    size_t steps;
    float rate;
};

/** The result of a run. */
struct training_result {
    double loss, norm; /**< sum of the batches' mean losses; the last gradient's norm */
    size_t tensors;
    float **weights; /**< host, (tensors): all parameters after the last update; NULL: not asked */
    float **moments; /**< likewise: AdamW's first moments, which are sums of gradients */
};

struct training_job {
    struct training_spec spec;
    struct train_batch *batches; /**< host, (steps) */
    int32_t *ids, *labels, *starts;
    size_t rows, labels_a_batch;
    uint64_t seed, dropout; /**< of the parameters; of dropout */
};

/** Draws batches. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status training_job_create(struct training_job *job,
                                           const struct training_spec *spec, struct rng *rng,
                                           struct error *error);
/** Draws other tokens and labels. */
void training_job_renew(struct training_job *job, struct rng *rng);
void training_job_free(struct training_job *job);

/** The same steps on the reference; for a small model. @param result freed by the caller */
MUST_CHECK enum status training_job_reference(struct training_job *job,
                                              struct training_result *result, struct error *error);

/**
 * @brief Makes the model in the worker in use.
 * @param without_own the lab's functions do nothing in it: its time is that of all else
 * @param secret      its parameters are to lie in the memory of the worker's device alone, where
 * that is simt: secret_weights.h
 * @param model       receives it
 */
MUST_CHECK enum status training_job_place(const struct training_job *job, bool without_own,
                                          bool secret, void **model, struct error *error);

/**
 * @brief The steps in the worker in use.
 * @param first number of the first update, from 1 on
 * @param ms    receives their time; NULL: not timed
 */
MUST_CHECK enum status training_job_steps(const struct training_job *job, void *model,
                                          uint64_t first, double *ms, struct error *error);

/** Loss and norm of the worker's model since the last time; and, if asked for, weights and moments.
 */
MUST_CHECK enum status training_job_result(const struct training_job *job, void *model,
                                           bool tensors, struct training_result *result,
                                           struct error *error);

/**
 * @brief Checks that the copy which matmuls read is the weights, rounded to bf16, of a model in
 * bf16: fewer bits there would show in later steps alone.
 * @param text receives "", or what is wrong
 */
MUST_CHECK enum status training_job_check_copy(const struct training_job *job, void *model,
                                               char *text, size_t size, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void training_result_free(struct training_result *result);

/**
 * @brief Compares the worker's result with the reference's.
 *
 * Losses and norms agree up to the storage's rounding. Parameters, where both results have them,
 * are compared by how far they moved, matrices together, norms and biases together: AdamW turns a
 * gradient near 0 into a step whose sign is that of its rounding error. That step says little of
 * how well the gradient was computed; the first moments do, and those of two workers are compared
 * behind one update.
 */
bool training_result_close(const struct training_job *job, const struct training_result *got,
                           const struct training_result *want, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
