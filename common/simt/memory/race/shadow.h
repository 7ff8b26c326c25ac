/**
 * @file shadow.h
 * @brief What full checks remember of one block: who touched its shared memory, and what was
 *        written there and in local memory.
 *
 * See history.h for what counts as a race. Volatile, relaxed, acquiring and
 * releasing accesses take no part.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_SHADOW_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_SHADOW_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/exec.h"
#include "common/simt/memory/race/history.h"
#include "common/simt/memory/space/memory.h"
#include "common/simt/memory/space/undo.h"

/*
 * Asynchronous copies (cp.async) on their way to a block's shared memory: full checks.
 *
 * simt copies the bytes when the instruction runs; a GPU may write them at any
 * time until the thread has waited. So this file records which bytes are still
 * in flight: until the wait no thread may access them. A thread commits the
 * copies it has started as a group, and waits for all groups but the last N.
 */

/** What one instruction of a warp copies. */
struct simt_copy {
    const struct simt_instruction *instruction;
    uint32_t lanes;               /**< whose copies are on their way */
    uint32_t bytes;               /**< of a lane */
    uint32_t offsets[SIMT_LANES]; /**< in shared memory: where to */
    uint32_t groups[SIMT_LANES];  /**< number of its group among the lane's; set when it starts */
};

/** Of one block. */
struct simt_copies;

/** Waiting: for every copy, be its group committed or not. */
#define SIMT_COPIES_ALL UINT32_MAX

/** @return NULL when memory is short. */
struct simt_copies *simt_copies_create(uint32_t warps, size_t shared_bytes);

void simt_copies_free(struct simt_copies *copies);

/** A new block begins: nothing is on its way. */
void simt_copies_reset(struct simt_copies *copies);

/** A warp's copy starts. @return false when memory is short: it is not watched */
bool simt_copies_start(struct simt_copies *copies, uint32_t warp, const struct simt_copy *copy);

/** Lanes of a warp commit the copies they have started as a group. */
void simt_copies_commit(struct simt_copies *copies, uint32_t warp, uint32_t lanes);

/**
 * @brief Lanes of a warp wait for all their groups but the last `pending`: takes one of the copies
 *        that have come with that.
 * @param next   where to look; 0 at first
 * @param landed receives it, with the lanes whose copies they were
 * @return false: there is no other one
 */
bool simt_copies_land(struct simt_copies *copies, uint32_t warp, uint32_t lanes, uint32_t pending,
                      size_t *next, struct simt_copy *landed);

/** @return true when a copy is on its way to one of the bytes. */
bool simt_copies_expects(const struct simt_copies *copies, size_t offset, size_t bytes);

/** Who started a copy, and where. */
struct simt_copier {
    uint32_t warp, lane;
    const struct simt_instruction *instruction;
};

/** Finds the thread that started such a copy. @return false: there is no such copy */
bool simt_copies_find(const struct simt_copies *copies, size_t offset, size_t bytes,
                      struct simt_copier *copier);

/*
 * What the async proxy does with a block's shared memory until somebody waits for it: bulk copies
 * and wgmma. Until then no thread may write bytes that it reads, nor touch bytes that it writes.
 */

enum simt_flight_kind {
    SIMT_FLIGHT_LOAD,   /**< a bulk copy will write the bytes */
    SIMT_FLIGHT_STORE,  /**< a bulk copy reads them */
    SIMT_FLIGHT_PRODUCT /**< a wgmma reads them */
};

struct simt_block;

struct simt_flight {
    enum simt_flight_kind kind;
    uint64_t begin, end; /**< offsets in shared memory */
    uint64_t number;     /**< set when it begins */
    const struct simt_instruction *instruction;
    const struct simt_block *block; /**< of the thread that started it */
    uint32_t thread;                /**< by number in that block */
    /** Whether it needs one of the bytes from begin to end; NULL: it needs all. */
    bool (*covers)(const struct simt_flight *flight, uint64_t begin, uint64_t end);
    uint64_t descriptor, shape; /**< private to `covers` */
    uint32_t group;             /**< of products: of its warp's */
};

/** Who wrote 16 bytes of shared memory last, if a thread did and not the async proxy. */
struct simt_generic_write {
    const struct simt_instruction *instruction; /**< NULL: nobody, or the async proxy */
    const struct simt_instruction *box; /**< the copy of a swizzled box that wrote them; or NULL */
    uint32_t swizzle;                   /**< of that box: enum tensor_swizzle */
    uint32_t fences;                    /**< proxy fences of the block's cluster before it */
    uint32_t thread;                    /**< by number in its block */
};

enum { SIMT_GENERIC_BYTES = 16 };

struct simt_shadow;
struct simt_flights;

/** NULL is allowed. */
void simt_flights_free(struct simt_flights *flights);
void simt_flights_reset(struct simt_flights *flights);

/** Bytes that a load will write count as unwritten. @return its number; 0: it is not followed, as
 *  memory is short or the bytes are none of the block's */
uint64_t simt_flights_begin(struct simt_shadow *shadow, const struct simt_flight *flight);

/** Somebody has waited for it. */
void simt_flights_end(struct simt_shadow *shadow, uint64_t number);

/** A warp has waited for products of groups up to @p group: those of its warpgroup. */
void simt_flights_end_products(struct simt_shadow *shadow, const struct simt_block *block,
                               uint32_t warp, uint32_t group);

/** @return the first one that an access to some bytes disturbs, or NULL. */
const struct simt_flight *simt_flights_find(const struct simt_shadow *shadow, uint64_t begin,
                                            uint64_t end, bool writes);

/*
 * Races in global memory: between blocks, and between the threads of one block.
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

/** @return the undo log of this launch; NULL where there is no memory for one. */
struct simt_undo *simt_global_shadow_undo(struct simt_global_shadow *shadow);

/**
 * @brief All blocks have ended.
 * @param take_back whether memory has to be as it was before, in any case
 * @param again     receives true when the launch has to be run again by one host thread: memory is
 *                  as it was before
 * @return STATUS_OK; STATUS_OUT_OF_MEMORY: memory could not be brought back
 */
MUST_CHECK enum status simt_global_shadow_end(struct simt_global_shadow *shadow, bool take_back,
                                              bool *again);

/* The checks of a block: all of the above. */

/** Of one block at a time. Used by one host thread at a time. */
struct simt_shadow {
    struct simt_history *history; /**< of shared memory; agents are warps */
    struct simt_agent *agents;    /**< (warps) in shared memory */
    struct simt_agent *global;    /**< (warps) in global memory, among the threads of the block */
    struct simt_watch *watch;     /**< races in global memory; NULL: not looked for */
    uint32_t warps;
    uint64_t *written; /**< of shared memory, one bit a byte */
    size_t gap;     /**< the bits before this word of `written` were all set at the last barrier */
    bool is_full;   /**< all of shared memory is written */
    bool is_simple; /**< races are looked for among the warps of this block alone, and nobody else
                         looks at its reads of shared memory */
    size_t shared_bytes;
    struct simt_copies *copies;         /**< on their way to shared memory; NULL: none so far */
    struct simt_flights *flights;       /**< of the async proxy; NULL: none so far */
    struct simt_generic_write *generic; /**< (shared_bytes / SIMT_GENERIC_BYTES + 1); NULL: the
                                           kernel's async proxy reads no shared memory */
    uint32_t proxy_fences;
    uint32_t waited; /**< warps behind a wait for the launches before this one; see primary.h */
    const atomic_bool *others; /**< says that a thread of the grid is; NULL: none will be */
    uint8_t
        *local; /**< words of all threads' local memory, as in simt_block.local: not 0: written */
    size_t local_words;
};

/** What a shadow is made for. */
struct simt_shadow_size {
    size_t shared_bytes;
    size_t local_bytes; /**< of all threads of the block */
    uint32_t warps;
    bool has_async_reads; /**< bulk copies or wgmma read shared memory */
};

/**
 * @param watch the host thread's histories, or NULL
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY.
 */
MUST_CHECK enum status simt_shadow_create(struct simt_shadow **shadow,
                                          const struct simt_shadow_size *size,
                                          struct simt_watch *watch);

void simt_shadow_free(struct simt_shadow *shadow);

/** A new block begins: nothing is written, nobody has touched anything. */
void simt_shadow_reset(struct simt_shadow *shadow);

/** The host thread turns to this block from another one, which is not at its end. */
void simt_shadow_resume(struct simt_shadow *shadow);

/** All warps of the block met (bar.sync, or a phase of an mbarrier ended): what was before is
 *  ordered before what comes. */
void simt_shadow_barrier(struct simt_shadow *shadow);

/** A warp has waited for the launches before this one. */
void simt_shadow_wait(struct simt_shadow *shadow, uint32_t warp);

/** Lanes of a warp met. */
void simt_shadow_meet(struct simt_shadow *shadow, uint32_t warp);

/** A fence or release by a warp, and an acquire. */
void simt_shadow_release(struct simt_shadow *shadow, uint32_t warp);
void simt_shadow_acquire(struct simt_shadow *shadow, uint32_t warp);

/** See simt_history_settle(): of all that the block's warps have read. */
void simt_shadow_settle(struct simt_shadow *shadow);
bool simt_shadow_is_settled(const struct simt_shadow *shadow);

/** A warp's asynchronous copy has started: nobody may touch its bytes until it lands. */
void simt_shadow_start_copy(struct simt_shadow *shadow, uint32_t warp,
                            const struct simt_copy *copy);

/** Marks bytes of shared memory as written, or not; says whether all are. Offsets are inside. */
void simt_shadow_mark(struct simt_shadow *shadow, size_t offset, size_t bytes);
void simt_shadow_unmark(struct simt_shadow *shadow, size_t offset, size_t bytes);
bool simt_shadow_written(const struct simt_shadow *shadow, size_t offset, size_t bytes);

#endif
