/**
 * @file device_limits.h
 * @brief What this GPU can do at best: the limits that a kernel's time is compared with.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_LIMITS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_LIMITS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device_limits {
    bool modelled;     /**< by simt; else measured */
    double fp32_flops; /**< a second: fused multiply-adds in registers */
    double
        tensor_flops; /**< a second: mma of bf16 with fp32 sums; 0: neither GPU nor code has it */
    double flops_spread; /**< of the fp32 probe: the median of its runs over the fastest */
    double read;         /**< device memory, only read: bytes a second */
    double read_spread;  /**< likewise */
    double copy;         /**< device memory, read and written: bytes a second, both counted */
    double l2;           /**< the L2 cache, read: bytes a second */
    double bus;          /**< from pageable host memory to the device: bytes a second */
    double call_ms;      /**< a tiny kernel, launched and waited for */
    double call_spread;  /**< of that: the median of many over the fastest */
    double event_ms;     /**< a tiny kernel between two events, as device_bench_run() times it */
    double launch_ms;    /**< each further one in a row, launched one by one */
    double node_ms;      /**< each further one in a row, as nodes of one CUDA graph */
    double clock_khz;    /**< of the multiprocessors under load; 0: modelled */
    size_t l2_bytes;
};

/**
 * @brief Finds the limits of the GPU that device_open() opened.
 *
 * On a GPU they are measured, which takes about half a second; of each probe the fastest run
 * counts, since all else that happens can only slow a run. On simt rates follow from its table of
 * GPUs, and launches are modelled.
 */
MUST_CHECK enum status device_limits(struct device_limits *limits, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
