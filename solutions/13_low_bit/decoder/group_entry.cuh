/**
 * @file group_entry.cuh
 * @brief A group's entry in a slice of int4: ((128 + zero) negative as bf16) << 16 | scale.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_GROUP_ENTRY_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_GROUP_ENTRY_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ __forceinline__ float scale_of_entry(unsigned entry, __nv_bfloat16) {
    return __uint_as_float(entry << 16);
}

static __device__ __forceinline__ float scale_of_entry(unsigned entry, __half) {
    return __half2float(__ushort_as_half((unsigned short)entry));
}

/* The zero point, negative. */
static __device__ __forceinline__ float minus_zero_of(unsigned entry) {
    return __uint_as_float(entry & 0xffff0000u) + 128.0f;
}

#endif
