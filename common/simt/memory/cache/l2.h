/**
 * @file l2.h
 * @brief Estimates which sectors L2 holds, and the bytes moved between it and device memory.
 *
 * Beside each line of 128 bytes of device memory stands who touched it: in
 * which part of the running launch, with which sectors, and how long ago it was
 * touched before. "How long" is in bytes: the lines that other launches, copies
 * or parts of this launch touched since, each counted once a launch or part. A
 * line is still there when that is at most the size of L2. Nothing depends on
 * the order in which host threads run blocks.
 *
 * Loads fetch pairs of sectors (64 bytes), stores are written back once.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_CACHE_L2_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_CACHE_L2_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct simt_l2;

/** Parts of a launch that are told apart. */
enum { SIMT_L2_PARTS = 32 };

/** Who touches sectors. */
enum simt_l2_use { SIMT_L2_LOAD = 1, SIMT_L2_STORE = 2, SIMT_L2_UPDATE = 3 };

/** @param bytes of device memory; those never touched cost nothing */
MUST_CHECK enum status simt_l2_create(struct simt_l2 **l2, size_t bytes);

void simt_l2_free(struct simt_l2 *l2);

/**
 * @brief A block touches sectors of a line; several host threads may do so at the same time.
 * @param line    from the start of device memory; outside of it nothing counts
 * @param sectors bit mask of its four sectors
 * @param part    of the launch, below SIMT_L2_PARTS
 * @return bytes that this would move if there were no L2
 */
uint32_t simt_l2_touch(struct simt_l2 *l2, uint64_t line, uint32_t sectors, enum simt_l2_use use,
                       uint32_t part);

/**
 * @brief Ends a launch.
 * @param capacity of L2 in bytes
 * @param uncached sum of what simt_l2_touch() returned
 * @return bytes moved between L2 and device memory
 */
uint64_t simt_l2_end(struct simt_l2 *l2, size_t capacity, uint64_t uncached);

/** What blocks have touched since the last launch ended does not count. */
void simt_l2_cancel(struct simt_l2 *l2);

/** The host copies or sets bytes of device memory, between launches: L2 has them now. */
void simt_l2_fill(struct simt_l2 *l2, uint64_t offset, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
