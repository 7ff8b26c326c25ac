/**
 * @file async_proxy.h
 * @brief What the async proxy still has to do for a block: bulk copies that nobody has waited for;
 *        and the wgmma that the warps of a warpgroup have executed.
 *
 * A bulk copy is carried out as late as a GPU may: a load when a thread waits for its mbarrier and
 * finds the phase incomplete, a store when its thread waits for its bulk group, both at the latest
 * when the block ends.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_ASYNC_PROXY_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_ASYNC_PROXY_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/exec.h"
#include "common/simt/memory/access/access.h"
#include "common/simt/memory/run.h"
#include "common/simt/tensor_map/tensor_map.h"

enum bulk_direction { BULK_LOAD, BULK_STORE };

/** Bytes that st.async and red.async carry. */
enum { BULK_VALUE_BYTES = 16 };

/** One bulk copy by one thread. */
struct bulk_copy {
    const struct simt_instruction *instruction;
    struct simt_warp *warp;
    uint32_t lane;
    enum bulk_direction direction;
    struct simt_block *home; /**< whose shared memory it is */
    bool tensor;             /**< a box of a tensor; else `bytes` bytes in a row */
    bool counted;            /**< in sectors of global memory: once of a multicast */
    bool early;              /**< see struct simt_access */
    bool from_shared;        /**< load: from the thread's own block, at offset `global` */
    bool from_value;         /**< load: the bytes are `value` */
    bool reduces;            /**< `reduction` puts the bytes together with those that are there */
    struct simt_reduction reduction;
    uint32_t shared;        /**< offset in the shared memory of `home` */
    uint64_t global;        /**< without a tensor: the address */
    uint32_t bytes;         /**< in shared memory */
    uint64_t flight;        /**< number of those bytes' flight (shadow.h); 0: none */
    uint64_t source_flight; /**< from_shared: of the bytes that are copied */
    uint32_t barrier;       /**< load: offset of the mbarrier that receives the bytes, in `home` */
    uint64_t comes;         /**< modelled time at which its bytes have come; pipeline.h */
    uint32_t group;         /**< store: number of its group among its thread's; 0: not committed */
    int32_t place[TENSOR_DIMENSIONS]; /**< of the box */
    struct tensor_map map;
    unsigned char value[BULK_VALUE_BYTES];
};

/** The copy is pending: a load for its home, a store for its own block. @return false after a
 *  fault */
bool async_proxy_start(const struct bulk_copy *copy);

/** Carries out the first load that completes at the mbarrier at @p barrier of shared memory.
 *  @return false: there is none, or a fault */
bool async_proxy_load(struct simt_block *block, uint32_t barrier);

/** Closes the bulk group of a thread. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status async_proxy_commit(struct simt_block *block, uint32_t thread);

/** Carries out the stores of a thread, but those of its @p pending youngest groups.
 *  @return false after a fault */
bool async_proxy_wait(struct simt_block *block, uint32_t thread, uint32_t pending);

/** One wgmma of a warp. */
struct warpgroup_step {
    const struct simt_instruction *instruction;
    uint64_t a, b; /**< descriptors; a = 0: registers */
};

/**
 * @brief Notes a warp's next wgmma, and compares it with that of the warps of its warpgroup that
 *        were here before.
 * @return false after a fault
 */
bool async_proxy_step(struct simt_warp *warp, const struct warpgroup_step *step);

/** A wgmma of a warp reads shared memory until the warp has waited for the group that it commits
 *  next. */
void async_proxy_follow_product(struct simt_warp *warp, struct simt_flight *flight);

/** wgmma.commit_group and wgmma.wait_group of a warp. */
void async_proxy_commit_products(struct simt_warp *warp);
void async_proxy_wait_for_products(struct simt_warp *warp, uint32_t pending);

/**
 * @brief setmaxnreg: a warp has @p count registers a thread from here on, more than before or
 * fewer.
 *
 * That the four warps of a warpgroup do the same is checked here and at the end of the block; that
 * the block has as many, at its end.
 *
 * @return false after a fault
 */
bool async_proxy_set_registers(struct simt_warp *warp, const struct simt_instruction *instruction,
                               uint32_t count, bool more);

/** A warp's wait for a phase of the mbarrier at @p barrier was in vain. */
void async_proxy_note_wait(struct simt_warp *warp, uint32_t barrier);

/** Moves the bytes of a copy; bulk_copy.c. @return false after a fault */
bool bulk_copy_run(const struct bulk_copy *copy);

/** The bytes of a load have come to its mbarrier; mbarrier.c. */
void mbarrier_complete(const struct bulk_copy *copy);

/** Says what the mbarrier at @p barrier of shared memory waits for; mbarrier.c. */
void mbarrier_explain(const struct simt_block *block, uint32_t barrier, char *text, size_t size);

#endif
