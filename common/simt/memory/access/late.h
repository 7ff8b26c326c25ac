/**
 * @file late.h
 * @brief Stores that other devices see late, and in another order than they were made.
 *
 * Nothing orders relaxed and volatile stores of the scope of the system for other devices but a
 * fence or a release of that scope, or the end of the kernel. So that a program which counts on an
 * order is wrong here, too, a launch gives up its turn behind some of these stores, and what it has
 * stored before in this way is hidden meanwhile: memory has the values from before. Its own device
 * and later turns see everything. Another launch gives up its turn behind volatile and relaxed
 * loads: what it loads next may be newer.
 *
 * A store of 8 bytes by one thread is never torn. A vector of 16 bytes may be, into words of 8.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_LATE_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_LATE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/simt/core/exec.h"

struct simt_late;

/** Behind which accesses a launch gives up its turn. */
enum simt_late_way {
    SIMT_LATE_NONE,
    SIMT_LATE_STORES, /**< and atomic operations */
    SIMT_LATE_LOADS
};

/** @return what a launch has stored since its last turn or fence; NULL for SIMT_LATE_NONE, and
 * where memory is short. */
struct simt_late *simt_late_create(enum simt_late_way way);

/** NULL is allowed. */
void simt_late_free(struct simt_late *late);

/** A thread stores @p bytes bytes there next, which still have the old value. @param may_tear as a
 *  vector */
void simt_late_note(struct simt_late *late, unsigned char *host, size_t bytes, bool may_tear);

/** All stores so far are in order before what comes: a fence, a turn of others. NULL is allowed. */
void simt_late_settle(struct simt_late *late);

/** Before a volatile, relaxed or atomic access, and behind it, which may be the moment to let
 * others run. @param stores it is a store or an atomic operation */
void simt_late_begin(const struct simt_warp *warp, const struct simt_instruction *in);
void simt_late_end(const struct simt_warp *warp, const struct simt_instruction *in, bool stores);

#endif
