/**
 * @file memory.cuh
 * @brief Addresses of shared memory, and loads of 16 bytes with a cache hint.
 *
 * Every compute capability; each thread for itself.
 */
#ifndef WARPBOOK_COMMON_CUDA_MEMORY_CUH_
#define WARPBOOK_COMMON_CUDA_MEMORY_CUH_

/* An address in the shared window (cvta.to.shared), as PTX instructions on .shared take it. */
static __device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* 16 bytes of global memory that no kernel running writes (ld.global.nc), without a line of L1: for
   data that nobody reads twice, such as a decoder's weights. */
static __device__ __forceinline__ uint4 load_no_allocate(const void *from) {
    uint4 x;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from));
    return x;
}

#endif
