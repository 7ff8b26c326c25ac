/**
 * @file case.h
 * @brief A problem of lab 04 in device memory with canaries, and who wrote where: for the ladder's
 *        test and the grader.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_PROBLEM_CASE_H_
#define WARPBOOK_LABS_04_SGEMM_PROBLEM_CASE_H_

#include <stdbool.h>

#include "common/testing/device_buffer.h"
#include "labs/04_sgemm/problem/oracle.h"

struct sgemm_buffers {
    struct device_buffer a, b, c;
};

/** Allocates for a shape. @param guarded whether there are canaries @param skew as the variant's */
MUST_CHECK enum status sgemm_buffers_create(struct sgemm_buffers *buffers, struct sgemm_shape shape,
                                            size_t skew, bool guarded, struct error *error);

/** Frees; zero-initialised ones are allowed. */
void sgemm_buffers_free(struct sgemm_buffers *buffers);

/** Copies the operands to the device; C is NaN where beta is 0. Renews the canaries. */
MUST_CHECK enum status sgemm_buffers_put(struct sgemm_buffers *buffers,
                                         const struct sgemm_data *data, struct error *error);

/** @return the call that multiplies what was put. */
struct sgemm_problem sgemm_buffers_problem(const struct sgemm_buffers *buffers,
                                           const struct sgemm_data *data);

/**
 * @brief Reads everything back; waits for the device.
 * @param C     receives the result, host, (M, N)
 * @param wrong receives "wrote outside of the output", "changed its input A" (or B), or NULL
 */
MUST_CHECK enum status sgemm_buffers_get(const struct sgemm_buffers *buffers, float *C,
                                         const char **wrong, struct error *error);

#endif
