/**
 * @file block.h
 * @brief Runs blocks, one after another on one host thread.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_BLOCK_H_
#define WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_BLOCK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/schedule/warp.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What every block of a launch gets. */
struct simt_block_shape {
    const struct simt_run *run;
    const struct simt_code *code;
    size_t shared_bytes, dynamic_shared_bytes;
    size_t local_bytes; /**< of one thread, a multiple of 16 */
    uint64_t instruction_limit;
};

/** Counters and race detection of the blocks of one host thread. */
struct simt_block_counts {
    struct simt_counters *counters;
    struct simt_site *sites;  /**< by number; NULL: no counts by site */
    struct simt_watch *watch; /**< races in global memory; NULL: not looked for */
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY; memory for one block after another. */
MUST_CHECK enum status simt_block_create(struct simt_block_run **block,
                                         const struct simt_block_shape *shape,
                                         const struct simt_block_counts *counts);

/** Adds the blocks' counts to the counters, and frees them. */
void simt_block_free(struct simt_block_run *block);

/** Starts block number @p order of the grid. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_block_begin(struct simt_block_run *block, uint64_t order);

/**
 * @brief Runs the block for a while.
 * @return true when it is finished: all threads have exited, or block.fault is set
 */
bool simt_block_go(struct simt_block_run *block);

/** The same after other blocks of this host thread have run. */
bool simt_block_resume(struct simt_block_run *block);

#ifdef __cplusplus
}
#endif

#endif
