/**
 * @file timeline.h
 * @brief When a warp's instructions could run if it had the GPU for itself.
 *
 * A warp starts the instructions of a basic block as soon as what they read is
 * there (ptxas orders them so), and blocks one after the other; nothing passes
 * a barrier. What comes out is the longest chain: cycles of arithmetic and
 * shared memory, and loads of global memory that wait for each other. The model
 * of time needs it: few warps cannot hide it.
 *
 * Following every warp would cost too much, so some are followed: one warp of a block in each of
 * some windows of the grid. Which block that is, a seed draws, so that a program cannot tell; of
 * blocks that are alike any will do.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_TIMELINE_H_
#define WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_TIMELINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/code.h"
#include "common/simt/memory/counters.h"

struct simt_timeline;
struct simt_xray;

/** @return a timeline for warps of a kernel, or NULL without memory. */
struct simt_timeline *simt_timeline_create(const struct simt_code *code);

void simt_timeline_free(struct simt_timeline *timeline);

/** Loads take so many cycles, in place of SIMT_LOAD_NOMINAL: before any warp begins. The chain is
 *  for simt_timeline_now() alone then, not for simt_timeline_end(). */
void simt_timeline_set_load(struct simt_timeline *timeline, uint32_t cycles);

/** What decides which warps of a launch are followed. */
struct simt_timeline_grid {
    uint64_t blocks;
    uint32_t warps; /**< of a block */
    uint64_t seed;
};

/** @return true when warp @p warp of block @p block is to be followed. */
bool simt_timeline_follows(const struct simt_timeline_grid *grid, uint64_t block, uint32_t warp);

/** A warp begins. @param xray receives what each instruction waits for; NULL: nothing does */
void simt_timeline_begin(struct simt_timeline *timeline, struct simt_xray *xray);

/** The warp runs an instruction of @p code, the kernel itself or a function it calls. */
void simt_timeline_step(struct simt_timeline *timeline, const struct simt_code *code, uint32_t pc);

/** What the latest instruction loads comes from the shared memory of another block. */
void simt_timeline_reach_peer(struct simt_timeline *timeline);

/** What the latest instruction loads, or copies, began to come no earlier than @p earliest, and
 *  takes @p cycles. */
void simt_timeline_load(struct simt_timeline *timeline, uint64_t earliest, uint32_t cycles);

/** Nothing more starts before @p cycles: the warp waits for others. */
void simt_timeline_hold(struct simt_timeline *timeline, uint64_t cycles);

/** @return cycles until all that was started so far has started. */
uint64_t simt_timeline_now(const struct simt_timeline *timeline);

/** The warp has ended: adds its chain to the counters. */
void simt_timeline_end(const struct simt_timeline *timeline, struct simt_counters *counters);

#endif
