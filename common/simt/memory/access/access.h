/**
 * @file access.h
 * @brief A warp reaches memory: checked, counted, and told where the bytes lie.
 *
 * ld, st and atom are made of this, and so can other instructions that touch
 * memory (ldmatrix, cp.async, wmma.load ...).
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_ACCESS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_ACCESS_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/exec.h"
#include "common/simt/memory/run.h"
#include "common/simt/ptx/ptx.h"

/**
 * What a host thread remembers of the accesses it ran: patterns of addresses with their costs, and
 * allocations. Holds for one launch.
 */
struct simt_access_cache;

/**
 * @brief Threads of a block have met, at a barrier or in an operation of their warp.
 *
 * A relaxed or volatile load, or an atomic operation without more, sees another block's flag, but
 * orders nothing that this block reads behind it. By PTX that takes a fence. A barrier between the
 * thread that looks and those that read is accepted, too: so do NVIDIA's own examples.
 */
void simt_sync_met(struct simt_block *block);

/** @return a cache, or NULL when memory is short. */
struct simt_access_cache *simt_access_cache_create(void);

void simt_access_cache_free(struct simt_access_cache *cache);

/** Allocations may have changed. */
void simt_access_cache_reset(struct simt_access_cache *cache);

/**
 * @brief Adds the counts of accesses so far to counters and sites.
 *
 * A request only adds one to the uses of its pattern; its sectors, wavefronts
 * and the like are added for all uses at once, here (at the end of each block) or
 * when the pattern makes room for another.
 *
 * @param sites by number of the site, or NULL
 */
void simt_access_cache_tally(struct simt_access_cache *cache, struct simt_counters *counters,
                             struct simt_site *sites);

/** One access by the active lanes of a warp. */
struct simt_access {
    enum ptx_space space; /**< PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST (an address
                               in global memory), PTX_PARAM (of the kernel; to be read only) */
    enum simt_access_kind kind;
    uint32_t bytes; /**< of one lane, 1 to 32; also the alignment it must have */
    bool strong;    /**< volatile, relaxed, acquire, release: never part of a race */
    bool counted;   /**< as a request, with sectors or wavefronts */
    bool async;     /**< by the async proxy: bulk copies, wgmma */
    bool early;     /**< async: by a copy that began before its thread waited; see primary.h */
    uint64_t addresses[SIMT_LANES]; /**< active lanes only: in the space, or generic */
};

/**
 * @brief Checks and counts an access for the lanes of warp->mask.
 *
 * A write is checked before the caller writes, and its bytes count as written
 * from then on.
 *
 * @param host receives the place of each active lane's bytes; NULL for a lane whose address is
 *             wild, which happens with checks off only
 * @return false when simt_fail() was called: the handler returns at once
 */
bool simt_access_resolve(struct simt_warp *warp, const struct simt_instruction *instruction,
                         const struct simt_access *access, unsigned char *host[SIMT_LANES]);

/** What to try where the async proxy is disturbed. */
#define SIMT_FLIGHT_HINT                                                                   \
    "bulk copies and wgmma run beside the threads: wait for the mbarrier's phase (of the " \
    "right parity) before a stage is read, and for wgmma.wait_group or "                   \
    "cp.async.bulk.wait_group before it is written again"

/** Says what the async proxy does with some bytes, after "writes ... bytes ..., ".
 *  @param thread of @p warp 's block, that disturbs it */
void simt_flight_text(const struct simt_warp *warp, uint32_t thread,
                      const struct simt_flight *flight, char *text, size_t size);

/** An operation of red, on elements of a type. */
struct simt_reduction {
    uint8_t operation, type;
};

/** @return whether a modifier names such an operation. */
bool simt_reduction_names(const char *modifier);

/** Finds the operation that an instruction names. @return false: there is none for that type */
bool simt_reduction_find(const struct ptx_instruction *source, enum ptx_type type,
                         struct simt_reduction *reduction);

/** A number for simt_instruction.detail, never 0; and back. */
uint32_t simt_reduction_pack(const struct simt_reduction *reduction);
struct simt_reduction simt_reduction_unpack(uint32_t packed);

/** Puts the elements of @p bytes bytes at @p with together with those at @p at. Elements are
 *  updated one after another, each at once. */
void simt_reduce(const struct simt_reduction *reduction, unsigned char *at,
                 const unsigned char *with, size_t bytes);

/**
 * @brief A block returns by @p instruction of @p warp, and @p race is an access of another block
 *        to its shared memory that nothing orders before that: simt_fail().
 * @param offset of the access in the shared memory of the warp's block
 */
void simt_access_race_at_end(struct simt_warp *warp, const struct simt_instruction *instruction,
                             uint64_t offset, const struct simt_race *race);

#endif
