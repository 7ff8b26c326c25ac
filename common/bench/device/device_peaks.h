/**
 * @file device_peaks.h
 * @brief What this GPU can do: every figure of a GPU is a share of these two.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_PEAKS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_PEAKS_H_

#include "common/base/status.h"
#include "common/bench/roofline.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief The roofs of the GPU that device_open() found.
 *
 * On a GPU both are measured, in some tenths of a second: fused multiply-adds
 * in registers, and a copy of up to 512 MiB, bytes read and written. On simt
 * they are what clocks and widths allow.
 */
MUST_CHECK enum status device_peaks(struct roofline *roofs, struct error *error);

/**
 * @brief How fast kernels that only read get bytes out of memory: what decoding token by token is a
 *        share of.
 *
 * On a GPU measured in some tenths of a second: 2 GiB, or an eighth of the memory, in loads of 16
 * bytes, the best of two ways of spreading them over blocks and of all runs. On simt what clock and
 * width allow.
 */
MUST_CHECK enum status device_read_bandwidth(double *bytes_per_s, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
