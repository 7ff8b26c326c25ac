/**
 * @file cublas.h
 * @brief The vendor's library to compare with on a GPU: cuBLAS, opened at run time if installed.
 *
 * A build needs neither the library nor its header, and programs run without it:
 * its column then shows a dash. There is no cuBLAS on simt.
 *
 * Opens the file that $WARPBOOK_CUBLAS names, else libcublas.so.13, .12 or .11,
 * wherever the loader finds it ($LD_LIBRARY_PATH).
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

/** C = A * B^T or C += A * B^T, with 16-bit A and B and sums in fp32; device memory, row-major,
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
 * @return STATUS_OK; STATUS_NOT_FOUND with the names tried, also on simt; STATUS_OUT_OF_MEMORY;
 *         STATUS_DEVICE if it does not start
 */
MUST_CHECK enum status cublas_open(struct cublas **cublas, struct error *error);

/** Closes cuBLAS; NULL is allowed. */
void cublas_close(struct cublas *cublas);

/** @return "cuBLAS 13.0.2", in @p name. */
const char *cublas_name(const struct cublas *cublas, char *name, size_t size);

/**
 * @brief Starts the multiplication by cublasSgemm on @p stream.
 *
 * Uses cuBLAS's default mode, which computes in fp32, without TF32 or other
 * emulation. If M or N is 0, nothing happens; if K is 0, the result is beta * C.
 *
 * @param workspace device memory, 256-byte aligned, for cuBLAS to use; NULL: it allocates its own
 * @return STATUS_OK; STATUS_OVERFLOW for a size beyond int; STATUS_DEVICE with cuBLAS's message
 */
MUST_CHECK enum status cublas_sgemm(struct cublas *cublas, const struct cublas_problem *problem,
                                    void *workspace, size_t workspace_bytes, device_stream stream,
                                    struct error *error);

/**
 * @brief Starts the multiplication by cublasGemmEx, with fp32 accumulation.
 * @param workspace as for cublas_sgemm()
 * @return the statuses of cublas_sgemm(); STATUS_INVALID_ARGUMENT for other types;
 *         STATUS_UNSUPPORTED if the library has no cublasGemmEx
 */
MUST_CHECK enum status cublas_gemm16(struct cublas *cublas, const struct cublas_gemm16 *problem,
                                     void *workspace, size_t workspace_bytes, device_stream stream,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
