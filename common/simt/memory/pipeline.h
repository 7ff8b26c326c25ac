/**
 * @file pipeline.h
 * @brief When the warps of a block that work beside each other do what, for the model of time: a
 *        producer that copies, consumers that multiply, an epilogue under another one's product.
 *
 * Each warp of a followed block has a clock of its own (schedule/timeline.h). What warps wait for
 * has a time, too: a phase of an mbarrier ends when the last arrival and the last byte have come, a
 * copy takes its turn at the block's TMA, a wgmma at the tensor cores. So copies, products and
 * epilogues of different warps overlap as far as their barriers let them, and the block takes as
 * long as its last warp. Blocks of a cluster begin together.
 *
 * Times are cycles since the block began. Everything here is modelled, nothing is needed for
 * results.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_PIPELINE_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_PIPELINE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/exec.h"
#include "common/simt/memory/run.h"

/** @return NULL when memory is short */
struct simt_pipeline *simt_pipeline_create(void);

void simt_pipeline_free(struct simt_pipeline *pipeline);

/** A block begins: all clocks are zero. */
void simt_pipeline_reset(struct simt_pipeline *pipeline);

/** A warp's clock says @p now. */
void simt_pipeline_set(struct simt_pipeline *pipeline, uint32_t warp, uint64_t now);

/** @return the time before which a warp's next instruction does not start. */
uint64_t simt_pipeline_until(const struct simt_pipeline *pipeline, uint32_t warp);

/** A warp waits until @p when, which counts, or goes on at once where that is over. */
void simt_pipeline_hold(struct simt_pipeline *pipeline, uint32_t warp, uint64_t when);

/** A warp goes on no earlier than @p when: it is busy until then, which is no waiting. */
void simt_pipeline_delay(struct simt_pipeline *pipeline, uint32_t warp, uint64_t when);

/** No warp goes on before @p when, at which another block of the launch has stored what the block
 *  reads. That is not the block's own time, and pipeline_end() does not count it. */
void simt_pipeline_wait_for_block(struct simt_pipeline *pipeline, uint64_t when);

/** @return when the last warp so far goes on. */
uint64_t simt_pipeline_last(const struct simt_pipeline *pipeline);

/** @return what a warp's clock says. */
uint64_t simt_pipeline_now(const struct simt_pipeline *pipeline, uint32_t warp);

/** What follows takes a warp whose block is not followed, too: it does nothing then. */

/** A warp arrives at the mbarrier at @p offset of the shared memory of @p home. */
void pipeline_arrive(const struct simt_warp *warp, const struct simt_block *home, uint32_t offset);

/** So does a copy, whose bytes come at @p when. */
void pipeline_arrive_at(const struct simt_block *home, uint32_t offset, uint64_t when);

/** The phase of that parity ends. */
void pipeline_end_phase(const struct simt_block *home, uint32_t offset, uint32_t parity);

/** A warp goes on behind the phase of that parity of an mbarrier of its block. */
void pipeline_wait(const struct simt_warp *warp, uint32_t offset, uint32_t parity);

/** A wait was in vain: the warp will ask again, which takes no time of its own. */
void pipeline_poll(const struct simt_warp *warp);

/** @return whether the warp asks again; ends that where @p asks. */
bool pipeline_is_polling(struct simt_pipeline *pipeline, uint32_t warp, bool asks);

/** Where a bulk copy goes: into shared memory, out of it, to another block's. */
enum pipeline_way { PIPELINE_LOAD, PIPELINE_STORE, PIPELINE_PEER };

/** A warp starts a bulk copy. @return when its bytes have come */
uint64_t pipeline_copy(const struct simt_warp *warp, uint32_t bytes, enum pipeline_way way);

/** A warp sends a value to a block of its cluster. @return when it has come */
uint64_t pipeline_message(const struct simt_warp *warp);

/** wgmma: @p cycles of the tensor cores that the warp has. */
void pipeline_multiply(const struct simt_warp *warp, uint32_t cycles);

/** Groups of wgmma and of bulk stores: closes one; waits for all but the @p pending youngest. */
void pipeline_commit(const struct simt_warp *warp, bool products);
void pipeline_wait_for(const struct simt_warp *warp, bool products, uint32_t pending);

/** Adds what a block took, and what its warps waited for, to its counters. */
void pipeline_end(const struct simt_block *block, uint32_t warps);

#endif
