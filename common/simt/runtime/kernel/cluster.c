/**
 * @file cluster.c
 * @brief Clusters of blocks: which a launch has, whether the GPU takes them, how many fit.
 */
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"

enum { PORTABLE_BLOCKS = 8, MOST_BLOCKS = 16, FIRST_MAJOR = 9 };

dim3 cluster_of(const struct kernel_work *launch) {
    const uint32_t *fixed = launch->kernel->info.cluster;
    dim3 cluster = launch->cluster;
    if (cluster.x == 0 && fixed[0] > 0) {
        cluster.x = fixed[0];
        cluster.y = fixed[1] > 0 ? fixed[1] : 1;
        cluster.z = fixed[2] > 0 ? fixed[2] : 1;
    }
    return cluster;
}

/* The kernel may have a cluster of its own, and then the launch the same. */
static bool contradicts(const struct kernel_work *launch) {
    const uint32_t *fixed = launch->kernel->info.cluster;
    const unsigned said[] = {launch->cluster.x, launch->cluster.y, launch->cluster.z};
    bool differs = false;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t own = fixed[axis] > 0 ? fixed[axis] : 1;
        differs = differs || said[axis] != own;
    }
    return launch->cluster.x > 0 && fixed[0] > 0 && differs;
}

static unsigned most_blocks(const struct kernel *kernel) {
    return kernel->larger_clusters ? MOST_BLOCKS : PORTABLE_BLOCKS;
}

static uint64_t blocks_of(const dim3 *cluster) {
    return (uint64_t)cluster->x * cluster->y * cluster->z;
}

cudaError_t cluster_check(const struct runtime *runtime, const struct kernel_work *launch) {
    const struct kernel *kernel = launch->kernel;
    const dim3 cluster = cluster_of(launch), *grid = &launch->grid;
    if (cluster.x == 0) {
        return cudaSuccess;
    }
    if (runtime->settings.gpu->major < FIRST_MAJOR) {
        runtime_explain(runtime,
                        "the launch of %s has clusters; they came with GPUs of compute "
                        "capability 9.0",
                        kernel->readable);
        return cudaErrorNotSupported;
    }
    if (contradicts(launch)) {
        runtime_explain(runtime,
                        "the launch of %s has clusters of %ux%ux%u blocks; its __cluster_dims__ "
                        "says %ux%ux%u",
                        kernel->readable, launch->cluster.x, launch->cluster.y, launch->cluster.z,
                        kernel->info.cluster[0], kernel->info.cluster[1], kernel->info.cluster[2]);
        return cudaErrorInvalidClusterSize;
    }
    bool axes = cluster.x <= MOST_BLOCKS && cluster.y <= MOST_BLOCKS && cluster.z <= MOST_BLOCKS;
    if (!axes || cluster.y == 0 || cluster.z == 0 || blocks_of(&cluster) > most_blocks(kernel)) {
        runtime_explain(runtime,
                        "the launch of %s has clusters of %ux%ux%u blocks; %u are allowed "
                        "(cudaFuncAttributeNonPortableClusterSizeAllowed: %d)",
                        kernel->readable, cluster.x, cluster.y, cluster.z, most_blocks(kernel),
                        MOST_BLOCKS);
        return cudaErrorInvalidClusterSize;
    }
    if (grid->x % cluster.x != 0 || grid->y % cluster.y != 0 || grid->z % cluster.z != 0) {
        runtime_explain(runtime,
                        "the launch of %s has a grid of %ux%ux%u blocks, which is no multiple of "
                        "its clusters of %ux%ux%u",
                        kernel->readable, grid->x, grid->y, grid->z, cluster.x, cluster.y,
                        cluster.z);
        return cudaErrorInvalidClusterSize;
    }
    return cudaSuccess;
}

cudaError_t cluster_take(const cudaLaunchAttributeValue *value, struct kernel_work *shape) {
    if (value->clusterDim.x == 0 || value->clusterDim.y == 0 || value->clusterDim.z == 0) {
        return cudaErrorInvalidValue;
    }
    shape->cluster.x = value->clusterDim.x;
    shape->cluster.y = value->clusterDim.y;
    shape->cluster.z = value->clusterDim.z;
    return cudaSuccess;
}

/**
 * Clusters that fit at the same time. A cluster lies in one of the GPU's processing clusters; which
 * multiprocessors those have differs from one GPU to the next, so this is a model: eight of them,
 * as equal as whole pairs of multiprocessors allow.
 */
static int fitting(const struct simt_gpu *gpu, int each, int size) {
    enum { PROCESSING_CLUSTERS = 8 };
    int pairs = gpu->multiprocessors / 2, clusters = 0;
    for (int n = 0; n < PROCESSING_CLUSTERS; n++) {
        int own = 2 * (pairs / PROCESSING_CLUSTERS + (n < pairs % PROCESSING_CLUSTERS));
        clusters += own * each / size;
    }
    return clusters;
}

/** @return a launch's shape from its configuration, of a kernel that is prepared. */
static cudaError_t read_config(struct runtime *runtime, const void *function,
                               const cudaLaunchConfig_t *config, struct kernel_work *shape) {
    struct kernel *kernel = kernel_find(runtime, function);
    if (kernel == NULL) {
        return cudaErrorInvalidResourceHandle;
    }
    CUDA_TRY(kernel_prepare(runtime, kernel));
    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL)) {
        return cudaErrorInvalidValue;
    }
    *shape = (struct kernel_work){.kernel = kernel,
                                  .grid = config->gridDim,
                                  .block = config->blockDim,
                                  .shared = config->dynamicSmemBytes};
    for (unsigned n = 0; n < config->numAttrs; n++) {
        if (config->attrs[n].id == cudaLaunchAttributeClusterDimension) {
            CUDA_TRY(cluster_take(&config->attrs[n].val, shape));
        }
    }
    return runtime->settings.gpu->major < FIRST_MAJOR ? cudaErrorNotSupported : cudaSuccess;
}

static int blocks_on_one(const struct runtime *runtime, const struct kernel_work *shape) {
    int threads = (int)(shape->block.x * shape->block.y * shape->block.z);
    return threads > 0
               ? occupancy_blocks(runtime->settings.gpu, shape->kernel, threads, shape->shared)
               : 0;
}

static cudaError_t max_active(struct runtime *runtime, int *clusters, const void *function,
                              const cudaLaunchConfig_t *config) {
    struct kernel_work shape;
    CUDA_TRY(read_config(runtime, function, config, &shape));
    if (clusters == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(cluster_check(runtime, &shape));
    const dim3 cluster = cluster_of(&shape);
    int size = cluster.x > 0 ? (int)blocks_of(&cluster) : 1;
    *clusters = fitting(runtime->settings.gpu, blocks_on_one(runtime, &shape), size);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function,
                                           const cudaLaunchConfig_t *config) {
    DEVICE_CALL(runtime, max_active(runtime, clusters, function, config));
}

static cudaError_t max_size(struct runtime *runtime, int *size, const void *function,
                            const cudaLaunchConfig_t *config) {
    struct kernel_work shape;
    CUDA_TRY(read_config(runtime, function, config, &shape));
    if (size == NULL) {
        return cudaErrorInvalidValue;
    }
    int each = blocks_on_one(runtime, &shape);
    *size = (int)most_blocks(shape.kernel);
    while (*size > 0 && fitting(runtime->settings.gpu, each, *size) == 0) {
        *size /= 2;
    }
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *function,
                                                 const cudaLaunchConfig_t *config) {
    DEVICE_CALL(runtime, max_size(runtime, size, function, config));
}
