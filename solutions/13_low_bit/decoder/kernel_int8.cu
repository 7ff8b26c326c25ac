/**
 * @file kernel_int8.cu
 * @brief The low-bit decoder's kernels for int8 with a stage more than kernel_bytes.cu has: for
 * models whose inputs leave room for it.
 */
#ifndef ONE_FORM
#define ONE_FORM 12, 7, 2048, 2176
#endif
#define ONE_KEYS_HAVE_SCALES 1
#define ONE_SLICES_ARE_RUNS 1
#define ONE_WEIGHTS_LEAVE_L2_FIRST /* at 7B 1.704 ms instead of 1.727 (H200) */
#include "solutions/13_low_bit/decoder/integer_weights.cuh"
#include "solutions/13_low_bit/decoder/kernel.cuh"

struct low_bit_kernel low_bit_kernel_int8(size_t queries, size_t L, size_t HS) {
    return kernel_for_queries<integer_weights<0, float>>(queries, L, HS);
}
