/**
 * @file pool.c
 * @brief Memory pools: names and limits of allocations. Memory goes back at once when it is freed.
 */
#include "common/simt/runtime/memory/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/runtime/state.h"

enum { REUSE_KINDS = 3 };

struct CUmemPoolHandle_st {
    char name[48]; /**< of its allocations, in messages */
    int device;
    bool destroyed;
    size_t most;   /**< bytes at a time; 0: no limit */
    size_t high;   /**< most bytes in use so far */
    uint64_t kept; /**< release threshold: no effect */
    int reuse[REUSE_KINDS];
    struct CUmemPoolHandle_st *next;
};

static struct CUmemPoolHandle_st *make(struct runtime *runtime, const char *name, size_t most) {
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);
    if (pool != NULL) {
        snprintf(pool->name, sizeof pool->name, "%s", name);
        pool->most = most;
        pool->device = runtime->device;
        for (int n = 0; n < REUSE_KINDS; n++) {
            pool->reuse[n] = 1;
        }
        pool->next = runtime->pools;
        runtime->pools = pool;
    }
    return pool;
}

/** The last one in the list is the default pool, which exists from the first use of pools. */
static struct CUmemPoolHandle_st *default_pool(struct runtime *runtime) {
    struct CUmemPoolHandle_st *pool = runtime->pools;
    while (pool != NULL && pool->next != NULL) {
        pool = pool->next;
    }
    return pool != NULL ? pool : make(runtime, "cudaMallocAsync", 0);
}

static bool is_device(const struct runtime *runtime, int device) {
    return device >= 0 && device < runtime->settings.devices;
}

/** A pool of any device. */
static struct CUmemPoolHandle_st *find(struct runtime *runtime, cudaMemPool_t handle) {
    struct CUmemPoolHandle_st *found = NULL;
    for (int d = 0; handle != NULL && found == NULL && d < runtime->settings.devices; d++) {
        found = d == runtime->device ? runtime->pools : runtime->others[d].pools;
        while (found != NULL && (found != handle || found->destroyed)) {
            found = found->next;
        }
    }
    return found;
}

void pools_free(struct runtime *runtime) {
    while (runtime->pools != NULL) {
        struct CUmemPoolHandle_st *pool = runtime->pools;
        runtime->pools = pool->next;
        free(pool);
    }
    runtime->pool = NULL;
}

cudaError_t pool_take(struct runtime *runtime, cudaMemPool_t handle, size_t bytes,
                      const char **name) {
    struct CUmemPoolHandle_st *pool = handle != NULL          ? find(runtime, handle)
                                      : runtime->pool != NULL ? runtime->pool
                                                              : default_pool(runtime);
    if (pool == NULL) {
        return handle != NULL ? cudaErrorInvalidValue : cudaErrorMemoryAllocation;
    }
    size_t used = simt_memory_used_by(runtime->memory, pool->name);
    if (pool->most > 0 && (used > pool->most || bytes > pool->most - used)) {
        return cudaErrorMemoryAllocation;
    }
    pool->high = used + bytes > pool->high ? used + bytes : pool->high;
    *name = pool->name;
    return cudaSuccess;
}

static cudaError_t create(struct runtime *runtime, cudaMemPool_t *pool,
                          const struct cudaMemPoolProps *properties) {
    char name[48];
    if (pool == NULL || properties == NULL ||
        properties->allocType != cudaMemAllocationTypePinned ||
        properties->location.type != cudaMemLocationTypeDevice ||
        !is_device(runtime, properties->location.id)) {
        return cudaErrorInvalidValue;
    }
    if (properties->handleTypes != cudaMemHandleTypeNone) {
        runtime_say("cudaMemPoolCreate: pools that other processes share are not supported");
        return cudaErrorNotSupported;
    }
    snprintf(name, sizeof name, "cudaMallocFromPoolAsync, pool %llu", runtime->next_id++);
    int device = runtime->device;
    runtime_select(runtime, properties->location.id);
    *pool = default_pool(runtime) != NULL ? make(runtime, name, properties->maxSize) : NULL;
    runtime_select(runtime, device);
    return *pool != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties) {
    DEVICE_CALL(runtime, create(runtime, pool, properties));
}

/** Allocations keep its name: the entry stays. */
static cudaError_t destroy(struct runtime *runtime, cudaMemPool_t handle) {
    struct CUmemPoolHandle_st *pool = find(runtime, handle);
    int device = runtime->device;
    if (pool == NULL) {
        return cudaErrorInvalidValue;
    }
    runtime_select(runtime, pool->device);
    bool is_default = pool == default_pool(runtime);
    pool->destroyed = !is_default;
    runtime->pool = runtime->pool == pool ? NULL : runtime->pool;
    runtime_select(runtime, device);
    return is_default ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    DEVICE_CALL(runtime, destroy(runtime, pool));
}

static cudaError_t get(struct runtime *runtime, cudaMemPool_t handle,
                       enum cudaMemPoolAttr attribute, void *value) {
    const struct CUmemPoolHandle_st *pool = find(runtime, handle);
    uint64_t number = 0;
    if (pool == NULL || value == NULL) {
        return cudaErrorInvalidValue;
    }
    switch ((int)attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        *(int *)value = pool->reuse[attribute - cudaMemPoolReuseFollowEventDependencies];
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        number = pool->kept;
        break;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
        number = simt_memory_used_by(runtime->memory, pool->name);
        break;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
        number = pool->high;
        break;
    default:
        return cudaErrorInvalidValue;
    }
    memcpy(value, &number, sizeof number);
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    DEVICE_CALL(runtime, get(runtime, pool, attribute, value));
}

static cudaError_t set(struct runtime *runtime, cudaMemPool_t handle,
                       enum cudaMemPoolAttr attribute, const void *value) {
    struct CUmemPoolHandle_st *pool = find(runtime, handle);
    uint64_t number = 0;
    if (pool == NULL || value == NULL) {
        return cudaErrorInvalidValue;
    }
    switch ((int)attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
        pool->reuse[attribute - cudaMemPoolReuseFollowEventDependencies] = *(const int *)value;
        return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
        memcpy(&pool->kept, value, sizeof pool->kept);
        return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh: /* may be set to zero only: the count begins anew */
        memcpy(&number, value, sizeof number);
        pool->high = number == 0 ? simt_memory_used_by(runtime->memory, pool->name) : pool->high;
        return number == 0 ? cudaSuccess : cudaErrorInvalidValue;
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value) {
    DEVICE_CALL(runtime, set(runtime, pool, attribute, value));
}

/** Nothing is kept that could be given back. */
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    (void)bytes;
    DEVICE_CALL(runtime, find(runtime, pool) != NULL ? cudaSuccess : cudaErrorInvalidValue);
}

static cudaError_t get_pool(struct runtime *runtime, cudaMemPool_t *pool, int device,
                            bool current) {
    if (pool == NULL || !is_device(runtime, device)) {
        return pool == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    int before = runtime->device;
    runtime_select(runtime, device);
    *pool = current && runtime->pool != NULL ? runtime->pool : default_pool(runtime);
    runtime_select(runtime, before);
    return *pool != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    DEVICE_CALL(runtime, get_pool(runtime, pool, device, false));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
    DEVICE_CALL(runtime, get_pool(runtime, pool, device, true));
}

static cudaError_t set_pool(struct runtime *runtime, int device, cudaMemPool_t handle) {
    struct CUmemPoolHandle_st *pool = find(runtime, handle);
    if (pool == NULL || !is_device(runtime, device) || pool->device != device) {
        return pool == NULL || is_device(runtime, device) ? cudaErrorInvalidValue
                                                          : cudaErrorInvalidDevice;
    }
    int before = runtime->device;
    runtime_select(runtime, device);
    runtime->pool = pool;
    runtime_select(runtime, before);
    return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    DEVICE_CALL(runtime, set_pool(runtime, device, pool));
}

/** Whether a device may be given, or refused, what a pool has: its own device may always. */
static bool is_access(const struct runtime *runtime, const struct CUmemPoolHandle_st *pool,
                      const struct cudaMemAccessDesc *access) {
    bool known =
        access->flags == cudaMemAccessFlagsProtReadWrite ||
        (access->flags == cudaMemAccessFlagsProtNone && access->location.id != pool->device);
    return known && access->location.type == cudaMemLocationTypeDevice &&
           is_device(runtime, access->location.id);
}

/** Access is given to all memory of the pool's device, as cudaDeviceEnablePeerAccess() does. */
static cudaError_t set_access(struct runtime *runtime, cudaMemPool_t handle,
                              const struct cudaMemAccessDesc *list, size_t count) {
    const struct CUmemPoolHandle_st *pool = find(runtime, handle);
    bool known = pool != NULL && (list != NULL || count == 0);
    for (size_t n = 0; known && n < count; n++) {
        known = is_access(runtime, pool, &list[n]);
    }
    for (size_t n = 0; known && n < count; n++) {
        simt_memory_allow(runtime->memory, list[n].location.id, pool->device,
                          list[n].flags == cudaMemAccessFlagsProtReadWrite);
    }
    return known ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                 size_t count) {
    DEVICE_CALL(runtime, set_access(runtime, pool, list, count));
}

static cudaError_t get_access(struct runtime *runtime, enum cudaMemAccessFlags *flags,
                              cudaMemPool_t pool, const struct cudaMemLocation *location) {
    const struct CUmemPoolHandle_st *found = find(runtime, pool);
    if (flags == NULL || location == NULL || found == NULL || !is_device(runtime, location->id)) {
        return cudaErrorInvalidValue;
    }
    simt_memory_select(runtime->memory, location->id);
    bool allowed = simt_memory_allows(runtime->memory, found->device);
    simt_memory_select(runtime->memory, runtime->device);
    *flags = allowed ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location) {
    DEVICE_CALL(runtime, get_access(runtime, flags, pool, location));
}
