/**
 * @file kernel_int4_128.cu
 * @brief The low-bit decoder's kernels for int4 in groups of 128 columns: slices of 2048 bytes of
 * weights and 128 of scales and zero points.
 */
#ifndef ONE_FORM
#define ONE_FORM 12, 6, 2176, 2176
#endif
#define ONE_KEYS_HAVE_SCALES 1
#define ONE_SLICES_ARE_RUNS 1
#include "solutions/13_low_bit/decoder/integer_weights.cuh"
#include "solutions/13_low_bit/decoder/kernel.cuh"

struct low_bit_kernel low_bit_kernel_int4_128(enum nn_dtype scales, size_t queries, size_t L,
                                              size_t HS) {
    typedef integer_weights<128, __nv_bfloat16> in_bf16;
    typedef integer_weights<128, __half> in_fp16;
    return scales == NN_BF16 ? kernel_for_queries<in_bf16>(queries, L, HS)
                             : kernel_for_queries<in_fp16>(queries, L, HS);
}
