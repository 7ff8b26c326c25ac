/**
 * @file split_cluster.cuh
 * @brief Split-K by the blocks of a cluster: a launch, and sums out of another block's shared
 *        memory.
 *
 * Clusters need compute capability 9.0; on older GPUs a cluster is one block.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_SPLIT_CLUSTER_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_SPLIT_CLUSTER_CUH_

#include "common/cuda/cluster.cuh"
#include "common/cuda/memory.cuh"
#include "common/device/device.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

/* The cluster's blocks meet: sums that each stored before are there for all after. */
static __device__ __forceinline__ void meet_blocks() {
#if __CUDA_ARCH__ >= 900
    cluster_sync();
#endif
}

/* A float of the shared memory of block `rank` of the cluster, at the address that it has in the
   caller's block. */
static __device__ __forceinline__ float load_from_block(const float *own, unsigned rank) {
    float x = 0.0f;
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %1, %2;\n"
                 "ld.shared::cluster.f32 %0, [remote];\n}"
                 : "=f"(x)
                 : "r"(shared_address(own)), "r"(rank)
                 : "memory");
#endif
    return x;
}

/* A policy for L2 by which what is loaded is the first to go: weights that nobody reads again soon
   leave what others have just written where it is. */
static __device__ __forceinline__ unsigned long long evict_first_policy() {
    unsigned long long policy = 0;
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

/* KERNEL with clusters of `blocks`: grid.x counts blocks. */
template <auto KERNEL>
static inline enum status launch_clusters(const struct gemm16_problem *p, dim3 grid, int threads,
                                          size_t shared_bytes, unsigned blocks,
                                          device_stream stream, struct error *error) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = blocks;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = blocks > 1 ? 1 : 0;
    (void)cudaLaunchKernelEx(&config, KERNEL, *p, blocks, gemm16_epilogue_of(p));
    return device_launched("gemm16, few rows", error);
}

#endif
