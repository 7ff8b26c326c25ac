/**
 * @file harmless.h
 * @brief Races inside a block whose value nobody uses.
 *
 * An unrolled loop may read an element that another thread is writing, and drop the value: its row
 * ends earlier. That is a race by the letter, and changes nothing. Which it is shows after the
 * read: so a launch that ended in a race of a read and a write is run again, with memory as it was
 * before, and now races do not end it. Their words are noted, with the thread that writes them.
 * What other threads read there is followed like an undefined value (memory/undefined.h), and when
 * one is used, the race counts. Runs are repeated until one finds no more words: a read may come
 * before the write that makes it a race.
 *
 * Whatever is not a plain read or write of one thread's words counts.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_HARMLESS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_HARMLESS_H_

#include <stdbool.h>

#include "common/simt/memory/run.h"

/** @return NULL when memory is short. */
struct simt_harmless *simt_harmless_create(void);
void simt_harmless_free(struct simt_harmless *harmless);

/** @return false: a race of this kind counts without a look at its value */
bool simt_harmless_possible(const struct simt_run *run, const struct simt_encounter *race);

/** A run begins. What earlier ones noted stays. */
void simt_harmless_begin(struct simt_harmless *harmless);

/** The race counts: a value was used, or what happens is beyond what is followed here. */
void simt_harmless_deny(struct simt_harmless *harmless);
bool simt_harmless_is_denied(const struct simt_harmless *harmless);

/** @return true when this run noted words that the ones before did not know. */
bool simt_harmless_has_grown(const struct simt_harmless *harmless);

#endif
