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

/* The same without ordering memory (arrive.relaxed), where nothing but mbarriers was written
   before: their initialisation has a fence of its own. The release of cluster_sync() is a fence for
   the whole GPU, which waits for all of a thread's memory operations. An arrival at another block's
   mbarrier may come after it: it does not keep blocks from exiting too early. */
static __device__ __forceinline__ void cluster_sync_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed;\n"
                 "barrier.cluster.wait;" ::
                     : "memory");
}

#endif
