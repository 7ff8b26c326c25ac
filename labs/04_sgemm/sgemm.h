/**
 * @file sgemm.h
 * @brief Contract of lab 04: single-precision general matrix multiplication on the GPU.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_SGEMM_H_
#define WARPBOOK_LABS_04_SGEMM_SGEMM_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How B lies in memory. */
enum sgemm_form {
    SGEMM_B_PLAIN,     /**< B is (K, N): element (k, n) at B[k * N + n] */
    SGEMM_B_TRANSPOSED /**< B is (N, K), as weights are: element (k, n) at B[n * K + k] */
};

/** Scratch memory that every call is given. */
#define SGEMM_WORKSPACE_BYTES ((size_t)64 << 20)

/** Largest M, N and K: four bytes each still fit a signed 32-bit offset. */
#define SGEMM_MAX_SIZE ((size_t)1 << 29)

/**
 * @brief One multiplication: C = alpha * A * B + beta * C.
 *
 * All pointers are device memory, fp32, row-major, contiguous, at least 4-byte
 * aligned (cudaMalloc gives 256), and C overlaps neither A nor B. Sums are
 * fp32; their order is free. Every size may be 0: without M or N nothing
 * happens, with K = 0 the result is beta * C. With beta = 0, C is not read: it
 * may hold anything, NaN too.
 */
struct sgemm_problem {
    size_t M, N, K;
    enum sgemm_form form;
    float alpha, beta;
    const float *A; /**< (M, K) */
    const float *B; /**< (K, N) or (N, K), see form */
    float *C;       /**< (M, N) */
};

/**
 * @brief Starts the multiplication on a stream; does not wait for it.
 *
 * @param workspace device memory of SGEMM_WORKSPACE_BYTES, 256-byte aligned, contents undefined
 *                  before and after; calls of one stream may share it
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for a size above SGEMM_MAX_SIZE; STATUS_DEVICE when
 *         the launch failed
 */
MUST_CHECK enum status sgemm(const struct sgemm_problem *problem, void *workspace,
                             device_stream stream, struct error *error);

typedef enum status sgemm_function(const struct sgemm_problem *problem, void *workspace,
                                   device_stream stream, struct error *error);

/** One version of sgemm(), for the bench's table. */
struct sgemm_step {
    const char *name; /**< "v3_shared_tile" */
    sgemm_function *run;
};

/**
 * @brief The versions worth comparing, in the order they were written.
 * @param count receives how many; the last one is what sgemm() calls
 */
const struct sgemm_step *sgemm_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
