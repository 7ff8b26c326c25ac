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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/race/copies.h"
#include "common/simt/memory/race/global_shadow.h"
#include "common/simt/memory/race/history.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Of one block at a time. Used by one host thread at a time. */
struct simt_shadow {
    struct simt_history *history; /**< of shared memory; agents are warps */
    struct simt_agent *agents;    /**< (warps) in shared memory */
    struct simt_agent *global;    /**< (warps) in global memory, among the threads of the block */
    struct simt_watch *watch;     /**< races in global memory; NULL: not looked for */
    uint32_t warps;
    uint64_t *written; /**< of shared memory, one bit a byte */
    size_t shared_bytes;
    struct simt_copies *copies; /**< on their way to shared memory; NULL: none so far */
    uint8_t
        *local; /**< words of all threads' local memory, as in simt_block.local: not 0: written */
    size_t local_words;
};

/** What a shadow is made for. */
struct simt_shadow_size {
    size_t shared_bytes;
    size_t local_bytes; /**< of all threads of the block */
    uint32_t warps;
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

/** Lanes of a warp met. */
void simt_shadow_meet(struct simt_shadow *shadow, uint32_t warp);

/** A fence or release by a warp, and an acquire. */
void simt_shadow_release(struct simt_shadow *shadow, uint32_t warp);
void simt_shadow_acquire(struct simt_shadow *shadow, uint32_t warp);

/** A warp's asynchronous copy has started: nobody may touch its bytes until it lands. */
void simt_shadow_start_copy(struct simt_shadow *shadow, uint32_t warp,
                            const struct simt_copy *copy);

/** Marks bytes of shared memory as written; says whether all are. Offsets are inside. */
void simt_shadow_mark(struct simt_shadow *shadow, size_t offset, size_t bytes);
bool simt_shadow_written(const struct simt_shadow *shadow, size_t offset, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
