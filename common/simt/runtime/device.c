/**
 * @file device.c
 * @brief The devices, which are all alike: their properties, limits and versions.
 *
 * Properties that no SIMT_GPU changes are those an H200 reports.
 */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "common/simt/runtime/gpu/link.h"
#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/kernel/modules.h"
#include "common/simt/runtime/state.h"

enum { VERSION = 13000, WARP = 32, MOST_THREADS = 1024, PCI_BUS = 1 };

static cudaError_t store(int *where, int value) {
    if (where == NULL) {
        return cudaErrorInvalidValue;
    }
    *where = value;
    return cudaSuccess;
}

static bool is_device(const struct runtime *runtime, int device) {
    return device >= 0 && device < runtime->settings.devices;
}

cudaError_t cudaGetDeviceCount(int *count) {
    QUERY_CALL(runtime, store(count, runtime->settings.devices));
}

cudaError_t cudaGetDevice(int *device) {
    QUERY_CALL(runtime, store(device, runtime->device));
}

static cudaError_t set_device(const struct runtime *runtime, int device) {
    if (!is_device(runtime, device)) {
        return cudaErrorInvalidDevice;
    }
    *runtime_thread_device() = device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    QUERY_CALL(runtime, set_device(runtime, device));
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
    (void)device_flags, (void)flags;
    QUERY_CALL(runtime, is_device(runtime, device) ? cudaSuccess : cudaErrorInvalidDevice);
}

static cudaError_t set_valid_devices(const struct runtime *runtime, const int *devices, int count) {
    if (devices == NULL || count < 1 || count > runtime->settings.devices) {
        return cudaErrorInvalidDevice;
    }
    for (int n = 0; n < count; n++) {
        if (!is_device(runtime, devices[n])) {
            return cudaErrorInvalidDevice;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
    QUERY_CALL(runtime, set_valid_devices(runtime, devices, count));
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted) {
    QUERY_CALL(runtime, wanted == NULL ? cudaErrorInvalidValue : store(device, 0));
}

cudaError_t cudaDriverGetVersion(int *version) {
    QUERY_CALL(runtime, store(version, VERSION));
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    QUERY_CALL(runtime, store(version, VERSION));
}

static void fill_execution(struct cudaDeviceProp *properties, const struct simt_gpu *gpu) {
    properties->major = gpu->major;
    properties->minor = gpu->minor;
    properties->multiProcessorCount = gpu->multiprocessors;
    properties->warpSize = WARP;
    properties->maxThreadsPerBlock = MOST_THREADS;
    properties->maxThreadsDim[0] = MOST_THREADS;
    properties->maxThreadsDim[1] = MOST_THREADS;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = INT32_MAX;
    properties->maxGridSize[1] = UINT16_MAX;
    properties->maxGridSize[2] = UINT16_MAX;
    properties->maxThreadsPerMultiProcessor = gpu->threads_per_multiprocessor;
    properties->maxBlocksPerMultiProcessor = gpu->blocks_per_multiprocessor;
    properties->regsPerBlock = OCCUPANCY_REGISTERS;
    properties->regsPerMultiprocessor = OCCUPANCY_REGISTERS;
    properties->sharedMemPerBlock = (size_t)48 * 1024;
    properties->sharedMemPerBlockOptin = gpu->shared_optin;
    properties->sharedMemPerMultiprocessor = gpu->shared_per_multiprocessor;
    properties->reservedSharedMemPerBlock = gpu->shared_reserved;
    properties->concurrentKernels = 1;
    properties->cooperativeLaunch = 1;
    properties->clusterLaunch = gpu->major >= 9;
    properties->computePreemptionSupported = 1;
    properties->streamPrioritiesSupported = 1;
    properties->asyncEngineCount = 3;
}

static void fill_memory(struct cudaDeviceProp *properties, const struct simt_gpu *gpu) {
    properties->totalGlobalMem = gpu->memory_bytes;
    properties->totalConstMem = (size_t)64 * 1024;
    properties->memPitch = INT32_MAX;
    properties->textureAlignment = 512;
    properties->texturePitchAlignment = 32;
    properties->surfaceAlignment = 512;
    properties->memoryBusWidth = gpu->bus_bits;
    properties->l2CacheSize = (int)gpu->l2_bytes;
    if (gpu->major >= 8) { /* since Ampere; accepted, without effect on the model */
        properties->persistingL2CacheMaxSize = (int)(gpu->l2_bytes / 4 * 3);
        properties->accessPolicyMaxWindowSize = 128 * 1024 * 1024;
    }
    properties->globalL1CacheSupported = 1;
    properties->localL1CacheSupported = 1;
    properties->canMapHostMemory = 1;
    properties->unifiedAddressing = 1;
    properties->managedMemory = 1;
    properties->concurrentManagedAccess = 1;
    properties->canUseHostPointerForRegisteredMem = 1;
    properties->hostRegisterSupported = 1;
    properties->memoryPoolsSupported = 1;
}

static cudaError_t get_properties(const struct runtime *runtime, struct cudaDeviceProp *properties,
                                  int device) {
    if (properties == NULL || !is_device(runtime, device)) {
        return properties == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    const struct simt_gpu *gpu = runtime->settings.gpu;
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "%s (simt)", gpu->name);
    memcpy(properties->uuid.bytes, "simt", 4);
    properties->uuid.bytes[4] = (char)device;
    properties->pciBusID = PCI_BUS + device;
    fill_execution(properties, gpu);
    fill_memory(properties, gpu);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    QUERY_CALL(runtime, get_properties(runtime, properties, device));
}

/** Attributes that are fields of the properties. */
#define PROPERTY_ATTRIBUTES(X)                                                         \
    X(cudaDevAttrMaxThreadsPerBlock, maxThreadsPerBlock)                               \
    X(cudaDevAttrMaxBlockDimX, maxThreadsDim[0])                                       \
    X(cudaDevAttrMaxBlockDimY, maxThreadsDim[1])                                       \
    X(cudaDevAttrMaxBlockDimZ, maxThreadsDim[2])                                       \
    X(cudaDevAttrMaxGridDimX, maxGridSize[0])                                          \
    X(cudaDevAttrMaxGridDimY, maxGridSize[1])                                          \
    X(cudaDevAttrMaxGridDimZ, maxGridSize[2])                                          \
    X(cudaDevAttrMaxSharedMemoryPerBlock, sharedMemPerBlock)                           \
    X(cudaDevAttrTotalConstantMemory, totalConstMem)                                   \
    X(cudaDevAttrWarpSize, warpSize)                                                   \
    X(cudaDevAttrMaxPitch, memPitch)                                                   \
    X(cudaDevAttrMaxRegistersPerBlock, regsPerBlock)                                   \
    X(cudaDevAttrTextureAlignment, textureAlignment)                                   \
    X(cudaDevAttrMultiProcessorCount, multiProcessorCount)                             \
    X(cudaDevAttrIntegrated, integrated)                                               \
    X(cudaDevAttrCanMapHostMemory, canMapHostMemory)                                   \
    X(cudaDevAttrSurfaceAlignment, surfaceAlignment)                                   \
    X(cudaDevAttrConcurrentKernels, concurrentKernels)                                 \
    X(cudaDevAttrEccEnabled, ECCEnabled)                                               \
    X(cudaDevAttrPciBusId, pciBusID)                                                   \
    X(cudaDevAttrPciDeviceId, pciDeviceID)                                             \
    X(cudaDevAttrPciDomainId, pciDomainID)                                             \
    X(cudaDevAttrTccDriver, tccDriver)                                                 \
    X(cudaDevAttrGlobalMemoryBusWidth, memoryBusWidth)                                 \
    X(cudaDevAttrL2CacheSize, l2CacheSize)                                             \
    X(cudaDevAttrMaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor)             \
    X(cudaDevAttrAsyncEngineCount, asyncEngineCount)                                   \
    X(cudaDevAttrUnifiedAddressing, unifiedAddressing)                                 \
    X(cudaDevAttrTexturePitchAlignment, texturePitchAlignment)                         \
    X(cudaDevAttrComputeCapabilityMajor, major)                                        \
    X(cudaDevAttrComputeCapabilityMinor, minor)                                        \
    X(cudaDevAttrStreamPrioritiesSupported, streamPrioritiesSupported)                 \
    X(cudaDevAttrGlobalL1CacheSupported, globalL1CacheSupported)                       \
    X(cudaDevAttrLocalL1CacheSupported, localL1CacheSupported)                         \
    X(cudaDevAttrMaxSharedMemoryPerMultiprocessor, sharedMemPerMultiprocessor)         \
    X(cudaDevAttrMaxRegistersPerMultiprocessor, regsPerMultiprocessor)                 \
    X(cudaDevAttrManagedMemory, managedMemory)                                         \
    X(cudaDevAttrIsMultiGpuBoard, isMultiGpuBoard)                                     \
    X(cudaDevAttrHostNativeAtomicSupported, hostNativeAtomicSupported)                 \
    X(cudaDevAttrPageableMemoryAccess, pageableMemoryAccess)                           \
    X(cudaDevAttrConcurrentManagedAccess, concurrentManagedAccess)                     \
    X(cudaDevAttrComputePreemptionSupported, computePreemptionSupported)               \
    X(cudaDevAttrCanUseHostPointerForRegisteredMem, canUseHostPointerForRegisteredMem) \
    X(cudaDevAttrCooperativeLaunch, cooperativeLaunch)                                 \
    X(cudaDevAttrMaxSharedMemoryPerBlockOptin, sharedMemPerBlockOptin)                 \
    X(cudaDevAttrHostRegisterSupported, hostRegisterSupported)                         \
    X(cudaDevAttrMaxBlocksPerMultiprocessor, maxBlocksPerMultiProcessor)               \
    X(cudaDevAttrMaxPersistingL2CacheSize, persistingL2CacheMaxSize)                   \
    X(cudaDevAttrMaxAccessPolicyWindowSize, accessPolicyMaxWindowSize)                 \
    X(cudaDevAttrReservedSharedMemoryPerBlock, reservedSharedMemPerBlock)              \
    X(cudaDevAttrMemoryPoolsSupported, memoryPoolsSupported)                           \
    X(cudaDevAttrClusterLaunch, clusterLaunch)

static cudaError_t get_attribute(const struct runtime *runtime, int *value,
                                 enum cudaDeviceAttr attribute, int device) {
    struct cudaDeviceProp properties;
    if (value == NULL) {
        return cudaErrorInvalidValue;
    }
    CUDA_TRY(get_properties(runtime, &properties, device));
    switch ((int)attribute) {
#define PROPERTY_CASE(name, field) \
    case name:                     \
        return store(value, (int)properties.field);
        PROPERTY_ATTRIBUTES(PROPERTY_CASE)
#undef PROPERTY_CASE
    case cudaDevAttrClockRate:
        return store(value, runtime->settings.gpu->clock_khz);
    case cudaDevAttrMemoryClockRate:
        return store(value, runtime->settings.gpu->memory_clock_khz);
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
        return store(value, runtime->settings.gpu->double_ratio);
    case cudaDevAttrGpuOverlap:
        return store(value, 1);
    default: /* known, and nothing that this device has */
        return (int)attribute > 0 && attribute < cudaDevAttrMax ? store(value, 0)
                                                                : cudaErrorInvalidValue;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    QUERY_CALL(runtime, get_attribute(runtime, value, attribute, device));
}

static cudaError_t wait_for_all(struct runtime *runtime) {
    order_waited_for_device(runtime);
    return capture_allows_call(runtime, true);
}

cudaError_t cudaDeviceSynchronize(void) {
    WAITING_CALL(runtime, flights_wait_for_device(runtime), wait_for_all(runtime));
}

static cudaError_t reset(struct runtime *runtime) {
    runtime_reset(runtime);
    *runtime_last_error() = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) {
    struct runtime *runtime = runtime_enter();
    cudaError_t waited = flights_wait_for_device(runtime);
    return runtime_leave(runtime, waited != cudaSuccess ? waited : reset(runtime));
}

static bool has_limit(enum cudaLimit limit) {
    return (unsigned)limit <= cudaLimitPersistingL2CacheSize &&
           limit != cudaLimitDevRuntimeSyncDepth;
}

static cudaError_t limit_error(enum cudaLimit limit) {
    return limit == cudaLimitDevRuntimeSyncDepth ? cudaErrorUnsupportedLimit
                                                 : cudaErrorInvalidValue;
}

static cudaError_t get_limit(const struct runtime *runtime, size_t *value, enum cudaLimit limit) {
    if (value == NULL || !has_limit(limit)) {
        return value == NULL ? cudaErrorInvalidValue : limit_error(limit);
    }
    *value = runtime->limits[limit];
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit) {
    DEVICE_CALL(runtime, get_limit(runtime, value, limit));
}

static cudaError_t set_limit(struct runtime *runtime, enum cudaLimit limit, size_t value) {
    if (!has_limit(limit)) {
        return limit_error(limit);
    }
    runtime->limits[limit] = value;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
    DEVICE_CALL(runtime, set_limit(runtime, limit, value));
}

static cudaError_t get_flags(const struct runtime *runtime, unsigned *flags) {
    if (flags == NULL) {
        return cudaErrorInvalidValue;
    }
    *flags = runtime->device_flags;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags) {
    DEVICE_CALL(runtime, get_flags(runtime, flags));
}

static cudaError_t set_flags(struct runtime *runtime, unsigned flags) {
    runtime->device_flags = flags;
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
    DEVICE_CALL(runtime, (flags & ~(unsigned)cudaDeviceMask) != 0 ? cudaErrorInvalidValue
                                                                  : set_flags(runtime, flags));
}

static cudaError_t prefer_no_cache(enum cudaFuncCache *config) {
    if (config == NULL) {
        return cudaErrorInvalidValue;
    }
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config) {
    DEVICE_CALL(runtime, prefer_no_cache(config));
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) {
    (void)config;
    DEVICE_CALL(runtime, cudaSuccess);
}

cudaError_t cudaCtxResetPersistingL2Cache(void) {
    DEVICE_CALL(runtime, cudaSuccess);
}

/** GPUs reach each other's memory if they are two, and their links allow it. */
static bool reaches(const struct runtime *runtime, int device, int peer) {
    return device != peer && simt_gpu_link(runtime->settings.gpu)->peers;
}

static cudaError_t can_access_peer(const struct runtime *runtime, int *can, int device, int peer) {
    if (!is_device(runtime, device) || !is_device(runtime, peer)) {
        return cudaErrorInvalidDevice;
    }
    return store(can, reaches(runtime, device, peer));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    QUERY_CALL(runtime, can_access_peer(runtime, can, device, peer));
}

static cudaError_t enable_peer(struct runtime *runtime, int peer, unsigned flags) {
    if (!is_device(runtime, peer) || flags != 0) {
        return flags != 0 ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    if (!reaches(runtime, runtime->device, peer)) {
        return cudaErrorPeerAccessUnsupported;
    }
    if (simt_memory_allows(runtime->memory, peer)) {
        return cudaErrorPeerAccessAlreadyEnabled;
    }
    simt_memory_allow(runtime->memory, runtime->device, peer, true);
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    DEVICE_CALL(runtime, enable_peer(runtime, peer, flags));
}

static cudaError_t disable_peer(struct runtime *runtime, int peer) {
    if (!is_device(runtime, peer)) {
        return cudaErrorInvalidDevice;
    }
    if (peer == runtime->device || !simt_memory_allows(runtime->memory, peer)) {
        return cudaErrorPeerAccessNotEnabled;
    }
    simt_memory_allow(runtime->memory, runtime->device, peer, false);
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    DEVICE_CALL(runtime, disable_peer(runtime, peer));
}

static cudaError_t get_p2p_attribute(const struct runtime *runtime, int *value,
                                     enum cudaDeviceP2PAttr attribute, int from, int to) {
    if (!is_device(runtime, from) || !is_device(runtime, to) || from == to) {
        return cudaErrorInvalidDevice;
    }
    bool linked = reaches(runtime, from, to);
    bool nvlink = linked && simt_gpu_link(runtime->settings.gpu)->nvlink;
    switch ((int)attribute) {
    case cudaDevP2PAttrPerformanceRank:
        return store(value, 0); /* all are as far from each other */
    case cudaDevP2PAttrAccessSupported:
        return store(value, linked);
    case cudaDevP2PAttrNativeAtomicSupported:
        return store(value, nvlink);
    case cudaDevP2PAttrCudaArrayAccessSupported:
        return store(value, linked);
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from,
                                      int to) {
    QUERY_CALL(runtime, get_p2p_attribute(runtime, value, attribute, from, to));
}

static cudaError_t get_pci_id(const struct runtime *runtime, char *text, int size, int device) {
    if (text == NULL || size < 13 || !is_device(runtime, device)) {
        return is_device(runtime, device) ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    snprintf(text, (size_t)size, "0000:%02x:00.0", PCI_BUS + device);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
    QUERY_CALL(runtime, get_pci_id(runtime, text, size, device));
}

/** Profilers attach to nothing here; SIMT_REPORT counts the whole run. */
cudaError_t cudaProfilerStart(void) {
    QUERY_CALL(runtime, cudaSuccess);
}

cudaError_t cudaProfilerStop(void) {
    QUERY_CALL(runtime, cudaSuccess);
}

EXPORTED struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                            enum cudaChannelFormatKind kind) {
    return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = kind};
}
