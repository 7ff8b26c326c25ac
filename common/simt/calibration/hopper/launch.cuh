/**
 * @file launch.cuh
 * @brief Launches a grid of clusters on the default stream.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_LAUNCH_CUH_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_HOPPER_LAUNCH_CUH_

#include <cuda_runtime.h>

/* A grid of clusters; shared: dynamic shared memory of a block, in bytes. */
struct shape {
    unsigned blocks, threads, cluster, shared;
};

/* @return false: refused */
template <typename... PARAMETERS, typename... ARGUMENTS>
static bool start(void (*kernel)(PARAMETERS...), const shape &shape, ARGUMENTS... arguments) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {shape.cluster, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(shape.blocks);
    launch.blockDim = dim3(shape.threads);
    launch.dynamicSmemBytes = shape.shared;
    launch.attrs = &cluster;
    launch.numAttrs = shape.cluster > 1 ? 1 : 0;
    return (shape.shared == 0 ||
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)shape.shared) == cudaSuccess) &&
           cudaLaunchKernelEx(&launch, kernel, (PARAMETERS)arguments...) == cudaSuccess;
}

#endif
