/**
 * @file kernel_int4_32.cu
 * @brief The low-bit decoder's kernels for int4 in groups of 32 columns: slices of 2048 bytes of
 * weights and 512 of scales and zero points.
 */
#ifndef ONE_FORM
#define ONE_FORM 12, 5, 2560, 2560
#endif
#define ONE_KEYS_HAVE_SCALES 1
#define ONE_SLICES_ARE_RUNS 1
#include "solutions/13_low_bit/decoder/integer_weights.cuh"
#include "solutions/13_low_bit/decoder/kernel.cuh"

struct low_bit_kernel low_bit_kernel_int4_32(enum nn_dtype scales, size_t queries, size_t L,
                                             size_t HS) {
    typedef integer_weights<32, __nv_bfloat16> in_bf16;
    typedef integer_weights<32, __half> in_fp16;
    return scales == NN_BF16 ? kernel_for_queries<in_bf16>(queries, L, HS)
                             : kernel_for_queries<in_fp16>(queries, L, HS);
}
