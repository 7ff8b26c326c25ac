/**
 * @file primary.h
 * @brief Programmatic dependent launch: a kernel (the secondary) that may begin before the one in
 *        front of it in the stream (the primary) has ended.
 *
 * Launches run one after the other here. What a GPU may do is followed: of a primary it is noted
 * what it reads and writes, and each access of a secondary is compared with that until its thread
 * has waited (griddepcontrol.wait, cudaGridDependencySynchronize), or has met a thread that has.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_PRIMARY_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_PRIMARY_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/counters.h"
#include "common/simt/memory/fault.h"
#include "common/simt/memory/footprint.h"

/** What a launch touches, for a secondary that follows it. */
struct simt_trace {
    struct simt_footprint *plain, *atomics; /**< written words with their sites */
    atomic_bool has_waited;                 /**< a thread has waited for the launches before it */
};

/** A launch that may still run when another one begins. */
struct simt_primary {
    struct simt_trace *trace;
    char *name;
    struct simt_site *sites; /**< of its kernel; NULL: lines are not known */
    const struct ptx_module *module;
    struct simt_primary *next;
};

/** @return NULL when memory is short */
struct simt_trace *simt_trace_create(void);

void simt_trace_free(struct simt_trace *trace);

/** Frees a list. */
void simt_primary_free(struct simt_primary *primaries);

/** What a secondary's access meets. */
struct simt_early {
    const struct simt_primary *primary;
    bool wrote;                    /**< the primary; else it read */
    struct simt_fault_place place; /**< where it wrote, if that is known */
};

/**
 * @brief Looks for the first primary that an access disturbs, or is disturbed by.
 * @param writes the access is no read
 * @param atomic nor does it meet what primaries do atomically
 * @return false: there is none
 */
bool simt_primary_meets(const struct simt_primary *primaries, uint64_t address, uint32_t bytes,
                        bool writes, bool atomic, struct simt_early *early);

#endif
