/**
 * @file model.h
 * @brief Modelled time: how long the emulated GPU would have taken for a piece of work.
 *
 * The device has one clock, in nanoseconds; work of all streams is done one
 * after the other, so no overlap is modelled.
 *
 * The blocks of a launch are placed on multiprocessors as a GPU does it, and the
 * one that ends last decides (placement.h). Its resident warps go round between
 * its units (issue, L1 and shared memory, arithmetic, its share of L2 and of
 * device memory) and wait for the latencies of their own chain of instructions.
 * Few warps leave latency exposed, many queue for the busiest unit. common/simt/MODEL.md has the
 * formulas, where their constants are from, and how far off they are.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GPU_MODEL_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GPU_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/access/block_clock.h"
#include "common/simt/memory/counters.h"
#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/runtime/gpu/placement.h"
#include "common/simt/simt.h"

enum simt_cost_kind {
    SIMT_COST_LAUNCH,
    SIMT_COST_GRAPH,       /**< what launching a graph takes beyond its nodes */
    SIMT_COST_BUS_COPY,    /**< between host and device */
    SIMT_COST_DEVICE_COPY, /**< within the device */
    SIMT_COST_SET
};

/** One piece of work, as the model sees it. */
struct simt_cost {
    enum simt_cost_kind kind;
    bool graph;                           /**< replayed from a graph: less overhead */
    bool first;                           /**< graph: the host has waited for all before it */
    bool pageable;                        /**< bus copy: the host's memory is not pinned */
    size_t bytes;                         /**< copies, sets */
    uint64_t blocks;                      /**< launch: blocks of the grid */
    uint32_t threads;                     /**< launch: of a block; 0 counts as 1 */
    uint32_t resident;                    /**< launch: blocks that fit on a multiprocessor at a
                                               time; 0 counts as 1 */
    const struct simt_counters *counters; /**< launch: its counters */
    const struct simt_block_costs *costs; /**< launch: those of its blocks; NULL: all are alike */
    uint64_t waited; /**< launch: cycles until the last block of a chain of blocks that wait for
                          each other; 0: there is none. See memory/access/block_clock.h */
};

/** How the model comes to the time of a launch, seen from the multiprocessor that ends last. */
struct simt_explanation {
    double nanoseconds;  /**< of the launch, as simt_model_advance() has it */
    double overhead;     /**< of these, before the first block begins */
    uint64_t blocks;     /**< of that multiprocessor */
    uint32_t resident;   /**< blocks of one at a time, at most SIMT_MOST_RESIDENT */
    uint32_t processors; /**< multiprocessors with blocks for more than a tenth of the time */
    double even; /**< mean time that a multiprocessor has blocks, as a share of the longest */
    double busy[SIMT_STATION_COUNT]; /**< share of the time that each unit works */

    /** @name Where a warp spends its time, its place in the queues included: shares, 1 in all
     * @{ */
    double stay[SIMT_STATION_COUNT];
    double chain; /**< for its own chain of arithmetic and shared memory */
    double loads; /**< for latencies of loads one after the other */
    double block; /**< start and end of a block */
    /** @} */

    double waiting; /**< share of the time in which no multiprocessor would have blocks, if none
                         waited for another one */
};

/**
 * @brief Explains the time of a launch; without memory, that of one block after the other.
 * @param cost      of kind SIMT_COST_LAUNCH
 * @param placement receives where the blocks went, in cycles; simt_placement_free() it. NULL: not
 *                  wanted
 */
void simt_model_explain(struct simt_explanation *explanation, const struct simt_gpu *gpu,
                        const struct simt_cost *cost, struct simt_placement *placement);

/** @return what blocks that have the GPU for themselves need of it. */
struct simt_alone simt_model_alone(const struct simt_gpu *gpu);

/** What this GPU can do at best, as the model has it. */
void simt_model_limits(struct simt_limits *limits, const struct simt_gpu *gpu);

/**
 * @brief Says what limits a launch: its time, the shares of the units, the limiting one.
 *
 * A unit of the multiprocessor that ends last that works for half of the time or more is the limit,
 * the busiest first; if there is none, latency is, and the launch where that takes longer than the
 * work.
 */
void simt_model_profile(struct simt_profile *profile, const struct simt_explanation *explanation);

/** Moves @p clock (nanoseconds) on by the duration of the work. @return that duration */
double simt_model_advance(double *clock, const struct simt_gpu *gpu, const struct simt_cost *cost);

#endif
