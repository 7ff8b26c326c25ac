/**
 * @file trial.h
 * @brief One shape's operands on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_BENCH_TRIAL_H_
#define WARPBOOK_LABS_04_SGEMM_BENCH_TRIAL_H_

#include "common/bench/ladder/ladder_bench.h"
#include "labs/04_sgemm/problem/oracle.h"

/** --form */
struct sgemm_options {
    const char *form_text;
    enum sgemm_form form;
};

struct sgemm_trial {
    struct sgemm_data data;      /**< rows of the right result; the operands are freed */
    void *A, *B, *C, *workspace; /**< device, no canaries: as large as the GPU's memory allows */
    float *got;                  /**< host, (N) */
    struct cublas *cublas;
};

/** Functions of struct ladder_problem. */
MUST_CHECK enum status sgemm_trial_create(void *trial, const struct ladder_setup *setup,
                                          const struct ladder_shape *shape, struct error *error);
void sgemm_trial_free(void *trial);
MUST_CHECK enum status sgemm_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                                       struct error *error);
MUST_CHECK enum status sgemm_trial_check(void *trial, size_t step, char *wrong, size_t size,
                                         struct error *error);

/** The same multiplication by cuBLAS. */
MUST_CHECK enum status sgemm_trial_run_cublas(void *trial, device_stream stream,
                                              struct error *error);

static inline struct sgemm_shape sgemm_shape_of(const struct ladder_shape *shape) {
    return (struct sgemm_shape){shape->sizes[0], shape->sizes[1], shape->sizes[2]};
}

static inline enum sgemm_form sgemm_form_of(const struct ladder_setup *setup) {
    return ((const struct sgemm_options *)setup->options)->form;
}

#endif
