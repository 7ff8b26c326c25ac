/**
 * @file history.h
 * @brief Finds races: records who accessed each word last and what orders accesses.
 *
 * The history of a 4-byte word holds its last writer and its last reader, with
 * the bytes they accessed. An *agent* is a warp of a block or a block of a grid.
 * Accesses of two agents race when their bytes overlap, one of them writes, they
 * are not both atomic, and nothing orders them. Two things order accesses:
 *
 *  - a barrier (simt_history_advance): all earlier accesses before all later ones;
 *  - a fence or release by the first agent after its access, then an atomic,
 *    volatile or acquiring access or a fence by the second;
 *  - of a read followed by a write, also a relaxed or volatile store by the first
 *    agent after its read: what the store publishes depends on what was read, and
 *    whether and where the second agent writes depends on what it has loaded. PTX
 *    allows no such circle (its axiom of no thin air). Algorithms that work in place
 *    and look back at the blocks before them rely on it.
 *
 * Where agents are warps, the lanes of a warp are distinguished as well, because
 * they may diverge: two lanes may access the same bytes, one of them writing,
 * only with a synchronisation in between: __syncwarp(), any other warp-wide
 * operation, a barrier. A synchronisation of some lanes counts for the whole
 * warp.
 *
 * A store that leaves the bytes as they were is no race: many threads setting
 * the same flag is a usual pattern. A word keeps only its last accesses, and the
 * checks are lenient where older ones would matter: they may miss a race, but
 * never report one in a correct program.
 *
 * One host thread uses a history at a time.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_HISTORY_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_HISTORY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/race/word_map.h"

struct simt_history;

/** How an access takes part in races. */
enum simt_access_kind { SIMT_READ, SIMT_WRITE, SIMT_ATOMIC };

/** What the agents of a history are. */
enum simt_agents {
    SIMT_WARPS_OF_SHARED, /**< warps of a block, in shared memory */
    SIMT_WARPS_OF_GLOBAL, /**< warps of a block, in global memory: atomic operations are compared
                               with earlier plain stores only */
    SIMT_BLOCKS,          /**< blocks, one after another; atomic operations as before */
    SIMT_BLOCKS_APART,    /**< blocks, while others run on other host threads: see
                               simt_histories_meet() */
    SIMT_BLOCKS_OF_SHARED /**< blocks of a cluster, in the shared memory of all of them */
};

/** What an agent remembers; zero-initialised, but for `id`, when it starts. */
struct simt_agent {
    uint32_t id;         /**< warp in the block, or position of the block in the grid */
    uint32_t tag;        /**< names its accesses since its last fence or meeting; 0: none yet */
    uint32_t last;       /**< interval that the latest tag stands for; 0: none since a fence */
    uint32_t acquired;   /**< releases up to this one happened before what it does now */
    uint32_t observed;   /**< the same of relaxed stores: see simt_history_publish() */
    uint32_t generation; /**< of the history's tags */
};

/** Who the other side of a race was. */
struct simt_race {
    uint32_t agent; /**< warp in the block, or position of the block in the grid */
    uint32_t lane;  /**< of the same warp, when `lanes` */
    bool lanes;     /**< the two are lanes of one warp */
    bool known;     /**< `agent` or `lane` is known; else one of several */
    bool wrote;     /**< it wrote; else it read */
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY. */
MUST_CHECK enum status simt_history_create(struct simt_history **history, enum simt_agents agents,
                                           size_t bytes);

void simt_history_free(struct simt_history *history);

/** Forgets everything, and gives its memory back. */
void simt_history_forget(struct simt_history *history);

/** Of blocks: @return true when it takes so much memory that it had better be forgotten. */
bool simt_history_is_large(const struct simt_history *history);

/** Orders every access so far before all later ones. */
void simt_history_advance(struct simt_history *history);

/** @return true when the history covers an offset. */
bool simt_history_covers(const struct simt_history *history, uint64_t offset);

/**
 * @brief The common case for all lanes of a request: remembers what nothing speaks against at
 *        first sight.
 * @param offset of the first lane
 * @param map    is worked out where needed; while a read of it may be put off, it must stay:
 *               until the history is settled
 * @return false: the lanes need a closer look, one by one
 */
bool simt_history_try(struct simt_history *history, struct simt_agent *agent, size_t offset,
                      struct simt_word_map *map, enum simt_access_kind kind);

/**
 * @brief The same in a history of shared memory, for a store of one word by each lane of a mask,
 * all different.
 * @param relative (32) bytes from `offset`, multiples of 4; 0 for other lanes
 */
bool simt_history_try_words(struct simt_history *history, struct simt_agent *agent, size_t offset,
                            const int32_t *relative, uint32_t mask);

/** Asks for the marks of a request before simt_history_try() looks at them. */
void simt_history_prefetch(const struct simt_history *history, size_t offset,
                           const struct simt_word_map *map);

/** Marks the reads that were put off. */
void simt_history_settle(struct simt_history *history);

/** @return true when no read is put off. */
bool simt_history_is_settled(const struct simt_history *history);

/** One lane's part of a request. */
struct simt_touch {
    size_t offset, bytes;
    enum simt_access_kind kind;
    uint32_t lane; /**< or SIMT_SEVERAL_LANES, which all touch the same bytes */
    bool silent;   /**< a store that leaves the bytes as they are */
    bool together; /**< the lanes act as one: what another has written is no race */
};

/**
 * @brief Checks one access against what is remembered, and remembers it.
 * @return true when it races; then @p race says with whom
 */
bool simt_history_touch(struct simt_history *history, struct simt_agent *agent,
                        const struct simt_touch *touch, struct simt_race *race);

/** A fence or release: accesses up to now are over for whoever acquires later. */
void simt_history_release(struct simt_history *history, struct simt_agent *agent);

/** A relaxed or volatile store: reads up to now are over for whoever observes later, writes are
 * not.
 */
void simt_history_publish(struct simt_history *history, struct simt_agent *agent);

/** A relaxed, volatile or acquiring load: reads published up to now are over for this agent. */
void simt_history_observe(const struct simt_history *history, struct simt_agent *agent);

/** An acquire: accesses released up to now are over for this agent. */
void simt_history_acquire(struct simt_history *history, struct simt_agent *agent);

/**
 * @brief Compares what blocks on several host threads did, one history each, since the last
 * advance.
 * @param count of histories, all of SIMT_BLOCKS_APART and of the same size
 * @return true when two of them, on one host thread or on two, touched the same bytes and one
 *         wrote: what they did may depend on which came first. All atomic operations are taken
 *         for ones that may change places
 */
bool simt_histories_meet(struct simt_history *const *histories, size_t count);

/** The lanes of a warp have met. */
static inline void simt_history_meet(struct simt_agent *agent) {
    agent->tag = 0;
}

#endif
