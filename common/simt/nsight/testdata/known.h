/**
 * @file known.h
 * @brief Kernels whose counts by source line follow from arithmetic; each launches 264 blocks of
 * 128 threads.
 */
#ifndef WARPBOOK_COMMON_SIMT_NSIGHT_TESTDATA_KNOWN_H_
#define WARPBOOK_COMMON_SIMT_NSIGHT_TESTDATA_KNOWN_H_

#ifdef __cplusplus
extern "C" {
#endif

enum { KNOWN_BLOCKS = 264, KNOWN_THREADS = 128 };

/** Elements of d_in and of d_out. */
enum { KNOWN_COUNT = KNOWN_BLOCKS * KNOWN_THREADS * 8 };

/** Reads with stride 8: 32 sectors a warp where 4 would do; writes side by side. */
void known_strided(float *d_out, const float *d_in);

/** Stores along a row of a tile, loads down its column: 32 wavefronts where 1 would do. */
void known_column(float *d_out, const float *d_in);

/** Reads 16 bytes a thread, has a third of the lanes do more, and adds atomically. */
void known_mixed(float *d_out, const float *d_in);

/** Two kernels from one template, each in the same lines: times 2, times 3. */
void known_scaled(float *d_out, const float *d_in);

#ifdef __cplusplus
}
#endif

#endif
