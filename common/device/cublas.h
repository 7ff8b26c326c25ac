/**
 * @file cublas.h
 * @brief The vendor's yardstick on a GPU: cuBLAS, opened at run time where it is installed.
 *
 * Nothing is linked and no header of it is needed: a program runs without it,
 * and its column shows a dash. There is no cuBLAS on simt.
 *
 * Which library: the file that $WARPBOOK_CUBLAS names, else libcublas.so.13,
 * .12 or .11, wherever the loader finds them ($LD_LIBRARY_PATH).
 */
#ifndef WARPBOOK_COMMON_DEVICE_CUBLAS_H_
#define WARPBOOK_COMMON_DEVICE_CUBLAS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An opened cuBLAS. */
struct cublas;

/** C = alpha * A * B + beta * C; device memory, fp32, row-major, contiguous. */
struct cublas_problem {
    size_t M, N, K;
    bool b_transposed; /**< B is (N, K) instead of (K, N) */
    float alpha, beta;
    const float *A; /**< (M, K) */
    const float *B;
    float *C; /**< (M, N) */
};

/** C = A * B^T, or C += that, in 16-bit matrices, sums in fp32; device memory, row-major,
 *  contiguous. */
struct cublas_gemm16 {
    size_t M, N, K;
    enum nn_dtype dtype;     /**< of A and B: NN_F16 or NN_BF16 */
    enum nn_dtype out_dtype; /**< of C: the same, or NN_F32 */
    const void *A;           /**< (M, K); transposed: (K, M) */
    const void *B;           /**< (N, K); transposed: (K, N) */
    bool a_transposed, b_transposed;
    bool add; /**< C += */
    void *C;  /**< (M, N) */
};

/**
 * @brief Opens cuBLAS for the GPU that device_open() found.
 * @return STATUS_OK; STATUS_NOT_FOUND with a line that says what was looked for, also on simt;
 *         STATUS_OUT_OF_MEMORY; STATUS_DEVICE when it does not start
 */
MUST_CHECK enum status cublas_open(struct cublas **cublas, struct error *error);

/** Closes it; NULL is allowed. */
void cublas_close(struct cublas *cublas);

/** @return "cuBLAS 13.0.2", in @p name. */
const char *cublas_name(const struct cublas *cublas, char *name, size_t size);

/**
 * @brief Starts the multiplication by cublasSgemm on @p stream.
 *
 * In cuBLAS's default mode, which calculates in fp32: neither TF32 nor other
 * emulation. Without M or N nothing happens; with K = 0 the result is beta * C.
 *
 * @param workspace device memory, 256-byte aligned, that it may use; NULL: memory of its own
 * @return STATUS_OK; STATUS_OVERFLOW for a size beyond int; STATUS_DEVICE with cuBLAS's message
 */
MUST_CHECK enum status cublas_sgemm(struct cublas *cublas, const struct cublas_problem *problem,
                                    void *workspace, size_t workspace_bytes, device_stream stream,
                                    struct error *error);

/**
 * @brief Starts the multiplication by cublasGemmEx, with fp32 as its type of sums.
 * @return as cublas_sgemm(); STATUS_INVALID_ARGUMENT for other types; STATUS_UNSUPPORTED where the
 *         opened library has no cublasGemmEx
 */
MUST_CHECK enum status cublas_gemm16(struct cublas *cublas, const struct cublas_gemm16 *problem,
                                     void *workspace, size_t workspace_bytes, device_stream stream,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
