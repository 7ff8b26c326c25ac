/**
 * @file block_clock.h
 * @brief Clocks of blocks that may wait for other blocks of their launch, for the model of time.
 *
 * On a GPU the blocks of a launch run at the same time, and one may wait until another one has
 * stored a flag, or data. simt runs one after the other, so nobody waits. Here each block has a
 * clock, which says how far it would be at best: as if it had begun with the launch, and had the
 * GPU for itself. A word that it stores is stored at that time (store_times.h). A block that loads
 * a word which another one has stored goes on no earlier. So the clock of the block that ends last
 * bounds the time of the launch from below, whatever its blocks wait for, and by which
 * instructions.
 *
 * The clock of a block is those of its warps (pipeline.h, schedule/timeline.h): the latencies of
 * each warp's own instructions, and barriers. And it is no earlier than the unit of its
 * multiprocessor that has most to do is ready with what the block counted since it last waited.
 *
 * An atomic operation that does no more than count (changes an integer by a little) stores nothing
 * in this sense: tickets and arrivals may come in any order, simt's is one of many, and who looks
 * at a counter may have been content with less than it finds. What he loads then, of what others
 * have stored, he waits for.
 *
 * Only kernels that load by instructions which can see what runs beside them have clocks: all
 * others cannot wait for another block.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_BLOCK_CLOCK_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_BLOCK_CLOCK_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"
#include "common/simt/memory/run.h"

/** What the model of time knows of a block that has the GPU for itself. */
struct simt_alone {
    /** @return cycles that a block needs at least which has counted that much. */
    double (*cycles)(const void *gpu, const struct simt_counters *counters);
    const void *gpu;
    uint32_t l1_latency, l2_latency; /**< cycles of a load */
};

/** Those of a launch, whose blocks run one after the other or in turns on one host thread. */
struct simt_block_clocks;

/** @return NULL when memory is short. */
struct simt_block_clocks *simt_block_clocks_create(const struct simt_alone *alone);

/** NULL is allowed. */
void simt_block_clocks_free(struct simt_block_clocks *clocks);

/** The launch begins, or begins once more. */
void simt_block_clocks_clear(struct simt_block_clocks *clocks);

/** @return cycles from the beginning of the launch until the last block has ended that has loaded
 *  what another one had stored; 0: none has. */
uint64_t simt_block_clocks_latest(const struct simt_block_clocks *clocks);

/** @return what they are made with. */
const struct simt_alone *simt_block_clocks_alone(const struct simt_block_clocks *clocks);

/** That of one block after another. */
struct simt_block_clock;

/** @param own what the running block counts  @return NULL when memory is short. */
struct simt_block_clock *simt_block_clock_create(struct simt_block_clocks *clocks,
                                                 struct simt_counters *own);

/** NULL is allowed. */
void simt_block_clock_free(struct simt_block_clock *clock);

/** A block begins. */
void simt_block_clock_begin(struct simt_block_clock *clock);

/** A block with a clock has ended, before its counts are taken. */
void simt_block_clock_end(struct simt_block *block);

#endif
