/**
 * @file link.h
 * @brief What connects the emulated GPUs of one host: a table, for the model of time.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GPU_LINK_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GPU_LINK_H_

#include <stdbool.h>
#include <stddef.h>

struct simt_gpu;

struct simt_link {
    bool peers;       /**< kernels reach the memory of another GPU */
    bool nvlink;      /**< else PCIe */
    double bandwidth; /**< one way, bytes a nanosecond, as a copy or a kernel can have it */
    double latency;   /**< one way, nanoseconds */
};

/** @return the links of a GPU to all others of its kind. */
const struct simt_link *simt_gpu_link(const struct simt_gpu *gpu);

/** @return nanoseconds that a copy of so many bytes from one GPU to another takes. */
double simt_link_copy(const struct simt_gpu *gpu, size_t bytes);

#endif
