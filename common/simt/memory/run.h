/**
 * @file run.h
 * @brief A launch and a block while they run; handlers reach both through their warp.
 *
 * One host thread runs one block at a time. What a handler writes besides
 * registers belongs to that block or to that host thread, so no handler takes a
 * lock; device memory is the exception, as on a GPU.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RUN_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RUN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/exec.h"
#include "common/simt/memory/counters.h"
#include "common/simt/memory/fault.h"
#include "common/simt/memory/race/shadow.h"
#include "common/simt/memory/space/memory.h"
#include "common/simt/ptx/ptx.h"

/** What a launch checks: a bit each. All others need SIMT_CHECK_BOUNDS. */
enum simt_check {
    SIMT_CHECK_OFF = 0,           /**< wild accesses read zeros and write nothing */
    SIMT_CHECK_BOUNDS = 1,        /**< bounds, alignment, use after free */
    SIMT_CHECK_UNINITIALISED = 2, /**< values of memory that nothing has written */
    SIMT_CHECK_RACES = 4,
    SIMT_CHECK_COPIES = 8,    /**< cp.async: bytes on their way */
    SIMT_CHECK_SHUFFLES = 16, /**< values of lanes that are not there */
    SIMT_CHECK_LEAKS = 32,
    SIMT_CHECK_STREAMS = 64, /**< work of streams that nothing orders */
    SIMT_CHECK_FULL = 127,
    SIMT_CHECK_SAMPLED = 128, /**< races and copies in some blocks; see core/launch/sample.h */
    /** Those that follow each access to memory. */
    SIMT_CHECK_ACCESSES = SIMT_CHECK_UNINITIALISED | SIMT_CHECK_RACES | SIMT_CHECK_COPIES
};

struct simt_access_cache;
struct simt_async;
struct simt_block_clock;
struct simt_footprint;
struct simt_harmless;
struct simt_pipeline;
struct simt_primary;
struct simt_trace;
struct simt_undefined;
struct simt_textures;
struct simt_witness;
struct simt_xray;
struct simt_l1;
struct simt_l2;

/** The GPU's caches, as a block sees them; see cache.h. */
struct simt_caches {
    bool modelled; /**< either of these is there */
    struct simt_l1 *l1;
    struct simt_l2 *l2;
    uint32_t part;       /**< of the launch: blocks run in order, more or less */
    uint64_t first_line; /**< of device memory: lines count from there, whatever its address is */
};

/** What an access or a fence of the scope of the system does for launches of other devices: these
 *  together. A fence neither loads nor stores; a barrier acquires alone. */
enum simt_order {
    SIMT_ORDER_LOADS = 1,    /**< a word that may be a flag */
    SIMT_ORDER_STORES = 2,   /**< likewise; both: an atomic operation */
    SIMT_ORDER_ACQUIRES = 4, /**< comes after what the flags tell that were looked at */
    SIMT_ORDER_RELEASES = 8  /**< what was read and written so far is over for who acquires */
};

/**
 * Launches that run beside others: of several devices, which may wait for each other. They take
 * turns; a launch on one host thread gives up its turn every so many instructions.
 */
struct simt_yield {
    /** Lets others run. @param progress blocks have written something since the last time
     *  @param waits it is others' turn as long as they get on
     *  @return false: the launch has waited too long */
    bool (*function)(void *context, bool progress, bool waits);
    bool (*has_others)(void *context); /**< others have begun, and are not done */
    /** A thread orders what other devices see. @param how of enum simt_order @param address of
     *  `bytes` bytes that it loads or stores, else 0 */
    void (*order)(void *context, unsigned how, uint64_t address, uint32_t bytes);
    void *context;
    double patience;        /**< seconds in which nothing happened, when function() says false */
    bool has_yielded;       /**< memory is no longer only this launch's doing */
    struct simt_late *late; /**< stores that other devices see late; NULL: none. See late.h */
};

/** Conditions that kernels set for the graphs that they are part of. */
struct simt_conditions {
    uint32_t *values; /**< (count) by handle less 1 */
    size_t count;
    uint64_t sets; /**< so far */
};

/** One launch; nothing in it changes while blocks run. */
struct simt_run {
    struct simt_memory *memory;
    const struct ptx_module *module;      /**< for names of source files; may be NULL */
    const struct simt_textures *textures; /**< and surfaces; NULL: none. See texture.h */
    struct simt_conditions *conditions;   /**< of graphs; NULL: none. Kernels that set one run block
                                               after block */
    const char *kernel;
    const void *parameters; /**< the parameter block, `parameter_bytes` of it */
    size_t parameter_bytes;
    uint32_t grid[3], threads[3];
    uint32_t cluster[3]; /**< blocks of a cluster, 1 without */
    uint32_t registers;  /**< that a thread has at the beginning, where the kernel's bounds say
                              it; else 0 */
    enum simt_check check;
    struct simt_undo *undo; /**< undo log for stores; NULL: not needed */
    /** What is touched of global memory, to compare launches. NULL, or there is none at the moment:
     *  not noted. Another one may stand there after each call of yield->order. */
    struct simt_footprint *const *footprint;
    const struct simt_primary *primaries; /**< launches that may still run; NULL: none. See
                                               primary.h */
    struct simt_trace *trace;     /**< receives what a secondary launch must know; NULL: nothing */
    struct simt_witness *witness; /**< a launch that ended in a race is run again, and this looks
                                     for the other access; see witness.h. Else NULL */
    /** A launch that ended in a race is run again, and this looks whether values of races are used;
     *  see harmless.h. Else NULL. */
    struct simt_harmless *harmless;
    size_t stack_bytes;         /**< of a thread, for functions that are called */
    size_t l1_bytes;            /**< that a block has; 0: no L1 */
    struct simt_l2 *l2;         /**< NULL: no L2 */
    uint32_t l2_parts;          /**< of the launch, 1 to SIMT_L2_PARTS */
    uint64_t start_nanoseconds; /**< what %globaltimer says when a block begins */
    uint64_t clock_khz;         /**< of the GPU */
    uint32_t processors;        /**< of the GPU, at least 1 */
    uint32_t tensor_code; /**< compute capability of the GPU whose tensor cores' sums these are, 90
                               for Hopper; 0: sums as accurate as fp64. See tensor_sum.h */
    struct simt_yield *yield; /**< NULL: nothing else runs meanwhile */
    uint64_t grid_workspace;  /**< cooperative launches: the counter of grid.sync(); else 0 */
    uint64_t *atomic_lines;   /**< (SIMT_ATOMIC_LINES): lanes of atomics by line of device memory,
                                   lines that far apart together; updated by all host threads */
};

enum { SIMT_ATOMIC_LINES = 4096 };

/** Blocks of a cluster at most: 8 on every GPU, 16 where the program asks for it. */
enum { SIMT_CLUSTER_BLOCKS = 16 };

/**
 * Blocks that run at the same time and reach each other's shared memory.
 *
 * An address in the shared memory of block `rank` of the cluster is
 * (rank + 1) << SIMT_RANK_SHIFT | offset; without a rank it is in the block's own.
 */
struct simt_cluster {
    uint32_t size;
    struct simt_block *blocks[SIMT_CLUSTER_BLOCKS]; /**< by rank */
    struct simt_history *history; /**< of all blocks' shared memory, one behind the other; agents
                                       are blocks. NULL: races are not looked for */
    size_t stride;                /**< bytes of it that a block has */
};

enum { SIMT_RANK_SHIFT = 24 };

/** One block while it runs. */
struct simt_block {
    const struct simt_run *run;
    uint32_t index[3];
    uint64_t order;               /**< position in the grid */
    struct simt_cluster *cluster; /**< NULL: launched without */
    uint32_t rank;                /**< in its cluster */
    bool over;                    /**< all threads have returned: nobody may reach its memory */
    bool is_reached;              /**< another block has reached its shared memory */
    bool has_arrived;             /**< a thread has arrived at the barrier of the cluster */
    bool has_looked;              /**< relaxed, at what other blocks have stored */
    bool has_relaxed;             /**< one of this phase without ordering memory */
    unsigned char *shared; /**< `shared_bytes`, static and dynamic; 16-byte aligned at least */
    size_t shared_bytes;
    unsigned char *local; /**< thread t's own begins at t * local_bytes; 16-byte aligned */
    size_t local_bytes;   /**< of one thread, a multiple of 16 */
    struct simt_counters *counters;   /**< of the host thread */
    struct simt_site *sites;          /**< of the host thread, by number; NULL: no counts by site */
    struct simt_xray *xray;           /**< of the host thread; NULL: no record; see xray.h */
    struct simt_shadow *shadow;       /**< NULL: accesses are not checked beyond their bounds; knows
                                         the watch of global memory */
    struct simt_undefined *undefined; /**< values that are followed to their use; NULL: none are */
    struct simt_agent agent;          /**< id = order, else zeros, when the block starts */
    struct simt_agent peer;           /**< the block in its cluster's history */
    struct simt_pipeline *pipeline;   /**< clocks of its warps; NULL: not followed */
    struct simt_block_clock *clock;   /**< with these: of the block, where it may wait for others of
                                           its launch. NULL: it may not */
    struct simt_async *async;         /**< bulk copies and wgmma; NULL until the first */
    struct simt_access_cache *cache;  /**< of the host thread; see access.h */
    struct simt_caches caches;
    uint32_t returned;       /**< threads that have ended */
    uint64_t writes;         /**< with a shadow: requests so far that were no loads */
    struct simt_fault fault; /**< kind SIMT_FAULT_NONE until simt_fail() */
};

/**
 * @brief Whose shared memory an address of shared memory is in.
 * @param address becomes the offset in it
 * @return the block itself where the address names no block of its cluster
 */
static inline struct simt_block *simt_block_at(struct simt_block *block, uint64_t *address) {
    uint64_t number = *address >> SIMT_RANK_SHIFT;
    if (block->cluster == NULL || number == 0 || number > block->cluster->size) {
        return block;
    }
    *address &= ((uint64_t)1 << SIMT_RANK_SHIFT) - 1;
    return block->cluster->blocks[number - 1];
}

/** @return the address by which @p block reaches an offset of the shared memory of @p home. */
static inline uint64_t simt_block_address(const struct simt_block *block,
                                          const struct simt_block *home, uint64_t offset) {
    return block == home ? offset : ((uint64_t)home->rank + 1) << SIMT_RANK_SHIFT | offset;
}

/** What a block did so far is over for the blocks of its cluster that acquire later; in the
 *  memory of the cluster, and in global memory. With a cluster and checks of races alone. */
void simt_cluster_release(struct simt_block *block);
void simt_cluster_acquire(struct simt_block *block);

/* The async proxy of a block; core/ops/async_proxy.h. */

/** Frees all; NULL is allowed. */
void simt_async_free(struct simt_async *async);

/** A block begins; NULL is allowed. */
void simt_async_reset(struct simt_async *async);

/** All threads have returned: carries out what is left. May set block->fault. */
void simt_async_finish(struct simt_block *block);

/** @return how many wgmma a warp has executed. */
uint64_t simt_async_products(const struct simt_block *block, uint32_t warp);

/** What a warp waited for in vain, if that was an mbarrier: for the message of an endless loop.
 *  Else @p text stays as it is. */
void simt_async_explain(const struct simt_block *block, uint32_t warp, char *text, size_t size);

#endif
