/**
 * @file block_costs.h
 * @brief What the blocks of a launch cost, each on its own, in bounded memory.
 *
 * Blocks that cost about the same (within 1/16 octave, the same thing most of all, about as many
 * loads an instruction) form a class,
 * which keeps the sum of their counts. Beside the classes stands the order: spans of blocks of one
 * class, as the grid has them. A grid of more than SIMT_ORDERED_BLOCKS is cut into that many
 * windows, and within a window blocks of one class stand together. Nothing depends on which host
 * thread ran which block.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_BLOCK_COSTS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_BLOCK_COSTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SIMT_BLOCK_KEYS = 16384, /**< classes at most */
    SIMT_ORDERED_BLOCKS = 1 << 16
};

/** Blocks that cost about the same. */
struct simt_block_class {
    uint32_t key;
    uint64_t blocks;
    struct simt_counters sum;
};

/** Blocks of one class that follow each other, those of other classes within a window aside. */
struct simt_block_span {
    uint64_t first; /**< block, or the window's first one */
    uint64_t blocks;
    uint32_t of; /**< class */
};

/** Begins as zeros. */
struct simt_block_costs {
    struct simt_block_class *classes; /**< (class_count) */
    struct simt_block_span *spans;    /**< (span_count) */
    size_t class_count, class_room, span_count, span_room;
    uint64_t window;  /**< blocks whose order is not kept; 1: all of it is */
    uint16_t *by_key; /**< (SIMT_BLOCK_KEYS): number of the class, plus one */
};

/** Begins with no block. @param blocks of the grid @return false: out of memory */
bool simt_block_costs_begin(struct simt_block_costs *costs, uint64_t blocks);

/**
 * @brief Adds a block. @return false: out of memory
 * @param order position in the grid
 * @param own   what this block alone counted
 */
bool simt_block_costs_note(struct simt_block_costs *costs, uint64_t order,
                           const struct simt_counters *own);

/** Adds all of another list, of the same grid. @return false: out of memory */
bool simt_block_costs_add(struct simt_block_costs *to, const struct simt_block_costs *from);

/** Puts classes and spans in an order that depends on nothing but the blocks. */
void simt_block_costs_sort(struct simt_block_costs *costs);

/** Frees all and makes it zeros. */
void simt_block_costs_free(struct simt_block_costs *costs);

#ifdef __cplusplus
}
#endif

#endif
