/**
 * @file profile.h
 * @brief One launch as a profiler shows it: its shape, its occupancy, and the unit that limits it.
 *
 * On simt all of it is modelled (MODEL.md). On a GPU a program fills in what the runtime tells, and
 * the unit stays unknown.
 */
#ifndef WARPBOOK_COMMON_SIMT_PROFILE_H_
#define WARPBOOK_COMMON_SIMT_PROFILE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel can be limited by. */
enum simt_unit {
    SIMT_UNIT_UNKNOWN,
    SIMT_UNIT_ISSUE,   /**< the schedulers, which start one instruction a cycle each */
    SIMT_UNIT_L1,      /**< L1 and shared memory */
    SIMT_UNIT_FLOAT,   /**< fp32 arithmetic */
    SIMT_UNIT_DOUBLE,  /**< fp64 arithmetic */
    SIMT_UNIT_SPECIAL, /**< special functions and conversions */
    SIMT_UNIT_TENSOR,  /**< tensor cores */
    SIMT_UNIT_L2,
    SIMT_UNIT_MEMORY,  /**< device memory */
    SIMT_UNIT_ATOMICS, /**< atomics on one line of L2 */
    SIMT_UNIT_BLOCKS,  /**< none: blocks wait for other blocks of the launch */
    SIMT_UNIT_LATENCY, /**< none: warps wait for their own chains of dependent instructions */
    SIMT_UNIT_LAUNCH,  /**< none: the launch takes longer than the work */
    SIMT_UNIT_COUNT
};

/** What keeps more blocks from being resident on a multiprocessor. */
enum simt_occupancy_limit {
    SIMT_OCCUPANCY_UNKNOWN,
    SIMT_OCCUPANCY_GRID,      /**< there are no more blocks */
    SIMT_OCCUPANCY_THREADS,   /**< threads a multiprocessor: it is full */
    SIMT_OCCUPANCY_REGISTERS, /**< of all threads */
    SIMT_OCCUPANCY_SHARED,    /**< shared memory of the blocks */
    SIMT_OCCUPANCY_BLOCKS,    /**< blocks a multiprocessor takes */
    SIMT_OCCUPANCY_COUNT
};

/** One launch. */
struct simt_profile {
    char gpu[64];     /**< "NVIDIA H200" */
    char kernel[192]; /**< as the source spells it, with its parameters */
    bool modelled;    /**< by simt; else nothing but shape and occupancy is known */
    uint32_t grid[3], block[3];
    uint32_t registers;  /**< a thread; of PTX alone an estimate */
    uint64_t shared;     /**< bytes a block, static and dynamic */
    uint64_t blocks;     /**< of the grid */
    uint32_t processors; /**< multiprocessors of the GPU */
    uint32_t busy;       /**< multiprocessors that have work: modelled, for more than a
                              tenth of the time; else those with a block */
    double even;         /**< mean time that a multiprocessor has blocks, as a share of the
                              longest; not modelled: mean blocks over most */
    uint32_t warps;      /**< resident on the busiest multiprocessor */
    uint32_t most_warps; /**< that a multiprocessor takes */
    uint32_t at_a_time;  /**< blocks that fit on a multiprocessor */
    uint32_t limit;      /**< enum simt_occupancy_limit */
    uint32_t unit;       /**< enum simt_unit: what limits it */
    double nanoseconds;  /**< of the launch */
    double overhead;     /**< nanoseconds of them before the work begins */
    double share[SIMT_UNIT_COUNT]; /**< of the work's time that each unit of the busiest
                                        multiprocessor is busy, 0 to 1 */
    struct simt_counters counters;
};

/** What a multiprocessor takes at a time. */
struct simt_processor {
    uint32_t threads, blocks, registers;
};

/**
 * @brief Fills in multiprocessors, busy ones, resident warps and what keeps more away, from the
 *        profile's blocks, threads and registers.
 * @param at_a_time blocks that fit on a multiprocessor
 */
void simt_profile_set_occupancy(struct simt_profile *profile,
                                const struct simt_processor *processor, uint32_t processors,
                                uint32_t at_a_time);

#ifdef __cplusplus
}
#endif

#endif
