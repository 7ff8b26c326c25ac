/**
 * @file warmups.h
 * @brief What the exercises define: one function each, in the file of the same name.
 *
 * d_ marks a pointer to device memory; arrays are contiguous, matrices row-major. A function
 * launches its kernel on the default stream and returns, unless it is said otherwise. What it reads
 * and writes does not overlap.
 */
#ifndef WARPBOOK_LABS_00_WARMUPS_WARMUPS_H_
#define WARPBOOK_LABS_00_WARMUPS_WARMUPS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUtensorMap_st; /* a CUtensorMap */
struct CUstream_st;    /* a cudaStream_t points to one */

/** @name One thread, one element
 * @{ */

/** d_y[i] = 2 d_x[i] + 1. @param d_y (n) @param d_x (n) */
void w01_map(float *d_y, const float *d_x, int n);
/** d_y[r, c] = d_x[r, c] + d_bias[r]. @param d_y, d_x (rows, columns) @param d_bias (rows) */
void w02_index_2d(float *d_y, const float *d_x, const float *d_bias, int rows, int columns);
/** Copies; n is a multiple of 256. @param d_y (n) @param d_x (n) */
void w03_coalescing(float *d_y, const float *d_x, int n);
/** d_y[i] = d_x[i]^2, by 512 threads. @param d_y (n) @param d_x (n) */
void w04_grid_stride(float *d_y, const float *d_x, int n);
/** d_y[i] = 2 d_x[i]; n is a multiple of 4, the pointers of 16 bytes. @param d_y (n) @param d_x (n)
 */
void w05_vector_loads(float *d_y, const float *d_x, int n);
/** d_y[i] = -d_x[i], in blocks of `threads`. @return cudaSuccess (0) or CUDA's code of the failure
 */
int w06_error_check(float *d_y, const float *d_x, int n, int threads);
/** @} */

/** @name Threads of a block together
 * @{ */

/** d_y[i] = sum over j of |d_x[i] - d_x[j]|; n is a multiple of 128. @param d_y (n) @param d_x (n)
 */
void w07_shared_tile(float *d_y, const float *d_x, int n);
/** d_y[c, r] = d_x[r, c]; both sizes are multiples of 32. @param d_y (columns, rows) */
void w08_padded_transpose(float *d_y, const float *d_x, int rows, int columns);
/** C = A B; all sizes are multiples of 16. @param d_C (M, N) @param d_A (M, K) @param d_B (K, N) */
void w09_tiled_matmul(float *d_C, const float *d_A, const float *d_B, int M, int N, int K);
/** d_y[w] = sum of the 32 elements of warp w; n is a multiple of 128. @param d_y (n / 32) */
void w10_warp_reduction(float *d_y, const float *d_x, int n);
/** d_y[i] = d_x[i] - d_x[first element of its warp]; n is a multiple of 128. @param d_y (n) */
void w11_warp_broadcast(float *d_y, const float *d_x, int n);
/** d_y[b] = sum of the 256 elements of block b; n is a multiple of 256. @param d_y (n / 256) */
void w12_block_reduction(float *d_y, const float *d_x, int n);
/** d_y[r] = largest element of row r. @param d_y (rows) @param d_x (rows, columns) */
void w13_row_reduction(float *d_y, const float *d_x, int rows, int columns);
/** d_y[i] = d_x[b] + ... + d_x[i], where b begins i's block of 256. @param d_y (n), n = 256 k */
void w14_scan(float *d_y, const float *d_x, int n);
/** d_bins[k] += how many keys are k. @param d_bins (16) @param d_keys (n), each 0 to 15 */
void w15_histogram(int *d_bins, const int *d_keys, int n);
/** Maximum m and sum l = sum of e^(x - m) of each row. @param d_m, d_l (rows) @param d_x (rows,
 * columns) */
void w16_online_softmax(float *d_m, float *d_l, const float *d_x, int rows, int columns);
/** l after each of x = 0, ln 2, ln 4, by hand. */
extern const float w16_paper[3];
/** @} */

/** @name The launch and the compiler
 * @{ */

/** d_y[i] = variance of the 96 elements from i on, around the end; n is a power of 2 from 256
 *  on. @param d_y, d_x (n)
 *  @return how many of its blocks fit on one multiprocessor */
int w17_occupancy(float *d_y, const float *d_x, int n);
/** Blocks, warps and percent of the warps that fit, by hand. */
extern const int w17_paper[3];
/** d_x[i] += i: the first half of n on stream a, the second on b. Work already on a comes before
 *  both, work put on a later comes after both. @param d_x (n), n is even */
void w18_streams(float *d_x, int n, struct CUstream_st *a, struct CUstream_st *b);
/** Runs a kernel and waits for it. @return the milliseconds that the kernel took
 *  @param d_y, d_x (256) @param steps how much the kernel does */
float w19_events(float *d_y, const float *d_x, int steps);
/** d_y[i] = sum of elements i width to (i + 1) width - 1; width is 16, 32 or 64. @param d_y (n) */
void w20_template_launch(float *d_y, const float *d_x, int n, int width);
/** d_y[i] = 2^d_x[i]. @param d_y (n) @param d_x (n) */
void w21_inline_ptx(float *d_y, const float *d_x, int n);
/** Also runs a kernel that stores __CUDA_ARCH__ / 10 to *d_seen.
 *  @return the same number, without reading *d_seen */
int w22_code_version(int *d_seen);
/** d_y[4 i ... 4 i + 3] = d_x[4 i ...] + the four elements of the opposite thread of the block; n
 * is a multiple of 512. Compute capability 8.0. @param d_y (n) @param d_x (n) */
void w23_cp_async(float *d_y, const float *d_x, int n);
/** C = A B^T on tensor cores. Compute capability 8.0.
 *  @param d_C (16, 8) @param d_A (16, 16), fp16 @param d_B (8, 16), fp16 */
void w24_one_mma(float *d_C, const uint16_t *d_A, const uint16_t *d_B);
/** d_y[4 lane + i] = register i of A's fragment in the lane. Compute capability 8.0.
 *  @param d_y (32, 4) @param d_A (16, 16), 16 bits each */
void w25_ldmatrix(int *d_y, const uint16_t *d_A);
/** Transposes 32 x 8 groups of four floats. @param d_y (8, 32, 4) @param d_x (32, 8, 4) */
void w26_swizzle(float *d_y, const float *d_x);
/** d_y = the 16 x 64 numbers of 16 bits at (row, column) of the matrix, 0 outside of it. Compute
 *  capability 9.0. @param d_y (16, 64) @param map host, of boxes of 16 x 64 without swizzle */
void w27_tma_box(int *d_y, const struct CUtensorMap_st *map, int row, int column);
/** C = A B^T by a warpgroup. Compute capability 9.0 alone.
 *  @param d_C (64, 8) @param d_A (64, 16), fp16 @param d_B (8, 16), fp16 */
void w28_one_wgmma(float *d_C, const uint16_t *d_A, const uint16_t *d_B);
/** @} */

/** @name Find the fault
 * @{ */

/** d_y[i] = 3 d_x[i]. @param d_y (n) @param d_x (n) */
void f01_triple(float *d_y, const float *d_x, int n);
/** Reverses each block of 256 elements; n is a multiple of 256. @param d_y (n) @param d_x (n) */
void f02_reverse(float *d_y, const float *d_x, int n);
/** In blocks of 256: 3 times, each element becomes the sum of itself and the one 32 places further,
 *  around the end of the block; n is a multiple of 256. @param d_y (n) @param d_x (n) */
void f03_rounds(float *d_y, const float *d_x, int n);
/** As f02, any n: what the last block lacks counts as 0. @param d_y (n) @param d_x (n) */
void f04_any_length(float *d_y, const float *d_x, int n);
/** d_y[i] = d_x[i - 1] + d_x[i] + d_x[i + 1], 0 beyond the ends; n is a multiple of 256. */
void f05_neighbours(float *d_y, const float *d_x, int n);
/** Reverses each block of 128 groups of 4 elements; n is a multiple of 512. Compute capability 8.0.
 */
void f06_copy_ahead(float *d_y, const float *d_x, int n);
/** d_y[r] = sum of row r. @param d_y (rows) @param d_x (rows, columns), columns is even */
void f07_row_sums(float *d_y, const float *d_x, int rows, int columns);
/** d_y[i] = how many of the sorted d_table are at most d_x[i]. @param d_table (size) */
void f08_search(int *d_y, const float *d_x, int n, const float *d_table, int size);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
