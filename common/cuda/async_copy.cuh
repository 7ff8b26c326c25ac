/**
 * @file async_copy.cuh
 * @brief cp.async: copies from global to shared memory that pass by the registers.
 *
 * Compute capability 8.0; older code copies by plain loads and stores, and the waits do nothing.
 * Each thread starts and waits for its own copies; other threads see them after its wait and a
 * barrier. Both addresses are aligned to the size of the copy.
 */
#ifndef WARPBOOK_COMMON_CUDA_ASYNC_COPY_CUH_
#define WARPBOOK_COMMON_CUDA_ASYNC_COPY_CUH_

#include "common/cuda/memory.cuh"

/* Starts a copy of 16 bytes, past L1 (cp.async.cg). @param to address in shared memory */
static __device__ __forceinline__ void cp_async_16(unsigned to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    *(uint4 *)__cvta_shared_to_generic(to) = *(const uint4 *)from;
#endif
}

/* Starts a copy of BYTES, 16 or 4, of which only the first `bytes` are read: zeros fill the rest.
   Where `bytes` is 0, `from` is not read. */
template <int BYTES>
static __device__ __forceinline__ void cp_async_zero_fill(unsigned to, const void *from,
                                                          int bytes) {
    static_assert(BYTES == 4 || BYTES == 16, "cp.async.ca of 4 bytes or cp.async.cg of 16");
#if __CUDA_ARCH__ >= 800
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes)
                     : "memory");
    }
#else
    unsigned char *out = (unsigned char *)__cvta_shared_to_generic(to);
    if (BYTES == 16 && bytes == 16) {
        cp_async_16(to, from);
    } else if (BYTES == 4 && bytes == 4) {
        *(unsigned *)out = *(const unsigned *)from;
    } else { /* byte by byte: rare, and on a T4 16 loads instead of one */
        for (int i = 0; i < BYTES; i++) {
            out[i] = i < bytes ? ((const unsigned char *)from)[i] : 0;
        }
    }
#endif
}

/* The same with a pointer to shared memory. */
template <int BYTES>
static __device__ __forceinline__ void cp_async_zero_fill(void *to, const void *from, int bytes) {
    cp_async_zero_fill<BYTES>(shared_address(to), from, bytes);
}

/* Starts a copy of BYTES, 16 or 4; not inside: of zeros. */
template <int BYTES>
static __device__ __forceinline__ void cp_async(void *to, const void *from, bool inside) {
    cp_async_zero_fill<BYTES>(shared_address(to), from, inside ? BYTES : 0);
}

/* Closes a group of this thread's copies; it may be empty. */
static __device__ __forceinline__ void cp_async_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits until at most the PENDING youngest of this thread's groups are in flight. */
template <int PENDING> static __device__ __forceinline__ void cp_async_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* Waits for all of this thread's copies, also those of no group. */
static __device__ __forceinline__ void cp_async_wait_all() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif
