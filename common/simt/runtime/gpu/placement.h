/**
 * @file placement.h
 * @brief Blocks on multiprocessors: where each goes, who it shares a multiprocessor with, and when
 *        the last one ends.
 *
 * The next block of the grid goes where most places are free, on the multiprocessor with the lowest
 * number of those: first one block on each, then a second one, and so on; later, where a block has
 * ended. Where a chip has multiprocessors that are served more often than the others (MODEL.md),
 * these are the first ones, and get blocks ahead of their turn until the GPU is full for the first
 * time. The blocks of a multiprocessor are a closed queueing network (MODEL.md): how fast each gets
 * on depends on the others that are there. Multiprocessors that have had the same blocks at the
 * same time are computed once.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GPU_PLACEMENT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GPU_PLACEMENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/block_costs.h"

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

/** What a warp waits for beside units. */
enum simt_latency {
    SIMT_LATENCY_BLOCK, /**< start and end of its block */
    SIMT_LATENCY_CHAIN, /**< its own chain of arithmetic and shared memory */
    SIMT_LATENCY_LOADS, /**< loads one after the other */
    SIMT_LATENCY_COUNT
};

enum { SIMT_MOST_RESIDENT = 32 };

/** What a block needs of its multiprocessor. */
struct simt_need {
    double demand[SIMT_STATION_COUNT]; /**< cycles that a warp needs of each unit */
    double wait[SIMT_LATENCY_COUNT];   /**< cycles in which it needs none */
    double warps;    /**< of a block, as many as have work as long as the longest */
    double together; /**< warps that move as one, as barriers make them */
};

/** What is to be placed. */
struct simt_blocks {
    const struct simt_need *needs;       /**< of each class */
    const struct simt_block_span *spans; /**< (span_count): the grid in its order */
    size_t span_count;
    uint32_t processors;
    uint32_t ahead; /**< of those, the first ones, which get blocks ahead of their turn; 0: none */
    uint32_t slots; /**< blocks that fit on a multiprocessor, 1 to SIMT_MOST_RESIDENT */
};

/** A time in which a multiprocessor has the same blocks. */
struct simt_period {
    double end; /**< cycles */
    uint32_t blocks;
};

/** Multiprocessors with the same history. */
struct simt_lane {
    uint32_t processors;
    uint64_t blocks;             /**< that it has had */
    double end;                  /**< cycles until it has none any more */
    struct simt_period *periods; /**< (period_count), one after the other; NULL: not asked for */
    size_t period_count;
    double work[SIMT_STATION_COUNT]; /**< cycles that each unit works */
    double stay[SIMT_STATION_COUNT]; /**< cycles of all warps at each unit, queueing included */
    double wait[SIMT_LATENCY_COUNT]; /**< cycles of all warps that need none */
};

/** All multiprocessors; those that never have a block are in no lane. */
struct simt_placement {
    struct simt_lane *lanes; /**< (count) */
    size_t count;
};

/**
 * @brief Places the blocks and lets them run.
 * @param periods whether lanes have theirs
 * @return false: out of memory; simt_placement_free() it all the same
 */
bool simt_place(struct simt_placement *placement, const struct simt_blocks *blocks, bool periods);

/** @return the lane that ends last; there is one. */
const struct simt_lane *simt_placement_last(const struct simt_placement *placement);

void simt_placement_free(struct simt_placement *placement);

/** @return cycles that @p blocks blocks of one kind take that begin together. */
double simt_batch_cycles(const struct simt_need *need, uint32_t blocks);

#endif
