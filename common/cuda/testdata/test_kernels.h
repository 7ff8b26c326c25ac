/**
 * @file test_kernels.h
 * @brief Kernels for the test of the device toolbox. Pointers are device memory.
 */
#ifndef WARPBOOK_COMMON_CUDA_TESTDATA_TEST_KERNELS_H_
#define WARPBOOK_COMMON_CUDA_TESTDATA_TEST_KERNELS_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TEST_THREADS = 96 }; /**< of the block that reduces: three warps */

/** A thread's results of all reductions of its number. */
struct test_reductions {
    float warp_sum, warp_max, sum_of_8, max_of_8, quad_sum, quad_max, sum_to_lane_0;
    float block_sum, block_max, block_sum_of_any;
    unsigned long long warp_max_of_integers;
};

/** out (TEST_THREADS) = the reductions of x (TEST_THREADS), made twice by one block. */
void test_reduce(struct test_reductions *out, const float *x, device_stream stream);

enum test_form { TEST_SINGLE, TEST_PAIRS, TEST_VECTORS };
enum test_type { TEST_F32, TEST_F16, TEST_BF16 };

/** out (count) = x (count), rounded to the type and back: as single elements, as pairs (fp32: as
 *  single elements), or as vectors of 16 bytes. @param count a multiple of 8 */
void test_convert(float *out, const float *x, unsigned count, enum test_type type,
                  enum test_form form, device_stream stream);

/** c (16, 8) += a (16, 16) * b (16, 8) of fp16 or bf16. `transposed`: b is (16, 8) in memory and is
 *  loaded by ldmatrix.trans; else it is (8, 16), its transpose. */
void test_mma(float *c, const uint16_t *a, const uint16_t *b, bool is_bf16, bool transposed,
              device_stream stream);

/** out (32, 4) = in (32, 4) by way of shared memory: row i has its first i % 5 words, then zeros;
 *  copied 16 bytes at once, or by words. */
void test_copy(uint32_t *out, const uint32_t *in, bool by_words, device_stream stream);

/** out = in (32, 4), with the rows of each half in reverse order. Two groups of copies: the first
 *  half is read while the second one may still be in flight. */
void test_copy_groups(uint32_t *out, const uint32_t *in, device_stream stream);

#ifdef __cplusplus
}
#endif

#endif
