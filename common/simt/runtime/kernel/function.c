/**
 * @file function.c
 * @brief Attributes of kernels.
 */
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"

enum { MOST_THREADS = 1024, DEFAULT_SHARED = 48 * 1024, FULL_PERCENT = 100 };

static cudaError_t find(struct runtime *runtime, const void *function, struct kernel **kernel) {
    *kernel = kernel_find(runtime, function);
    return *kernel == NULL ? cudaErrorInvalidResourceHandle : kernel_prepare(runtime, *kernel);
}

static cudaError_t get_attributes(struct runtime *runtime, struct cudaFuncAttributes *attributes,
                                  const void *function) {
    struct kernel *kernel = NULL;
    cudaError_t error = find(runtime, function, &kernel);
    if (attributes == NULL || error != cudaSuccess) {
        return attributes == NULL ? cudaErrorInvalidValue : error;
    }
    const struct simt_kernel_info *info = &kernel->info;
    const struct simt_gpu *gpu = runtime->settings.gpu;
    size_t fixed = info->static_shared_bytes;
    size_t dynamic = kernel->dynamic_limit;
    if (dynamic == 0) {
        dynamic = fixed < DEFAULT_SHARED ? DEFAULT_SHARED - fixed : 0;
    }
    memset(attributes, 0, sizeof *attributes);
    attributes->sharedSizeBytes = fixed;
    attributes->constSizeBytes = info->constant_bytes;
    attributes->localSizeBytes = info->local_bytes;
    attributes->maxThreadsPerBlock = info->max_threads != 0 ? (int)info->max_threads : MOST_THREADS;
    attributes->numRegs = (int)info->registers;
    attributes->ptxVersion = (int)kernel->module->architecture;
    attributes->binaryVersion = gpu->major * 10 + gpu->minor;
    attributes->maxDynamicSharedSizeBytes = (int)dynamic;
    attributes->preferredShmemCarveout = kernel->carveout;
    attributes->requiredClusterWidth = (int)info->cluster[0];
    attributes->requiredClusterHeight = (int)info->cluster[1];
    attributes->requiredClusterDepth = (int)info->cluster[2];
    attributes->nonPortableClusterSizeAllowed = kernel->larger_clusters;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    DEVICE_CALL(runtime, get_attributes(runtime, attributes, function));
}

static cudaError_t set_dynamic_limit(const struct runtime *runtime, struct kernel *kernel,
                                     int bytes) {
    size_t fixed = kernel->info.static_shared_bytes;
    if (bytes < 0 || fixed + (size_t)bytes > runtime->settings.gpu->shared_optin) {
        runtime_explain(runtime,
                        "cudaFuncSetAttribute: %s has %zu bytes of static shared memory; %d bytes "
                        "of dynamic shared memory make more than the %zu of this GPU",
                        kernel->readable, fixed, bytes, runtime->settings.gpu->shared_optin);
        return cudaErrorInvalidValue;
    }
    /* 0 stands for the default, which allows more than no bytes at all: nothing is lost. */
    kernel->dynamic_limit = (size_t)bytes;
    return cudaSuccess;
}

static cudaError_t set_attribute(struct runtime *runtime, const void *function,
                                 enum cudaFuncAttribute attribute, int value) {
    struct kernel *kernel = NULL;
    CUDA_TRY(find(runtime, function, &kernel));
    switch ((int)attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        return set_dynamic_limit(runtime, kernel, value);
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        if (value < -1 || value > FULL_PERCENT) {
            return cudaErrorInvalidValue;
        }
        kernel->carveout = value;
        return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
        kernel->larger_clusters = value != 0;
        return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    DEVICE_CALL(runtime, set_attribute(runtime, function, attribute, value));
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config) {
    (void)config;
    struct kernel *kernel = NULL;
    DEVICE_CALL(runtime, find(runtime, function, &kernel));
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config) {
    (void)config;
    struct kernel *kernel = NULL;
    DEVICE_CALL(runtime, find(runtime, function, &kernel));
}

static cudaError_t get_name(struct runtime *runtime, const char **name, const void *function) {
    const struct kernel *kernel = kernel_find(runtime, function);
    if (name == NULL || kernel == NULL) {
        return name == NULL ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    *name = kernel->name;
    return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char **name, const void *function) {
    DEVICE_CALL(runtime, get_name(runtime, name, function));
}

static cudaError_t get_parameter(struct runtime *runtime, const void *function, size_t index,
                                 size_t *offset, size_t *bytes) {
    struct kernel *kernel = NULL;
    CUDA_TRY(find(runtime, function, &kernel));
    if (offset == NULL || index >= kernel->info.parameter_count) {
        return cudaErrorInvalidValue;
    }
    *offset = kernel->info.parameter_offsets[index];
    if (bytes != NULL) {
        *bytes = kernel->info.parameter_sizes[index];
    }
    return cudaSuccess;
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset,
                                 size_t *bytes) {
    DEVICE_CALL(runtime, get_parameter(runtime, function, index, offset, bytes));
}
