/**
 * @file pool.h
 * @brief What allocations in stream order ask of memory pools.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_POOL_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_POOL_H_

#include <stddef.h>

#include <cuda_runtime_api.h>

struct runtime;

/**
 * @brief Before an allocation from a pool.
 * @param pool NULL: the device's current one
 * @param name receives what the allocation is called; it lives until pools_free()
 * @return cudaErrorMemoryAllocation where the pool may not grow so far
 */
cudaError_t pool_take(struct runtime *runtime, cudaMemPool_t pool, size_t bytes, const char **name);

/** Forgets all pools; their allocations must be gone. */
void pools_free(struct runtime *runtime);

#endif
