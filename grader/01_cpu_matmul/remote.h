/**
 * @file remote.h
 * @brief A problem of lab 01 in the worker in use, and who wrote where; lab 02's calls with host
 *        pointers use it, too.
 */
#ifndef WARPBOOK_GRADER_01_CPU_MATMUL_REMOTE_H_
#define WARPBOOK_GRADER_01_CPU_MATMUL_REMOTE_H_

#include "grader/isolation/remote_buffer.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

struct remote_matmul {
    struct remote_buffer out, in, weight;
};

/** Takes memory for a shape. @param skew floats that every pointer is past a cache line */
MUST_CHECK enum status remote_matmul_create(struct remote_matmul *buffers,
                                            struct matmul_shape shape, size_t skew,
                                            struct error *error);

/** Frees; zero-initialised ones are allowed. */
void remote_matmul_free(struct remote_matmul *buffers);

/** Copies the operands to the worker; out becomes NaN. Renews the canaries. */
void remote_matmul_put(struct remote_matmul *buffers, const struct matmul_data *data);

/**
 * @brief Reads everything back.
 * @param out   receives the result, private memory, (M, N)
 * @param wrong receives "wrote outside of the output", "changed its input", or NULL
 */
MUST_CHECK enum status remote_matmul_get(const struct remote_matmul *buffers, float *out,
                                         const char **wrong, struct error *error);

#endif
