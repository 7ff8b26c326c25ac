/**
 * @file shadow.h
 * @brief What was written, and who touched what last: uninitialised reads and races.
 *
 * Used by launches with full checks. A word of 4 bytes remembers its last
 * writer and its last reader, with the bytes they touched. An *agent* is a warp
 * in shared memory, a block in global memory. Accesses of two agents race when
 * their bytes overlap, one of them writes, they are not both atomic, and
 * nothing orders them. What orders:
 *
 *  - shared memory: a barrier of the block (simt_shadow_barrier);
 *  - both: a fence or release by the first agent after its access, then an
 *    atomic, volatile or acquiring access or a fence by the second.
 *
 * Volatile, relaxed, acquiring and releasing accesses take no part. A store
 * that leaves the bytes as they were is no race: many threads setting the same
 * flag is a usual pattern. Checks are lenient where a word's history is longer
 * than what it remembers: a race may be missed, a correct program is not
 * accused.
 *
 * Lanes of one warp are looked at apart from this, see lane_shadow.h; threads of
 * one block that race in global memory are not.
 *
 * In global memory, atomic operations are compared with earlier plain stores
 * only, and host memory is not watched.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_SHADOW_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_SHADOW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/lane_shadow.h"
#include "common/simt/memory/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Shadow of one block's shared memory. Used by one host thread at a time. */
struct simt_shadow;

/** Shadow of global memory: lives as long as the memory, for all launches. */
struct simt_global_shadow;

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY. */
MUST_CHECK enum status simt_shadow_create(struct simt_shadow **shadow, size_t shared_bytes,
                                          uint32_t warps);

void simt_shadow_free(struct simt_shadow *shadow);

/** A new block begins: nothing is written, nobody has touched anything. */
void simt_shadow_reset(struct simt_shadow *shadow);

/** All warps of the block met (bar.sync, or a phase of an mbarrier ended): what was before is
 *  ordered before what comes. */
void simt_shadow_barrier(struct simt_shadow *shadow);

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY. */
MUST_CHECK enum status simt_global_shadow_create(struct simt_global_shadow **shadow,
                                                 const struct simt_memory *memory);

void simt_global_shadow_free(struct simt_global_shadow *shadow);

/** A launch begins: everything before is ordered before it. No block may be running. */
void simt_global_shadow_begin(struct simt_global_shadow *shadow);

/** @return what is remembered of the lanes inside a warp. */
struct simt_lane_shadow *simt_shadow_lanes(struct simt_shadow *shadow);

/** How an access takes part in races. */
enum simt_access_kind { SIMT_READ, SIMT_WRITE, SIMT_ATOMIC };

/** Who the other side of a race was. */
struct simt_race {
    uint32_t agent; /**< warp in the block, or position of the block in the grid */
    bool known;     /**< `agent` is known; else one of several */
    bool wrote;     /**< it wrote; else it read */
};

/** What an agent remembers; zero-initialised when it starts. */
struct simt_agent {
    uint32_t id;       /**< warp in the block, or position of the block in the grid */
    uint32_t tag;      /**< names its accesses since its last fence; 0: none yet */
    uint32_t acquired; /**< releases up to this one happened before what it does now */
};

/** @return agent of a warp. */
struct simt_agent *simt_shadow_agent(struct simt_shadow *shadow, uint32_t warp);

/**
 * @brief Checks one access against what is remembered, and remembers it.
 * @param silent a store that leaves the bytes as they are
 * @return true when it races; then @p race says with whom
 */
bool simt_shadow_touch(struct simt_shadow *shadow, struct simt_agent *agent, size_t offset,
                       size_t bytes, enum simt_access_kind kind, bool silent,
                       struct simt_race *race);
bool simt_global_shadow_touch(struct simt_global_shadow *shadow, struct simt_agent *agent,
                              uint64_t address, size_t bytes, enum simt_access_kind kind,
                              bool silent, struct simt_race *race);

/**
 * @brief The common case of simt_shadow_touch() for many lanes: remembers what nothing speaks
 *        against at first sight.
 * @param relative offsets of the lanes from @p offset
 * @param bytes    of each lane; the lanes' offsets are multiples of it
 * @return the lanes that need a closer look
 */
uint32_t simt_shadow_try(struct simt_shadow *shadow, struct simt_agent *agent, size_t offset,
                         const int32_t relative[32], uint32_t lanes, size_t bytes,
                         enum simt_access_kind kind);
uint32_t simt_global_shadow_try(struct simt_global_shadow *shadow, struct simt_agent *agent,
                                uint64_t address, const int32_t relative[32], uint32_t lanes,
                                size_t bytes, enum simt_access_kind kind);

/** The same for one run of bytes. @return false when a closer look is needed */
bool simt_shadow_try_run(struct simt_shadow *shadow, struct simt_agent *agent, size_t offset,
                         size_t bytes, enum simt_access_kind kind);
bool simt_global_shadow_try_run(struct simt_global_shadow *shadow, struct simt_agent *agent,
                                uint64_t address, size_t bytes, enum simt_access_kind kind);

/** A fence or release: accesses up to now are over for whoever acquires later. */
void simt_shadow_release(struct simt_shadow *shadow, struct simt_agent *agent);
void simt_global_shadow_release(struct simt_global_shadow *shadow, struct simt_agent *agent);

/** An acquire: accesses released up to now are over for this agent. */
void simt_shadow_acquire(struct simt_shadow *shadow, struct simt_agent *agent);
void simt_global_shadow_acquire(struct simt_global_shadow *shadow, struct simt_agent *agent);

/** Marks bytes of shared memory as written; says whether all are. Offsets are inside. */
void simt_shadow_mark(struct simt_shadow *shadow, size_t offset, size_t bytes);
bool simt_shadow_written(const struct simt_shadow *shadow, size_t offset, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
