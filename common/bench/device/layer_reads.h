/**
 * @file layer_reads.h
 * @brief How long does only reading take when each layer's bytes are a launch of their own?
 *
 * device_read_bandwidth() reads gigabytes in one launch. A kernel that reads a layer's part of them
 * begins with an empty memory queue and ends with blocks that wait for the last one, once a layer:
 * this is the same read, cut like that.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_LAYER_READS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_LAYER_READS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is read: layer by layer its weights, then its keys and values, one launch each. */
struct layer_reads {
    size_t layers;
    size_t weight_bytes; /**< of one layer, taken as whole DEVICE_READ_TILE_BYTES; 0: no launch */
    size_t cache_bytes;  /**< the same of its keys and values */
};

/** @return bytes that all layers read, in whole tiles; 0: none, or more than a size_t holds. */
size_t layer_reads_bytes(const struct layer_reads *reads);

/**
 * @brief Times the launches of all layers as one CUDA graph, by device_stream_read(); the better
 *        median of its two ways of spreading bytes over blocks, on simt the first.
 *
 * Each layer's bytes lie in memory of their own, layer_reads_bytes() of the device's in all: what
 * is read again in the next run is in the L2 cache only where that holds much of them all.
 *
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT when nothing is to be read; the device's failure
 */
MUST_CHECK enum status layer_reads_time(const struct layer_reads *reads,
                                        struct bench_timing *timing, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
