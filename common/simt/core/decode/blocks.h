/**
 * @file blocks.h
 * @brief Basic blocks of a decoded function, and where control goes from each.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_BLOCKS_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_BLOCKS_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/code.h"

/** Blocks in the order of the text. Successors of block b: edges[edge_start[b] ..
 * edge_start[b+1]-1].
 */
struct simt_blocks {
    size_t count;
    uint32_t *first;      /**< (count + 1): instructions of block b are first[b] .. first[b+1]-1 */
    uint32_t *edge_start; /**< (count + 1) */
    uint32_t *edges;
    uint32_t *of; /**< (instructions): number of the block */
};

/**
 * @brief Finds the blocks; sets code->leader.
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY; simt_blocks_free() in both cases
 */
MUST_CHECK enum status simt_blocks_find(struct simt_blocks *blocks, const struct simt_code *code);

void simt_blocks_free(struct simt_blocks *blocks);

#endif
