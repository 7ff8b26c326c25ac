/**
 * @file global_shadow.h
 * @brief Races in global memory: between blocks, and between the threads of one block.
 *
 * With one host thread blocks run one after another, and fences order them. With
 * several, each host thread keeps a history of its own blocks, and the histories
 * are compared when all blocks have ended. If accesses of two blocks conflict,
 * the results may depend on timing: memory is restored, and one host thread runs
 * the launch again. So the faults found do not depend on the number of host
 * threads.
 *
 * Races in host memory are not detected.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_GLOBAL_SHADOW_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_GLOBAL_SHADOW_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/race/history.h"
#include "common/simt/memory/space/memory.h"
#include "common/simt/memory/space/undo.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Lives as long as the memory, for all launches. */
struct simt_global_shadow;

/** What one host thread uses. Offsets in the histories are addresses less `begin`. */
struct simt_watch {
    uint64_t begin;
    struct simt_history *blocks; /**< agents are blocks */
    struct simt_history *warps;  /**< agents are warps of the block that runs */
};

enum { SIMT_MOST_HOST_THREADS = 256 };

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY. */
MUST_CHECK enum status simt_global_shadow_create(struct simt_global_shadow **shadow,
                                                 struct simt_memory *memory);

void simt_global_shadow_free(struct simt_global_shadow *shadow);

/**
 * @brief A launch begins: everything before is ordered before it.
 * @param host_threads 1 to SIMT_MOST_HOST_THREADS
 * @return how many there is address space for: as many, or fewer, at least 1
 */
uint32_t simt_global_shadow_begin(struct simt_global_shadow *shadow, uint32_t host_threads);

/** @return the histories that host thread @p index uses in this launch. */
struct simt_watch *simt_global_shadow_watch(struct simt_global_shadow *shadow, uint32_t index);

/** @return the undo log of this launch; NULL for one host thread. */
struct simt_undo *simt_global_shadow_undo(struct simt_global_shadow *shadow);

/**
 * @brief All blocks have ended.
 * @param again receives true when the launch has to be run again by one host thread: memory is as
 *              it was before
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY: it has to be, but memory could not be brought back
 */
MUST_CHECK enum status simt_global_shadow_end(struct simt_global_shadow *shadow, bool *again);

#ifdef __cplusplus
}
#endif

#endif
