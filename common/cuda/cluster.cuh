/**
 * @file cluster.cuh
 * @brief Thread block clusters: a block's rank, and the barrier of all threads of a cluster.
 *
 * Compute capability 9.0; include it in code for that alone.
 */
#ifndef WARPBOOK_COMMON_CUDA_CLUSTER_CUH_
#define WARPBOOK_COMMON_CUDA_CLUSTER_CUH_

/* The block's index within its cluster (%cluster_ctarank). */
static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Barrier of all threads of the cluster's blocks (barrier.cluster): writes before it, to shared or
   global memory, are visible to all of them after it. */
static __device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

#endif
