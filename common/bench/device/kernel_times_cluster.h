/**
 * @file kernel_times_cluster.h
 * @brief For kernel_times_test: a kernel that depends on its clusters.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TIMES_CLUSTER_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TIMES_CLUSTER_H_

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Writes to @p blocks (device) how many blocks a cluster has, launched with clusters of @p size.
    Compute capability 9.0. */
MUST_CHECK enum status write_cluster_blocks_of(unsigned *blocks, unsigned size,
                                               device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
