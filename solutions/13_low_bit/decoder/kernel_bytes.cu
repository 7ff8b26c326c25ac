/**
 * @file kernel_bytes.cu
 * @brief The low-bit decoder's kernels for int8 and e4m3: slices of 2048 bytes, and room for the
 * scales of a stage's keys.
 */
#ifndef ONE_FORM
#define ONE_FORM 12, 6, 2048, 2176
#endif
#define ONE_KEYS_HAVE_SCALES 1
#define ONE_SLICES_ARE_RUNS 1
#include "solutions/13_low_bit/decoder/e4m3_weights.cuh"
#include "solutions/13_low_bit/decoder/integer_weights.cuh"
#include "solutions/13_low_bit/decoder/kernel.cuh"

struct low_bit_kernel low_bit_kernel_bytes(enum low_bit_type type, size_t queries, size_t L,
                                           size_t HS) {
    typedef integer_weights<0, float> int8;
    return type == LOW_BIT_INT8 ? kernel_for_queries<int8>(queries, L, HS)
                                : kernel_for_queries<e4m3_weights>(queries, L, HS);
}
