/**
 * @file l1.h
 * @brief Which sectors a block finds in L1: an estimate of the cache that its multiprocessor has.
 *
 * Lines of 128 bytes with four sectors each, in sets of four chosen by a hash; a
 * new line replaces any line of its set, even when another is empty: on a GPU
 * lines of earlier blocks would occupy it. Each block has its own share of L1,
 * empty at its start. Loads of other blocks on the multiprocessor do not fill
 * it, so that the count does not depend on which blocks run together. Stores
 * write through to L2, and take a line, too. (Measured on an H200:
 * three passes over a row with one store hit in half of their loads.)
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_CACHE_L1_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_CACHE_L1_H_

#include <stddef.h>
#include <stdint.h>

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

#endif
