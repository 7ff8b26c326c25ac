/**
 * @file trial.h
 * @brief One shape's rows on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_TRIAL_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_TRIAL_H_

#include "common/bench/ladder/ladder_bench.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"

/**
 * Device operands, and host copies of the few rows that are different: the
 * device's input is those rows over and over, because gigabytes of different
 * rows take the host minutes.
 */
struct rows_trial {
    size_t rows;
    struct rows_data data;                      /**< of the first rows */
    void *in, *out, *weight, *bias, *workspace; /**< device */
    unsigned char *bytes;                       /**< host, one row */
    double *want;                               /**< (C) */
    float *got;                                 /**< (C) */
};

/** Functions of struct ladder_problem. */
MUST_CHECK enum status rows_trial_create(void *trial, const struct ladder_setup *setup,
                                         const struct ladder_shape *shape, struct error *error);
void rows_trial_free(void *trial);
MUST_CHECK enum status rows_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                                      struct error *error);
MUST_CHECK enum status rows_trial_check(void *trial, size_t step, char *wrong, size_t size,
                                        struct error *error);

/** Copies the input to the output: as many bytes as any step must move. */
MUST_CHECK enum status rows_trial_copy(void *trial, device_stream stream, struct error *error);

/** The bench's further part: the last step in BERT and Llama2, against the first. */
MUST_CHECK enum status bench_models(const struct ladder_setup *setup, struct error *error);

/** Prints how far three ways of computing a variance in fp32 are off, from small means to large. */
void bench_stability(void);

#endif
