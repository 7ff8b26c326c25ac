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

static struct CUmemPoolHandle_st *find(struct runtime *runtime, cudaMemPool_t handle) {
    struct CUmemPoolHandle_st *pool = runtime->pools;
    while (pool != NULL && (pool != handle || pool->destroyed)) {
        pool = pool->next;
    }
    return handle != NULL ? pool : NULL;
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
        properties->location.type != cudaMemLocationTypeDevice || properties->location.id != 0) {
        return cudaErrorInvalidValue;
    }
    if (properties->handleTypes != cudaMemHandleTypeNone) {
        runtime_say("cudaMemPoolCreate: pools that other processes share are not supported");
        return cudaErrorNotSupported;
    }
    snprintf(name, sizeof name, "cudaMallocFromPoolAsync, pool %llu", runtime->next_id++);
    *pool = default_pool(runtime) != NULL ? make(runtime, name, properties->maxSize) : NULL;
    return *pool != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties) {
    DEVICE_CALL(runtime, create(runtime, pool, properties));
}

/** Allocations keep its name: the entry stays. */
static cudaError_t destroy(struct runtime *runtime, cudaMemPool_t handle) {
    struct CUmemPoolHandle_st *pool = find(runtime, handle);
    if (pool == NULL || pool == default_pool(runtime)) {
        return cudaErrorInvalidValue;
    }
    pool->destroyed = true;
    runtime->pool = runtime->pool == pool ? NULL : runtime->pool;
    return cudaSuccess;
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
    if (pool == NULL || device != 0) {
        return pool == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    *pool = current && runtime->pool != NULL ? runtime->pool : default_pool(runtime);
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
    if (pool == NULL || device != 0) {
        return pool == NULL ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    }
    runtime->pool = pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    DEVICE_CALL(runtime, set_pool(runtime, device, pool));
}

/** There is one device, and it may always. */
static cudaError_t set_access(struct runtime *runtime, cudaMemPool_t pool,
                              const struct cudaMemAccessDesc *list, size_t count) {
    bool known = find(runtime, pool) != NULL && (list != NULL || count == 0);
    for (size_t n = 0; known && n < count; n++) {
        known = list[n].location.id == 0 && list[n].flags == cudaMemAccessFlagsProtReadWrite;
    }
    return known ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                 size_t count) {
    DEVICE_CALL(runtime, set_access(runtime, pool, list, count));
}

static cudaError_t get_access(struct runtime *runtime, enum cudaMemAccessFlags *flags,
                              cudaMemPool_t pool, const struct cudaMemLocation *location) {
    if (flags == NULL || location == NULL || find(runtime, pool) == NULL || location->id != 0) {
        return cudaErrorInvalidValue;
    }
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location) {
    DEVICE_CALL(runtime, get_access(runtime, flags, pool, location));
}
