/**
 * @file model.h
 * @brief Modelled time: what the emulated GPU would have taken for a piece of work.
 *
 * The device has one clock, in nanoseconds; work of all streams is done one
 * after the other, so no overlap is modelled. The formulas are simple:
 *
 *     launch   overhead + max(issue, memory, shared)
 *              issue  = warp instructions / (4 a clock * multiprocessors in use)
 *              shared = wavefronts of shared memory / (1 a clock * multiprocessors in use)
 *              memory = 32 bytes * sectors of global and local memory / bandwidth
 *     copy     overhead + bytes / bus, or 2 * bytes / bandwidth within the device
 *     set      overhead + bytes / bandwidth
 *
 * Caches, latency, occupancy and the units' own rates are left out, so a figure
 * is good for "did it move fewer sectors, did it lose its bank conflicts", not
 * for more. common/simt/README.md compares it with a GPU.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MODEL_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"
#include "common/simt/runtime/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum simt_cost_kind {
    SIMT_COST_LAUNCH,
    SIMT_COST_BUS_COPY,    /**< between host and device */
    SIMT_COST_DEVICE_COPY, /**< within the device */
    SIMT_COST_SET
};

/** One piece of work, as the model sees it. */
struct simt_cost {
    enum simt_cost_kind kind;
    bool graph;                           /**< replayed from a graph: less overhead */
    size_t bytes;                         /**< copies, sets */
    uint64_t blocks;                      /**< launch: blocks of the grid */
    const struct simt_counters *counters; /**< launch: what it did */
};

/** Moves @p clock (nanoseconds) on by what the work takes. @return what it takes */
double simt_model_advance(double *clock, const struct simt_gpu *gpu, const struct simt_cost *cost);

#ifdef __cplusplus
}
#endif

#endif
