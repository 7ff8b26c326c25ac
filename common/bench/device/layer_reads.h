/**
 * @file layer_reads.h
 * @brief The time to read a model's weights and cache when each layer is a launch of its own.
 *
 * device_read_bandwidth() reads gigabytes in one launch. A kernel that reads one layer starts with
 * an empty memory queue and ends with blocks that wait for the last one, and pays for that once a
 * layer. This is the same read, split into such launches.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_LAYER_READS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_LAYER_READS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The bytes of each layer: its weights, then its keys and values, one launch each. */
struct layer_reads {
    size_t layers;
    size_t weight_bytes; /**< of one layer, rounded up to DEVICE_READ_TILE_BYTES; 0: no launch */
    size_t cache_bytes;  /**< of one layer's keys and values, rounded up in the same way */
};

/** @return bytes that all layers read, in whole tiles; 0: none, or the sum overflows. */
size_t layer_reads_bytes(const struct layer_reads *reads);

/**
 * @brief Times the launches of all layers as one CUDA graph of device_stream_read() calls. The
 *        better median of its two ways of distributing bytes over blocks counts; on simt only the
 *        first is tried.
 *
 * Each layer has memory of its own, layer_reads_bytes() in all. So a run finds data of the run
 * before in the L2 cache only if that cache holds a large share of all layers.
 *
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT when there is nothing to read; the device's failure
 */
MUST_CHECK enum status layer_reads_time(const struct layer_reads *reads,
                                        struct bench_timing *timing, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
