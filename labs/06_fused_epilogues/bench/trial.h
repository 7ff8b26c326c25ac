/**
 * @file trial.h
 * @brief One operation's data on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_TRIAL_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_TRIAL_H_

#include "common/bench/ladder/ladder_bench.h"
#include "labs/06_fused_epilogues/problem/case.h"

struct fused_trial {
    struct fused_case c;
    void *workspace; /**< device */
    float *got;      /**< host: as many rows of a result as there are different ones */
    size_t step;     /**< whose launches are counted */
};

/** Functions of struct ladder_problem. A shape has M, N, K and op, an enum fused_op. */
MUST_CHECK enum status fused_trial_create(void *trial, const struct ladder_setup *setup,
                                          const struct ladder_shape *shape, struct error *error);
void fused_trial_free(void *trial);
MUST_CHECK enum status fused_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                                       struct error *error);
MUST_CHECK enum status fused_trial_check(void *trial, size_t step, char *wrong, size_t size,
                                         struct error *error);
MUST_CHECK enum status fused_trial_launches(void *trial, size_t step, double *launches,
                                            struct error *error);

/** The plain matmul: in * weight^T by lab 04's sgemm(), and nothing else. */
MUST_CHECK enum status fused_trial_matmul(void *trial, device_stream stream, struct error *error);

/** The bench's further part: prints how errors grow over layers when activations are stored in
 *  fp16; on the host. */
MUST_CHECK enum status bench_error(const struct ladder_setup *setup, struct error *error);

#endif
