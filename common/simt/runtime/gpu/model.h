/**
 * @file model.h
 * @brief Modelled time: how long the emulated GPU would have taken for a piece of work.
 *
 * The device has one clock, in nanoseconds; work of all streams is done one
 * after the other, so no overlap is modelled.
 *
 * A launch is a queueing network: resident warps go round between the units of
 * a multiprocessor (issue, L1 and shared memory, arithmetic, its share of L2 and
 * of device memory) and wait for the latencies of their own chain of
 * instructions. Few warps leave latency exposed, many queue for the busiest
 * unit. common/simt/MODEL.md has the formulas, where their constants are from,
 * and how far off they are.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GPU_MODEL_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GPU_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"
#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/simt.h"

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
    bool pageable;                        /**< bus copy: the host's memory is not pinned */
    size_t bytes;                         /**< copies, sets */
    uint64_t blocks;                      /**< launch: blocks of the grid */
    uint32_t threads;                     /**< launch: of a block; 0 counts as 1 */
    uint32_t resident;                    /**< launch: blocks that fit on a multiprocessor at a
                                               time; 0 counts as 1 */
    const struct simt_counters *counters; /**< launch: its counters */
};

/** The units of a GPU that warps queue for. */
enum simt_station {
    SIMT_STATION_ISSUE,
    SIMT_STATION_L1, /**< with shared memory */
    SIMT_STATION_FLOAT,
    SIMT_STATION_DOUBLE,
    SIMT_STATION_SPECIAL,
    SIMT_STATION_TENSOR,
    SIMT_STATION_L2,
    SIMT_STATION_MEMORY, /**< device memory */
    SIMT_STATION_ATOMICS,
    SIMT_STATION_COUNT
};

enum { SIMT_MOST_RESIDENT = 32 };

/** How the model comes to the time of a launch, seen from the busiest multiprocessor. */
struct simt_explanation {
    double nanoseconds; /**< of the launch, as simt_model_advance() has it */
    double overhead;    /**< of these, before the first block begins */
    uint64_t blocks;    /**< of the busiest multiprocessor, one batch after the other */
    uint32_t resident;  /**< blocks of a full batch, at most SIMT_MOST_RESIDENT */
    double batch[SIMT_MOST_RESIDENT]; /**< nanoseconds of a batch of n + 1 blocks; 0 beyond
                                           `resident` */
    double busy[SIMT_STATION_COUNT];  /**< share of the time that each unit works */

    /** @name Where a warp spends its time, its place in the queues included: shares, 1 in all
     * @{ */
    double stay[SIMT_STATION_COUNT];
    double chain; /**< for its own chain of arithmetic and shared memory */
    double loads; /**< for latencies of loads one after the other */
    double block; /**< start and end of a block */
    /** @} */
};

/** Explains the time of a launch. @param cost of kind SIMT_COST_LAUNCH, with blocks */
void simt_model_explain(struct simt_explanation *explanation, const struct simt_gpu *gpu,
                        const struct simt_cost *cost);

/** What this GPU can do at best, as the model has it. */
void simt_model_limits(struct simt_limits *limits, const struct simt_gpu *gpu);

/**
 * @brief Says what limits a launch: its time, the shares of the units, the limiting one.
 *
 * A unit of the busiest multiprocessor that works for half of the time or more is the limit, the
 * busiest first; if there is none, latency is, and the launch where that takes longer than the
 * work.
 *
 * @param nanoseconds of the launch, as simt_model_advance() gave them
 */
void simt_model_profile(struct simt_profile *profile, const struct simt_gpu *gpu,
                        const struct simt_cost *cost, double nanoseconds);

/** Moves @p clock (nanoseconds) on by the duration of the work. @return that duration */
double simt_model_advance(double *clock, const struct simt_gpu *gpu, const struct simt_cost *cost);

#endif
