/**
 * @file host_memory.h
 * @brief Host memory that kernels may use: pinned, registered, managed.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_HOST_MEMORY_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_HOST_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

struct runtime;

enum host_kind { HOST_PINNED, HOST_REGISTERED, HOST_MANAGED };

struct host_block {
    void *memory;
    size_t bytes;
    enum host_kind kind;
    unsigned flags; /**< as cudaHostGetFlags() tells them */
    const char *what;
    struct host_block *next;

    /** @name Of a program in another process, see mirror.h; NULL and false else
     * @{ */
    unsigned char *copy, *before; /**< what kernels use; as it was fetched */
    bool variable;                /**< copy is a managed variable's device memory */
    bool fetched;                 /**< for the work that runs */
    /** @} */
};

/** Allocates pinned or managed memory, aligned to 4096 bytes; contents undefined. */
cudaError_t host_block_allocate(struct runtime *runtime, enum host_kind kind, size_t bytes,
                                unsigned flags, const char *what, void **memory);

/** Lets kernels use the caller's memory. @return cudaErrorHostMemoryAlreadyRegistered on overlap */
cudaError_t host_block_register(struct runtime *runtime, void *memory, size_t bytes,
                                unsigned flags);

/** Adds the program's part of a managed variable, whose device memory is at @p variable. */
cudaError_t host_block_add_variable(struct runtime *runtime, void *memory, size_t bytes,
                                    void *variable);

/** @return the block that holds @p pointer, or NULL. */
struct host_block *host_block_find(struct runtime *runtime, const void *pointer);

/** Takes a block out of use; frees its memory unless it is the caller's. */
void host_block_release(struct runtime *runtime, struct host_block *block);

/** Releases all of them. */
void host_blocks_free(struct runtime *runtime);

/* Says which allocations nobody freed. */

/**
 * @brief Lists live allocations of cudaMalloc() and its kin on stderr.
 *
 * With SIMT_CHECK=full only. Silent after a fault: a program that stops early
 * frees nothing, and the fault is what its author needs to read.
 */
void leaks_report(struct runtime *runtime);

#endif
