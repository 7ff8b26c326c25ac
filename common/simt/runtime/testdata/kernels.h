/**
 * @file kernels.h
 * @brief Kernels and device variables for tests of the runtime, behind C functions.
 *
 * Launchers launch and return; they neither wait nor look for errors.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_TESTDATA_KERNELS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_TESTDATA_KERNELS_H_

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes and ints of different sizes, to see whether parameters arrive where the kernel looks. */
struct mixed {
    char c;
    double d;
    short s[3];
};

/** out[i] = in[i] * factor + offset; count elements, any block size. */
void launch_scale(int *d_out, const int *d_in, int factor, int offset, int count, unsigned grid,
                  unsigned block, cudaStream_t stream);

/** d_out[0] = c + 1000 * d + s[0] + s[1] + s[2] + tail. */
void launch_mixed(double *d_out, char c, struct mixed mixed, long long tail);

/** Each thread adds 1 to d_sum[0], grid-wide. */
void launch_count(unsigned *d_sum, unsigned grid, unsigned block);

/** Sums 256 ints through dynamic shared memory: d_out[0]. */
void launch_shared_sum(int *d_out, const int *d_in, size_t dynamic_bytes);

/** Prints one line a thread. */
void launch_print(int threads);

/** d_out[i] = table[i] (constant) + counter (device variable), 8 elements. */
void launch_symbols(int *d_out);

/** managed_value = managed_value * 2 + add. */
void launch_managed(int add);

/** What is wrong on purpose. */
void launch_out_of_bounds(int *d_out, int count);
void launch_assert(int value);
void launch_trap(void);
void launch_endless(int *d_flag);
void launch_video(int *d_out); /**< uses an instruction that simt does not run */

/** Kernels, as API calls want them. */
const void *kernel_scale(void);
const void *kernel_shared_sum(void);
const void *kernel_bounded(void);       /**< 128 threads at most, no parameters used: (int *) */
const void *kernel_static_shared(void); /**< 4096 bytes of shared memory: (int *) */

/** Symbols: `table` of 8 ints in constant memory, `counter`, an int that starts as 5. */
const void *symbol_table(void);
const void *symbol_counter(void);

int managed_get(void);
void managed_set(int value);

#ifdef __cplusplus
}
#endif

#endif
