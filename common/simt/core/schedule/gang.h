/**
 * @file gang.h
 * @brief Blocks that one host thread runs together: those of a cluster, or one alone.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_GANG_H_
#define WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_GANG_H_

#include "common/simt/core/schedule/warp.h"

struct simt_gang {
    uint32_t size;
    bool is_cluster; /**< launched as one, maybe of a single block */
    struct simt_block_run *blocks[SIMT_CLUSTER_BLOCKS]; /**< by rank */
    struct simt_cluster cluster;
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY; memory for one gang after another.
 *  simt_gang_free() it on failure, too. */
MUST_CHECK enum status simt_gang_create(struct simt_gang **gang,
                                        const struct simt_block_shape *shape,
                                        const struct simt_block_counts *counts);

/** Frees all; NULL is allowed. */
void simt_gang_free(struct simt_gang *gang);

/** Starts gang number @p number of the grid. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_gang_begin(struct simt_gang *gang, uint64_t number);

/**
 * @brief Runs the blocks for a while.
 * @param again other blocks of this host thread have run in between
 * @return true when they are finished: all threads have exited, or one block has a fault
 */
bool simt_gang_go(struct simt_gang *gang, bool again);

/** @return the block that has a fault, or NULL. */
struct simt_block_run *simt_gang_faulty(const struct simt_gang *gang);

#endif
