/**
 * @file tma.cuh
 * @brief TMA: cp.async.bulk.tensor, which copies a box of a matrix between global and shared
 *        memory.
 *
 * Compute capability 9.0; include it in code for that alone. One thread executes each function. A
 * CUtensorMap, made on the host, tells matrix, box and swizzle; it is a kernel's __grid_constant__
 * parameter. Elements outside the matrix are loaded as zeros and not stored.
 */
#ifndef WARPBOOK_COMMON_CUDA_TMA_CUH_
#define WARPBOOK_COMMON_CUDA_TMA_CUH_

#include <cuda.h>

/* Starts loading the box at (row, column) into shared memory; its bytes complete at mbarrier
   `barrier`. */
static __device__ __forceinline__ void tma_load_2d(unsigned to, const CUtensorMap *map, int column,
                                                   int row, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

/* The same into every block of the cluster whose bit of `blocks` is set, at the same address, each
   completing at its own barrier. */
static __device__ __forceinline__ void tma_load_2d_multicast(unsigned to, const CUtensorMap *map,
                                                             int column, int row, unsigned barrier,
                                                             unsigned short blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}

/* The same of a tensor of three dimensions: the box at (place 2, place 1, place 0). */
static __device__ __forceinline__ void tma_load_3d(unsigned to, const CUtensorMap *map, int place_0,
                                                   int place_1, int place_2, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
                 "l"(map), "r"(place_0), "r"(place_1), "r"(place_2), "r"(barrier)
                 : "memory");
}

static __device__ __forceinline__ void tma_load_3d_multicast(unsigned to, const CUtensorMap *map,
                                                             int place_0, int place_1, int place_2,
                                                             unsigned barrier,
                                                             unsigned short blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
                 "l"(map), "r"(place_0), "r"(place_1), "r"(place_2), "r"(barrier), "h"(blocks)
                 : "memory");
}

/* As tma_load_2d(), for data that is not read again: its lines leave L2 first, and those that other
   kernels have written stay. */
static __device__ __forceinline__ void tma_load_2d_once(unsigned to, const CUtensorMap *map,
                                                        int column, int row, unsigned barrier) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(policy)
                 : "memory");
}

/* Asks L2 for a box. */
static __device__ __forceinline__ void tma_prefetch_2d(const CUtensorMap *map, int column,
                                                       int row) {
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(map),
                 "r"(column), "r"(row)
                 : "memory");
}

/* Starts copying `bytes` contiguous bytes, a multiple of 16, both sides aligned to 16. They
   complete at mbarrier `barrier`. */
static __device__ __forceinline__ void bulk_load(unsigned to, const void *from, unsigned bytes,
                                                 unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* The same to global memory; closes a bulk group. */
static __device__ __forceinline__ void bulk_store(void *to, unsigned from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* Adds fp32 numbers to those in global memory; closes a bulk group. */
static __device__ __forceinline__ void bulk_add(float *to, unsigned from, unsigned bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(from), "r"(bytes)
                 : "memory");
}

/* Starts storing a box from shared memory, and closes a bulk group. */
static __device__ __forceinline__ void tma_store_2d(const CUtensorMap *map, int column, int row,
                                                    unsigned from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(column), "r"(row), "r"(from)
                 : "memory");
}

/* Waits until all but the PENDING youngest of this thread's stores have read shared memory. */
template <int PENDING> static __device__ __forceinline__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* Waits until all of this thread's stores are complete. */
static __device__ __forceinline__ void tma_store_wait() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Makes this thread's writes to shared memory visible to the async proxy: TMA and wgmma. */
static __device__ __forceinline__ void fence_proxy_async() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
