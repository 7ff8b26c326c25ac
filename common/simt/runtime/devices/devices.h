/**
 * @file devices.h
 * @brief Kernels of tests with several devices, behind C functions that launch and return.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_DEVICES_DEVICES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_DEVICES_DEVICES_H_

#include <stdbool.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** to[i] = value + i; 128 threads a block. */
void launch_fill(int *d_to, int value, int count, cudaStream_t stream);

/** to[i] = from[i] + 1. */
void launch_next(int *d_to, const int *d_from, int count, cudaStream_t stream);

/** Adds to a __device__ variable, and stores it. */
void launch_own(int *d_out, int add, cudaStream_t stream);

/** Two kernels throw a number to and fro: each writes `theirs` and waits for `mine`. */
void launch_play(int *d_mine, int *d_theirs, int rounds, bool first, cudaStream_t stream);

/** Waits until the flag has a value, then stores that in d_out. */
void launch_wait(int *d_flag, int value, int *d_out, cudaStream_t stream);

/** The same with atomics. */
void launch_wait_atomic(int *d_flag, int value, int *d_out, cudaStream_t stream);

/** Writes `count` ints from `value` on to a peer, then the flag. @param fence a system-wide one
 *  between the two */
void launch_send(int *d_data, int *d_flag, int value, int count, bool fence, cudaStream_t stream);

/** Waits for the flag, then adds up the data. */
void launch_receive(const int *d_data, int *d_flag, int count, int *d_sum, bool fence,
                    cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
