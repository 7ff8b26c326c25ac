/**
 * @file footprint.h
 * @brief Which words of global memory a piece of work has read and written, for work of streams
 *        that nothing orders, and for a host that does not wait.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_FOOTPRINT_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_FOOTPRINT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/space/memory.h"

struct simt_footprint;

/** @return NULL when memory is short */
struct simt_footprint *simt_footprint_create(void);

void simt_footprint_free(struct simt_footprint *footprint);

/** Notes an access. Host threads may call it at the same time. */
void simt_footprint_note(struct simt_footprint *footprint, uint64_t address, size_t bytes,
                         bool writes);

/** The same for a write, and notes by which site of its kernel (counters.h) the words were written
 *  last. */
void simt_footprint_note_site(struct simt_footprint *footprint, uint64_t address, size_t bytes,
                              uint32_t site);

/** @return that site of the word of an address. @param site receives it */
bool simt_footprint_site(const struct simt_footprint *footprint, uint64_t address, uint32_t *site);

/** The first word that two pieces of work both touch, and one of them writes. */
struct simt_meeting {
    uint64_t address;
    bool first_writes, second_writes;
};

/** Calls @p visit with each 256 bytes of which words were noted, and how many. */
void simt_footprint_visit(const struct simt_footprint *footprint,
                          void (*visit)(void *context, uint64_t address, unsigned words),
                          void *context);

/** @return whether nothing was noted. */
bool simt_footprint_is_empty(const struct simt_footprint *footprint);

/** @param reads_too else the first one's reads do not count
 *  @param where only memory there counts, in pieces of 64 KiB; NULL: all. @return whether there is
 * one. */
bool simt_footprint_meets(const struct simt_footprint *first, const struct simt_footprint *second,
                          bool reads_too, const struct simt_extent *where,
                          struct simt_meeting *meeting);

/** @return whether the word of that address was written, or (@p writes false) read. */
bool simt_footprint_has(const struct simt_footprint *footprint, uint64_t address, bool writes);

#endif
