/**
 * @file mirror.h
 * @brief Who has the program's pinned, registered and managed memory, and what it costs to cross
 * the bus.
 *
 * Memory is looked at in pieces of 64 KiB (SIMT_HOST_CHUNK).
 *
 * A piece of managed memory belongs to the program or to the device. It moves to the device when a
 * kernel or cudaMemset() first uses it, and back when the program does, whose access faults
 * (mirror_fault()). Either way it crosses the bus, and that takes time. Copies move nothing.
 *
 * Pinned and registered memory stays with the program. A kernel that uses it reaches across the
 * bus: each piece that it uses crosses once a launch.
 *
 * A device in a process of its own cannot reach the program's memory: it fetches the pieces that a
 * kernel uses, and sends back what has changed when the kernel is done. So kernels see what the
 * program wrote before the launch, and the program what kernels wrote before the launch returned.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_MIRROR_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_MIRROR_H_

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

struct runtime;
struct host_block;

/** Watches a block, and makes room for its copy unless there is some (@p copy: a managed
 *  variable's). */
cudaError_t mirror_open(struct runtime *runtime, struct host_block *block, void *copy);
void mirror_close(struct host_block *block);

/** Before work that uses device memory: managed variables, which have device addresses, move to the
 *  device. */
void mirror_begin(struct runtime *runtime);

/** After it: sends back what has changed, and moves the clock on. */
void mirror_end(struct runtime *runtime);

/** The work that runs uses all of a range of host memory. */
void mirror_use(struct runtime *runtime, const void *memory, size_t bytes);

/** Copies from, or to, memory of the program or what the device has of it. */
bool mirror_read(struct runtime *runtime, void *to, const void *from, size_t bytes);
bool mirror_write(struct runtime *runtime, void *to, const void *from, size_t bytes);

/** The program has read or written managed memory: an early access is reported. @return false when
 *  the device does not have it */
bool mirror_fault(struct runtime *runtime, const void *address, bool writes);

/** cudaMemPrefetchAsync(). */
cudaError_t mirror_prefetch(struct runtime *runtime, const void *memory, size_t bytes,
                            bool to_device);

#endif
