/**
 * @file trial.h
 * @brief One shape's operands on the GPU, and the check of a step's result.
 */
#ifndef WARPBOOK_LABS_02_GPU_MATMUL_BENCH_TRIAL_H_
#define WARPBOOK_LABS_02_GPU_MATMUL_BENCH_TRIAL_H_

#include "common/bench/ladder/ladder_bench.h"
#include "labs/02_gpu_matmul/problem/case.h"

struct matmul_trial {
    struct matmul_data data;
    struct gpu_matmul_buffers buffers; /**< without canaries */
    float *got;                        /**< host, (M, N) */
};

/** Functions of struct ladder_problem. */
MUST_CHECK enum status matmul_trial_create(void *trial, const struct ladder_setup *setup,
                                           const struct ladder_shape *shape, struct error *error);
void matmul_trial_free(void *trial);
MUST_CHECK enum status matmul_trial_run(void *trial, size_t step, size_t rows, device_stream stream,
                                        struct error *error);
MUST_CHECK enum status matmul_trial_check(void *trial, size_t step, char *wrong, size_t size,
                                          struct error *error);

static inline struct matmul_shape matmul_shape_of(const struct ladder_shape *shape) {
    return (struct matmul_shape){shape->sizes[0], shape->sizes[1], shape->sizes[2]};
}

#endif
