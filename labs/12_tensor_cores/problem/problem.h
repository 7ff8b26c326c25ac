/**
 * @file problem.h
 * @brief A problem with random operands, its reference in double, and the comparison of a result.
 */
#ifndef WARPBOOK_LABS_12_TENSOR_CORES_PROBLEM_PROBLEM_H_
#define WARPBOOK_LABS_12_TENSOR_CORES_PROBLEM_PROBLEM_H_

#include <stdint.h>

#include "common/testing/compare.h"
#include "labs/12_tensor_cores/tensor_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Sizes, types and options of a problem. */
struct gemm16_case {
    size_t M, N, K;
    enum nn_dtype dtype, out_dtype;
    bool bias, activate, residual;
    bool gate; /**< then neither an activation nor a residual, and an even N */
    enum nn_activation f;
    bool bias_is_float, residual_is_float;
    bool in_is_transposed, weight_is_transposed;
    bool in_place; /**< residual is out; the types agree */
    size_t skew;   /**< every pointer lies this many elements past a 256-byte boundary */
    size_t rows;   /**< how many rows are compared, evenly spaced; 0: all */
    uint64_t seed; /**< of the values, and then also of the rows; 0: the same values every time */
};

/** Device operands, and the reference. */
struct gemm16_data {
    struct gemm16_case c;
    struct gemm16_problem problem;
    struct tolerance tolerance;
    size_t rows;              /* compared */
    size_t columns;           /* of out: N, with a gate N / 2 */
    size_t *row;              /* (rows): which */
    double *want;             /* (rows, columns) */
    unsigned char *old, *got; /* host: out and its guards, before and after */
    size_t guard, out_bytes;  /* bytes before and behind out, and of all */
    void *d_in, *d_weight, *d_bias, *d_residual, *d_out, *workspace;
};

/** Makes values and device memory. @param guard elements before and behind out */
MUST_CHECK enum status gemm16_data_create(struct gemm16_data *data, const struct gemm16_case *c,
                                          size_t guard, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void gemm16_data_free(struct gemm16_data *data);

/** Poisons out with NaN, or puts the residual there, before a run. */
MUST_CHECK enum status gemm16_data_reset(struct gemm16_data *data, struct error *error);

/**
 * @brief Reads out after a run and compares.
 * @param wrong receives what is wrong in one line, or ""
 */
MUST_CHECK enum status gemm16_data_check(struct gemm16_data *data, char *wrong, size_t size,
                                         struct error *error);

/** Tells simt the names of the tensors, for its messages; nothing on a GPU. */
void gemm16_name_tensors(const struct gemm16_problem *problem);

/** @return FLOPs of the product; bytes of each matrix once: no kernel can move less. */
double gemm16_flops(const struct gemm16_case *c);
double gemm16_bytes(const struct gemm16_case *c);

#ifdef __cplusplus
}
#endif

#endif
