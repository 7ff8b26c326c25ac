/**
 * @file oracle.h
 * @brief Random problems of labs 01 and 02 with the right results, for their tests, their benches
 *        and the grader; on the host.
 */
#ifndef WARPBOOK_LABS_01_CPU_MATMUL_PROBLEM_ORACLE_H_
#define WARPBOOK_LABS_01_CPU_MATMUL_PROBLEM_ORACLE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/testing/compare.h"

struct matmul_shape {
    size_t M, N, K;
};

/** How the values of in and weight are drawn. */
enum matmul_values {
    MATMUL_ROWS,  /**< each row has an offset and a scale of its own, see rng_fill_bell_rows() */
    MATMUL_NORMAL /**< mean 0, standard deviation 1 */
};

/** One problem, out = in * weight^T: operands between canaries, and the right result. */
struct matmul_data {
    struct matmul_shape shape;
    size_t skew;   /**< floats that in and weight begin past a cache line */
    float *in;     /**< (M, K) */
    float *weight; /**< (N, K) */
    double *want;  /**< (M, N) */
    struct guarded in_memory, weight_memory;
};

/** Allocates; values are undefined. @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status matmul_data_allocate(struct matmul_data *data, struct matmul_shape shape,
                                            size_t skew, struct error *error);

/** Draws in, then weight. */
void matmul_data_draw(struct matmul_data *data, enum matmul_values values, struct rng *rng);

/** Calculates want from in and weight, in double. */
void matmul_data_calculate(struct matmul_data *data);

/** All three: allocates, draws and calculates. */
MUST_CHECK enum status matmul_data_create(struct matmul_data *data, struct matmul_shape shape,
                                          size_t skew, enum matmul_values values, struct rng *rng,
                                          struct error *error);

/** Frees; a zero-initialised one is allowed. */
void matmul_data_free(struct matmul_data *data);

/**
 * @brief Compares a result with the oracle's.
 * @param got  host, (M, N)
 * @param text receives what is wrong: "index [row, column]: got ..."
 */
bool matmul_check(const struct matmul_data *data, const float *got, char *text, size_t size);

/**
 * @brief The same for a result between canaries; also looks for writes outside of it.
 * @param out (M, N) floats after `skew` floats of NaN, which must still be NaN
 */
bool matmul_check_guarded(const struct matmul_data *data, const struct guarded *out, char *text,
                          size_t size);

/** FLOPs of a shape, and bytes of each operand once: no kernel can move less. */
double matmul_flops(struct matmul_shape shape);
double matmul_bytes(struct matmul_shape shape);

#endif
