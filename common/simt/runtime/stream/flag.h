/**
 * @file flag.h
 * @brief Words by which kernels of several devices order their work, and what each of them tells.
 *
 * A store with the scope of the system leaves at its word what is in order before it: that is what
 * a kernel knows that looks at the word, until the next store replaces it. An atomic operation adds
 * to what is there, and so does a store of less than a word.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_FLAG_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_FLAG_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/runtime/stream/order.h"

struct flag_table;

/** What a word tells. */
struct flag_news {
    struct order_clock clock; /**< work that is over */
    struct order_clock reads; /**< work of which the reads alone are over */
};

/** A store to @p bytes bytes. @param table made by the first store; without memory nothing is noted
 *  and what was there goes: too little is known to be in order, so a false message is possible
 *  @param adds to what is there */
void flag_store(struct flag_table **table, uint64_t address, uint32_t bytes,
                const struct flag_news *news, bool adds);

/** @return whether a word of an address tells what is in neither of the clocks: quick, as kernels
 *  that wait look at the same words again and again. */
bool flag_has_news(const struct flag_table *table, uint64_t address, uint32_t bytes,
                   const struct order_clock *clock, const struct order_clock *reads);

/** Adds to @p news what the words of an address tell. */
void flag_look(const struct flag_table *table, uint64_t address, uint32_t bytes,
               struct flag_news *news);

/** Drops words that tell nothing beyond @p known, once there are many. */
void flag_prune(struct flag_table *table, const struct order_clock *known);

void flag_table_free(struct flag_table *table);

#endif
