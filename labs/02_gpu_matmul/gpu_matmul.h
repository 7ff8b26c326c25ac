/**
 * @file gpu_matmul.h
 * @brief Contract of lab 02: the linear layer of both models on the GPU, called with host pointers.
 */
#ifndef WARPBOOK_LABS_02_GPU_MATMUL_GPU_MATMUL_H_
#define WARPBOOK_LABS_02_GPU_MATMUL_GPU_MATMUL_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Part one, the kernel: starts out = in * weight^T on a stream; does not wait.
 *
 * All pointers are DEVICE memory, fp32, row-major, contiguous, at least 4-byte
 * aligned, and do not overlap. Sums are fp32 in any order, the same order in every run. Every
 * size may be 0: without M or N nothing happens, with K = 0 the result is
 * zeros. M = 1, decoding one token, matters most.
 *
 * @param out    (M, N)
 * @param in     (M, K)
 * @param weight (N, K)
 * @return STATUS_OK, or STATUS_DEVICE if the launch failed
 */
MUST_CHECK enum status gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M,
                                         size_t N, size_t K, device_stream stream,
                                         struct error *error);

/** What a call keeps for the next: a stream; in the starter nothing else. */
struct gpu_matmul;

/** @return STATUS_OK, STATUS_OUT_OF_MEMORY or the status of the device. */
MUST_CHECK enum status gpu_matmul_create(struct gpu_matmul **matmul, struct error *error);

/** Frees everything; NULL is allowed. */
void gpu_matmul_destroy(struct gpu_matmul *matmul);

/**
 * @brief Part two, the call: the same product with HOST pointers; returns when out is complete.
 *
 * Copies in, runs the kernel, copies out. Memory and copies go through
 * common/device (device_alloc, device_write, device_read), which count bytes
 * and time for the bench. A call may remember no pointer and no contents of
 * memory from an earlier call, because the caller may have changed or freed the
 * memory since. (Lab 03 lifts that.)
 *
 * Same shapes and sizes as gpu_matmul_launch().
 */
MUST_CHECK enum status gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in,
                                  const float *weight, size_t M, size_t N, size_t K,
                                  struct error *error);

typedef enum status gpu_matmul_kernel(float *out, const float *in, const float *weight, size_t M,
                                      size_t N, size_t K, device_stream stream,
                                      struct error *error);

/** One version of the kernel, for the bench's table. */
struct gpu_matmul_step {
    const char *name; /**< "v2_warp_a_row" */
    gpu_matmul_kernel *run;
};

/**
 * @brief The kernels worth comparing, in the order they were written.
 * @param count receives how many; the last one is what gpu_matmul_launch() calls
 */
const struct gpu_matmul_step *gpu_matmul_ladder(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
