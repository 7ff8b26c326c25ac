/**
 * @file problem.h
 * @brief A random product with low-bit weights, its result in double, and the check.
 */
#ifndef WARPBOOK_LABS_13_LOW_BIT_PROBLEM_PROBLEM_H_
#define WARPBOOK_LABS_13_LOW_BIT_PROBLEM_PROBLEM_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/testing/device_buffer.h"
#include "labs/13_low_bit/low_bit.h"

#ifdef __cplusplus
extern "C" {
#endif

struct low_bit_case {
    enum low_bit_type type;
    size_t M, N, K;
    size_t group;              /**< 32 or 128; 0: by row */
    enum nn_dtype scale_dtype; /**< of int4; by row it is fp32 */
    bool has_zeros;
    enum nn_dtype out_dtype;
    bool extremes; /**< stored numbers are the type's least and largest: rows of one, and of both */
    bool guarded;  /**< canaries around the buffers */
    size_t skew;   /**< elements that in and out lie past a 256-byte boundary */
    size_t checked; /**< columns of out that are compared, evenly spaced; 0: all */
    bool only_out;  /**< the check looks at out alone: for large matrices */
    uint64_t seed;
};

struct low_bit_data {
    struct low_bit_case c;
    struct low_bit_matrix matrix; /* device, plain order */
    struct low_bit_linear linear;
    struct device_buffer values, scales, zeros, prepared, in, out;
    void *workspace;
    struct low_bit_matrix host;
    float *host_in;      /* (M, K): what bf16 makes of the numbers drawn */
    uint16_t *stored_in; /* the same as bf16 */
    double *row;         /* (K) */
    double *want;        /* (M, checked columns) */
    float *got;
    double scale; /* of a result: its root mean square */
    char name[160];
};

/**
 * @brief Draws a matrix and rows of `in`, and computes the results that are compared.
 *
 * Stored numbers are uniform, scales lie between 1/2 and 2 over sqrt(K) and the type's spread: no
 * group, zero point or nibble is negligible.
 */
MUST_CHECK enum status low_bit_data_create(struct low_bit_data *data, const struct low_bit_case *c,
                                           struct error *error);

/** Draws other rows of `in`, computes their results, and resets out. */
MUST_CHECK enum status low_bit_data_redraw(struct low_bit_data *data, uint64_t seed,
                                           struct error *error);

/** Frees; a zero-initialised one is allowed. */
void low_bit_data_free(struct low_bit_data *data);

/** Fills out with NaN. */
MUST_CHECK enum status low_bit_data_reset(struct low_bit_data *data, struct error *error);

/**
 * @brief Compares out after a run, and looks for writes beside the buffers.
 *
 * Tolerance: the weights are exact, so it is that of an fp32 dot product of K, and one rounding to
 * the type of out.
 * @param wrong receives what is wrong in one line, or ""
 */
MUST_CHECK enum status low_bit_data_check(struct low_bit_data *data, char *wrong, size_t size,
                                          struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void low_bit_name_tensors(const struct low_bit_data *data);

/** @return bytes of values, scales, zero points, in and out, each once; FLOPs. */
double low_bit_case_bytes(const struct low_bit_case *c);
double low_bit_case_flops(const struct low_bit_case *c);

#ifdef __cplusplus
}
#endif

#endif
