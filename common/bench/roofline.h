/**
 * @file roofline.h
 * @brief The roofline model: a kernel's limits by arithmetic and by memory, and a plot of them.
 *
 * A kernel that does F operations and moves B bytes takes at least
 * max(F / peak, B / bandwidth) seconds. (Williams, Waterman and Patterson:
 * Roofline, CACM 52(4), 2009.)
 */
#ifndef WARPBOOK_COMMON_BENCH_ROOFLINE_H_
#define WARPBOOK_COMMON_BENCH_ROOFLINE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The two roofs of a device. */
struct roofline {
    double flops_per_s; /**< fp32 */
    double bytes_per_s; /**< device memory */
    bool modelled;      /**< true: simt's modelled figures; false: measured, see device_peaks.h */
};

/** @return the least milliseconds that @p flops and @p bytes take under both roofs. */
double roofline_least_ms(const struct roofline *roofs, double flops, double bytes);

/** @return share of the roofline that a run of @p ms milliseconds reaches; 1: it is on the roof. */
double roofline_share(const struct roofline *roofs, double flops, double bytes, double ms);

/** One kernel in the plot. */
struct roofline_point {
    const char *name; /**< "v3_shared_tile" */
    double flops;     /**< of one run, > 0 */
    double bytes;     /**< of one run, > 0: the least bytes possible, or the bytes moved */
    double ms;        /**< of one run, > 0 */
};

struct roofline_plot {
    const char *title;    /**< "SGEMM 4096 x 4096 x 4096" */
    const char *subtitle; /**< "measured on NVIDIA H200 ...", see device_bench_headline() */
    struct roofline roofs;
    const struct roofline_point *points;
    size_t count;
};

/**
 * @brief Writes the plot as an SVG file; on failure no file appears.
 *
 * FLOP/s over FLOP/byte, both logarithmic, in the reader's light or dark colour scheme.
 *
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT, naming the point or roof that is not positive and
 *         finite; STATUS_OUT_OF_MEMORY; the failure of file_write()
 */
MUST_CHECK enum status roofline_plot(const struct roofline_plot *plot, const char *path,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
