/**
 * @file mirror.h
 * @brief The device's copy of the program's pinned, registered and managed memory.
 *
 * A device in a process of its own cannot reach that memory. A kernel's first access to a block
 * fetches it; when the kernel is done, the pages that it has changed go back. Kernels therefore see
 * what the program wrote before the launch, and the program what kernels wrote before their launch
 * returned. In one process with the program there is no copy, and nothing here does anything.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_MIRROR_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_MIRROR_H_

#include <cuda_runtime_api.h>

struct runtime;
struct host_block;

/** Makes room for a block's copy, unless it has some (`copy`: a managed variable's). */
cudaError_t mirror_open(struct runtime *runtime, struct host_block *block, void *copy);
void mirror_close(struct host_block *block);

/** Before work that uses device memory: fetches managed variables, which have device addresses. */
void mirror_begin(struct runtime *runtime);

/** After it: sends back what has changed. */
void mirror_end(struct runtime *runtime);

#endif
