/**
 * @file copies.h
 * @brief Asynchronous copies (cp.async) on their way to a block's shared memory: full checks.
 *
 * simt copies the bytes when the instruction runs; a GPU may write them at any
 * time until the thread has waited. So this file records which bytes are still
 * in flight: until the wait no thread may access them. A thread commits the
 * copies it has started as a group, and waits for all groups but the last N.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_COPIES_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_COPIES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What one instruction of a warp copies. */
struct simt_copy {
    const struct simt_instruction *instruction;
    uint32_t lanes;               /**< whose copies are on their way */
    uint32_t bytes;               /**< of a lane */
    uint32_t offsets[SIMT_LANES]; /**< in shared memory: where to */
    uint32_t groups[SIMT_LANES];  /**< number of its group among the lane's; set when it starts */
};

/** Of one block. */
struct simt_copies;

/** Waiting: for every copy, be its group committed or not. */
#define SIMT_COPIES_ALL UINT32_MAX

/** @return NULL when memory is short. */
struct simt_copies *simt_copies_create(uint32_t warps, size_t shared_bytes);

void simt_copies_free(struct simt_copies *copies);

/** A new block begins: nothing is on its way. */
void simt_copies_reset(struct simt_copies *copies);

/** A warp's copy starts. @return false when memory is short: it is not watched */
bool simt_copies_start(struct simt_copies *copies, uint32_t warp, const struct simt_copy *copy);

/** Lanes of a warp commit the copies they have started as a group. */
void simt_copies_commit(struct simt_copies *copies, uint32_t warp, uint32_t lanes);

/**
 * @brief Lanes of a warp wait for all their groups but the last `pending`: takes one of the copies
 *        that have come with that.
 * @param next   where to look; 0 at first
 * @param landed receives it, with the lanes whose copies they were
 * @return false: there is no other one
 */
bool simt_copies_land(struct simt_copies *copies, uint32_t warp, uint32_t lanes, uint32_t pending,
                      size_t *next, struct simt_copy *landed);

/** @return true when a copy is on its way to one of the bytes. */
bool simt_copies_expects(const struct simt_copies *copies, size_t offset, size_t bytes);

/** Finds the thread that started such a copy. @return false: there is no such copy */
bool simt_copies_find(const struct simt_copies *copies, size_t offset, size_t bytes, uint32_t *warp,
                      uint32_t *lane);

#ifdef __cplusplus
}
#endif

#endif
