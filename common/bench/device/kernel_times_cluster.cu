/**
 * @file kernel_times_cluster.cu
 * @brief A kernel that says how large the clusters are that it was launched with.
 */
#include "common/bench/device/kernel_times_cluster.h"

__global__ void write_cluster_blocks(unsigned *blocks) {
#if __CUDA_ARCH__ >= 900
    unsigned count;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(count));
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *blocks = count;
    }
#endif
}

enum status write_cluster_blocks_of(unsigned *blocks, unsigned size, device_stream stream,
                                    struct error *error) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = size;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2 * size);
    config.blockDim = dim3(32);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, write_cluster_blocks, blocks);
    return device_launched("write_cluster_blocks", error);
}
