/**
 * @file device_peaks.h
 * @brief The peaks of this GPU, arithmetic and memory; other figures are given as shares of them.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_PEAKS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_PEAKS_H_

#include "common/base/status.h"
#include "common/bench/roofline.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief The two roofs of the GPU that device_open() opened.
 *
 * On a GPU both are measured, in a tenth of a second: fused multiply-adds
 * in registers, and a copy of up to 512 MiB, counting bytes read and bytes
 * written. On simt they follow from the modelled clocks and bus widths.
 *
 * @param spread receives how much the runs of the arithmetic differ, median time over the fastest:
 *               1 on simt; or NULL
 */
MUST_CHECK enum status device_peaks(struct roofline *roofs, double *spread, struct error *error);

/**
 * @brief Memory bandwidth of kernels that only read: the upper limit of decoding token by token.
 *
 * On a GPU it is measured in a tenth of a second: 2 GiB or an eighth of the memory, whichever
 * is less, is read in 16-byte loads; the best run of both ways of distributing the loads over
 * blocks counts. On simt it follows from the modelled memory clock and bus width.
 *
 * @param spread receives how much the runs of the faster way differ, as above; or NULL
 */
MUST_CHECK enum status device_read_bandwidth(double *bytes_per_s, double *spread,
                                             struct error *error);

#ifdef __cplusplus
}
#endif

#endif
