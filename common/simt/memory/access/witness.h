/**
 * @file witness.h
 * @brief Finds the earlier one of two accesses that race: its thread and its line.
 *
 * The history of a word says that two accesses race and which warp or block made
 * the earlier one, but not on which line: to record that of every access would
 * take time in every launch. So a launch that ends in a race is run again, with
 * memory as it was before, and this time each access to the racing bytes is
 * looked at. The last one that fits what the history said is the one.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_WITNESS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_WITNESS_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/run.h"

struct simt_witness {
    struct simt_encounter race; /**< that was found */
    uint64_t order;             /**< of the block that the later access belongs to */
    /* What the second run finds. */
    const struct simt_instruction *instruction; /**< of the earlier access; NULL: none so far */
    uint64_t by_order;                          /**< its block */
    uint32_t by_thread;                         /**< its thread, by number in the block */
    bool
        other_warps; /**< warps of the block besides the racing one execute one of the lines, too */
};

/** @return what to look for after @p fault, which is a race. */
struct simt_witness simt_witness_of(const struct simt_fault *fault);

/** A barrier of a block: what was before it is no side of a race inside of the block. */
void simt_witness_barrier(struct simt_witness *witness, uint64_t order);

/** @return what to try against a race inside a block, once the second run has ended. */
const char *simt_witness_hint(const struct simt_witness *witness);

#endif
