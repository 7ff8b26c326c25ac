/**
 * @file cache.h
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
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_CACHE_CACHE_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_CACHE_CACHE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

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

/*
 * Which sectors a block finds in L1: an estimate of the cache that its multiprocessor has.
 *
 * Lines of 128 bytes with four sectors each, in sets of four chosen by a hash; a
 * new line replaces any line of its set, even when another is empty: on a GPU
 * lines of earlier blocks would occupy it. Each block has its own share of L1,
 * empty at its start. Loads of other blocks on the multiprocessor do not fill
 * it, so that the count does not depend on which blocks run together. Stores
 * write through to L2, and take a line, too. (Measured on an H200:
 * three passes over a row with one store hit in half of their loads.)
 */

struct simt_l1;

/** @return an empty cache of at most @p bytes, at least 512; NULL when memory is short. */
struct simt_l1 *simt_l1_create(size_t bytes);

void simt_l1_free(struct simt_l1 *l1);

/** Empties it, so that every block starts alike. */
void simt_l1_clear(struct simt_l1 *l1);

/**
 * @brief Loads or stores sectors of a line.
 * @param line    from the start of device memory
 * @param sectors bit mask of its four sectors
 * @return those that were there
 */
uint32_t simt_l1_touch(struct simt_l1 *l1, uint64_t line, uint32_t sectors);

/** @return a number above 0; while it is the same, sectors that were there still are. */
uint64_t simt_l1_changes(const struct simt_l1 *l1);

#endif
