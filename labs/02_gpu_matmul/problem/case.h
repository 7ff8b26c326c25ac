/**
 * @file case.h
 * @brief A problem of lab 02 in device memory with canaries, and who wrote where: for the ladder's
 *        test, the bench and the grader. Values and results are lab 01's, see its oracle.h.
 */
#ifndef WARPBOOK_LABS_02_GPU_MATMUL_PROBLEM_CASE_H_
#define WARPBOOK_LABS_02_GPU_MATMUL_PROBLEM_CASE_H_

#include <stdbool.h>

#include "common/testing/device_buffer.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

struct gpu_matmul_buffers {
    struct device_buffer out, in, weight;
};

/**
 * @brief Allocates for a shape.
 * @param skew    floats that every pointer is past a 256-byte boundary
 * @param guarded whether there are canaries
 */
MUST_CHECK enum status gpu_matmul_buffers_create(struct gpu_matmul_buffers *buffers,
                                                 struct matmul_shape shape, size_t skew,
                                                 bool guarded, struct error *error);

/** Frees; zero-initialised ones are allowed. */
void gpu_matmul_buffers_free(struct gpu_matmul_buffers *buffers);

/** Copies the operands to the device; out becomes NaN. Renews the canaries. */
MUST_CHECK enum status gpu_matmul_buffers_put(struct gpu_matmul_buffers *buffers,
                                              const struct matmul_data *data, struct error *error);

/**
 * @brief Reads everything back; waits for the device.
 * @param out   receives the result, host, (M, N)
 * @param wrong receives "wrote outside of the output", "changed its input", or NULL
 */
MUST_CHECK enum status gpu_matmul_buffers_get(const struct gpu_matmul_buffers *buffers, float *out,
                                              const char **wrong, struct error *error);

#endif
