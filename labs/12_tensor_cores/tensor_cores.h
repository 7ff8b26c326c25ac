/**
 * @file tensor_cores.h
 * @brief Contract of lab 12: products of 16-bit matrices on tensor cores, with a fused epilogue.
 *
 * Products and sums are fp32, and so is the epilogue (bias, activation, residual); the result is
 * rounded once, when it is stored. Labs 08, 10 and 11 multiply with the solution.
 *
 * The lab asks for the forward product of bf16 matrices: dtype NN_BF16, out_dtype NN_BF16 or
 * NN_F32, a bias and a residual in bf16 or none, any activation, or a gate. For fp16, for a
 * transposed factor and for a bias or residual in fp32 your gemm16() may return STATUS_UNSUPPORTED
 * with a line that says so; the solution computes these, too.
 */
#ifndef WARPBOOK_LABS_12_TENSOR_CORES_TENSOR_CORES_H_
#define WARPBOOK_LABS_12_TENSOR_CORES_TENSOR_CORES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Scratch memory of every call: 64 MiB, contents undefined before and after. */
#define GEMM16_WORKSPACE_BYTES ((size_t)64 << 20)

/** Largest M, N and K. */
#define GEMM16_MAX_SIZE ((size_t)1 << 28)

/**
 * @brief out (M, N) = f(in (M, K) * weight (N, K)^T + bias (N)) + residual (M, N).
 *
 * Device memory, row-major, rows one after the other. Elements of in, weight, bias and residual are
 * `dtype` (the last two fp32 where *_is_float), those of out `out_dtype`; each pointer is aligned
 * as its elements at least. Rows of in and weight that are whole 16-byte pieces, aligned (row
 * lengths multiples of 8), make it fast, and so does an N that is a multiple of 8. out may be
 * residual where their types agree; nothing else overlaps. Every size may be 0: without M or N
 * nothing happens, with K = 0 the product is zeros.
 *
 * With a gate, as Llama's feed-forward layers have it, rows 2 j and 2 j + 1 of weight (and bias)
 * are gate and value of column j of out: with x = in * weight^T + bias, out (M, N / 2)[m][j] =
 * silu(x[m][2 j]) * x[m][2 j + 1], silu(x) = x / (1 + e^-x), rounded once.
 *
 * Either factor may be transposed, as in a backward pass. Of out = in * weight^T
 * with (rows, N') gradients dout: din = dout * weight has a transposed weight, (K, N) with K = N';
 * dweight = dout^T * in has both factors transposed, with K = rows.
 */
struct gemm16_problem {
    enum nn_dtype dtype;     /**< NN_F16 or NN_BF16 */
    enum nn_dtype out_dtype; /**< the same, or NN_F32 */
    size_t M, N, K;
    const void *in;            /**< (M, K); transposed: (K, M) */
    const void *weight;        /**< (N, K); transposed: (K, N) */
    bool in_is_transposed;     /**< element (m, k) lies at in[k * M + m] */
    bool weight_is_transposed; /**< element (n, k) lies at weight[k * N + n] */
    bool weight_is_constant;   /**< no kernel of the stream that may still run writes weight: it
                                    may be read before they are complete */
    const void *bias;          /**< (N); NULL: none */
    bool bias_is_float;        /**< bias is fp32, whatever dtype is */
    bool gate;                 /**< SiLU gate; then neither f nor residual, and an even N */
    bool activate;             /**< whether there is an f */
    enum nn_activation f;
    const void *residual;   /**< (M, N); NULL: none */
    bool residual_is_float; /**< residual is fp32; needs an out_dtype of NN_F32 */
    void *out;              /**< (M, N); with a gate (M, N / 2) */
};

/**
 * @brief Starts the work on a stream; does not wait for it. The same call gives the same bits.
 *
 * @param workspace device memory of GEMM16_WORKSPACE_BYTES, 256-byte aligned; calls of one stream
 * may share it
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, with a line that names it, for a type, an activation
 * or a size that it does not take; STATUS_UNSUPPORTED on a GPU before compute capability 8.0;
 *         STATUS_DEVICE when a launch failed
 */
MUST_CHECK enum status gemm16(const struct gemm16_problem *problem, void *workspace,
                              device_stream stream, struct error *error);

typedef enum status gemm16_function(const struct gemm16_problem *problem, void *workspace,
                                    device_stream stream, struct error *error);

/** One version of gemm16(), for the bench's table. */
struct gemm16_step {
    const char *name; /**< "v3_mma" */
    gemm16_function *run;
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one is what gemm16() calls
 */
const struct gemm16_step *gemm16_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
