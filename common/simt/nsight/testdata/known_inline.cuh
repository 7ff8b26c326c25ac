/**
 * @file known_inline.cuh
 * @brief A function that the compiler puts where it is called: a second file in a kernel's lines.
 */
#ifndef WARPBOOK_COMMON_SIMT_NSIGHT_TESTDATA_KNOWN_INLINE_CUH_
#define WARPBOOK_COMMON_SIMT_NSIGHT_TESTDATA_KNOWN_INLINE_CUH_

static __device__ __forceinline__ float add_four(float4 four) {
    float low = four.x + four.y;
    return low + (four.z + four.w);
}

#endif
