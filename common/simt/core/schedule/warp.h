/**
 * @file warp.h
 * @brief A warp that may have split up: fragments, frames, and how it is driven; and the blocks
 *        that warps belong to.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_WARP_H_
#define WARPBOOK_COMMON_SIMT_CORE_SCHEDULE_WARP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/code.h"
#include "common/simt/core/exec.h"
#include "common/simt/memory/run.h"

/** One activation of a function for some lanes of a warp. */
struct simt_frame {
    struct simt_frame *caller; /**< NULL: the kernel itself */
    const struct simt_code *code;
    const struct simt_call *call; /**< the call that made it */
    uint32_t return_pc;
    uint32_t depth;
    uint32_t lanes;       /**< lanes that are still in it */
    uint32_t local_base;  /**< where its local variables begin in the thread's local memory */
    unsigned char *rows;  /**< code->row_bytes, aligned to 64 */
    void *memory;         /**< allocation that holds the rows */
    uint32_t *predicates; /**< code->predicates */
    struct simt_undefined_cell *cells; /**< NULL: no undefined value was here */
};

enum simt_fragment_state {
    SIMT_FRAGMENT_RUNS,
    SIMT_FRAGMENT_WAITS_FOR_LANES, /**< at a *.sync whose other lanes are elsewhere */
    SIMT_FRAGMENT_AT_BARRIER
};

/** Lanes that are at the same place. */
struct simt_fragment {
    uint32_t mask;
    uint32_t pc;
    uint32_t jumps_back; /**< since it last gave way to others */
    enum simt_fragment_state state;
    struct simt_frame *frame;
};

/** A loop that a warp went round: the outermost one since it was asked for. */
struct simt_loop {
    const struct simt_code *code; /**< NULL: none so far */
    uint32_t begin, end;          /**< instructions: where it jumps back to, and from where */
    uint32_t depth;               /**< of calls */
};

/** A loop that only asks for the time. */
struct simt_clock_wait {
    const struct simt_instruction *at; /**< the one that asks */
    uint64_t polls;                    /**< how often in a row */
    uint64_t since;                    /**< cycles at the first time */
    uint64_t last;                     /**< instructions of the block at the last time */
    uint64_t skipped;                  /**< simt_block_run.skipped_cycles at the last time */
};

/** The loop that a warp went round last, in a launch that runs beside others. */
struct simt_vain {
    const struct simt_code *code; /**< NULL: none so far */
    uint32_t begin, end;          /**< its instructions, end included */
    bool polls;                   /**< it does nothing but load words of other devices */
    bool idle;                    /**< the last round changed nothing: the next costs nothing */
    uint64_t state;               /**< of the warp after the last round, in short */
    struct simt_counters round;   /**< idle: what this round counts, which may be in vain */
};

enum simt_warp_state {
    SIMT_WARP_RUNS,
    SIMT_WARP_AT_BARRIER, /**< all its lanes are */
    SIMT_WARP_DONE
};

struct simt_products;

struct simt_warp_run {
    struct simt_warp warp;
    struct simt_fragment fragments[SIMT_LANES];
    uint32_t fragment_count;
    enum simt_warp_state state;
    uint32_t barrier;               /**< number of the barrier it waits at */
    uint32_t barrier_count;         /**< threads the barrier waits for; 0: all of the block */
    uint32_t undefined_steps;       /**< instructions with undefined values somewhere */
    uint32_t polls;                 /**< in vain, since the warp's turn began */
    struct simt_timeline *timeline; /**< NULL: its chain of waiting is not counted */
    struct simt_timeline *clock;    /**< the warp's in its block's pipeline; NULL: there is none */
    const struct simt_instruction *barrier_at;
    struct simt_loop loop;
    struct simt_clock_wait wait;
    struct simt_vain vain;
    uint64_t machine;               /**< machine instructions so far */
    struct simt_products *products; /**< registers of wgmma; NULL: none so far */
    struct simt_frame *spare;       /**< the kernel's frame while no lane is in it; NULL: none */
};

enum { SIMT_BARRIERS = SIMT_CLUSTER_BARRIER };

/** What bar.arrive left at a barrier. */
struct simt_barrier {
    uint32_t arrived; /**< threads; whole warps, as on a GPU */
    uint32_t wanted;  /**< threads in all */
};

/** When a block last did something that others can see, and what it was like at some time since. */
struct simt_stall {
    uint64_t writes, barriers; /**< of the block at that time */
    uint64_t since;            /**< warp instructions at that time */
    uint64_t rounds, next;     /**< since the block is watched; the one at which to look again */
    uint64_t places, state;    /**< what its warps were like then, in short */
    bool is_near_limit;        /**< that of blocks that write nothing: loops are asked for */
};

/** What a block knows beside its warps. */
struct simt_block_run {
    struct simt_block block;
    const struct simt_code *code;
    struct simt_counters own;  /**< what this block counts; `block.counters` points here, or to a
                                  warp's `vain.round` while it polls in vain */
    struct simt_counters *all; /**< of the host thread */
    struct simt_warp_run *warps;
    uint32_t warp_count;
    struct simt_barrier barriers[SIMT_BARRIERS];
    uint64_t instructions;      /**< warp instructions so far, but for those of this turn */
    uint64_t turn_instructions; /**< of this turn, when the scheduler itself runs one */
    uint64_t skipped_cycles;    /**< that waiting loops of its warps took at once */
    uint64_t instruction_limit; /**< 0: none */
    uint64_t seed;              /**< see simt_timeline_follows() */
    bool is_near_limit;         /**< loops are asked for */
    struct simt_warp_run *last; /**< whose threads returned last so far; NULL: none did */
    const struct simt_instruction *last_instruction; /**< by which they did */
    struct simt_stall stall;
    uint64_t yielded, written; /**< instructions and writes when others had their turn last */
    size_t dynamic_shared_bytes;
    bool reserves_shared;
    bool out_of_memory;
    struct simt_timeline *timeline;   /**< of the one warp that is followed, if any is */
    struct simt_timeline **timelines; /**< (warp_count) of all, in a block with a pipeline */
    struct simt_pipeline *pipeline;   /**< NULL: the kernel's blocks have none */
    struct simt_block_clock *clock;   /**< NULL: its blocks wait for no others of the launch */
    bool is_pipelined;                /**< as its shape */
    bool is_followed;                 /**< the running block's pipeline counts */
    uint64_t arrived[SIMT_BARRIERS];  /**< with it: the latest time of bar.arrive */
};

/** Starts a warp at the beginning of the kernel. */
MUST_CHECK enum status simt_warp_start(struct simt_block_run *block, uint32_t index);

/** Ends the warp where it is, and frees its frames but for `spare`. */
void simt_warp_finish(struct simt_warp_run *warp);

/** Runs a warp until it waits, is done, the block failed, or @p budget instructions are used up. */
void simt_warp_go(struct simt_block_run *block, struct simt_warp_run *warp, uint64_t budget);

/**
 * @brief Before lanes @p active of a warp with attention run the next instruction of a fragment:
 *        notes it, and passes undefined values on.
 * @return false after a fault: the instruction uses an undefined value
 */
bool simt_warp_attend(struct simt_warp_run *warp, const struct simt_fragment *fragment,
                      uint32_t active);

/** A warp of a block with clocks runs an instruction next: its clock goes on. */
void simt_warp_clock(struct simt_warp_run *warp, const struct simt_code *code, uint32_t pc);

/** The part of it for undefined values. */
bool simt_undefined_step(struct simt_warp_run *warp, const struct simt_fragment *fragment,
                         uint32_t active);

/** The part of it for registers of wgmma (products.c). @return false after a fault */
bool simt_products_step(struct simt_warp_run *warp, const struct simt_fragment *fragment,
                        uint32_t active);

/** Frees what is known of them; NULL is allowed. */
void simt_products_free(struct simt_products *products);

/** Before lanes @p active of a fragment call a function of the system.
 *  @return false after a fault: an argument is undefined */
bool simt_undefined_arguments(struct simt_warp_run *warp, const struct simt_fragment *fragment,
                              const struct simt_call *call, uint32_t active);

/** Where a shuffle's source lanes were instead, for the messages: after it has noted some. */
void simt_undefined_locate(struct simt_warp_run *warp, const struct simt_instruction *shuffle);

/** A .param variable is passed from frame to frame for some lanes: undefined values go along. */
void simt_undefined_pass(const struct simt_frame *from, uint32_t from_number, struct simt_frame *to,
                         uint32_t to_number, uint32_t lanes);

/** @return the lanes that a reducing barrier's predicate holds for; *lanes: those that wait. */
uint32_t simt_warp_vote(struct simt_warp_run *warp, uint32_t *lanes);

/** Lets a warp continue after the barrier it waits at.
 *  @param yes of @p threads threads of the block, those whose predicate held: for bar.red */
void simt_warp_release(struct simt_warp_run *warp, uint32_t yes, uint32_t threads);

/** In a launch beside others a fragment is about to jump back to @p target: whether that round was
 *  in vain, and the next one is not charged (vain.c). */
void simt_vain_round(struct simt_block_run *block, struct simt_warp_run *warp,
                     const struct simt_fragment *fragment, uint32_t target);
/** Leaves the loop: what follows is charged. */
void simt_vain_leave(struct simt_block_run *block, struct simt_warp_run *warp);
/** Before a fragment runs: it may be one that polls in vain, or another one. */
void simt_vain_enter(struct simt_block_run *block, struct simt_warp_run *warp,
                     const struct simt_fragment *fragment);

/** A warp reads a clock. */
void simt_clock_read(struct simt_block_run *block, struct simt_warp_run *warp,
                     const struct simt_instruction *instruction);

/** Makes a frame of @p code; rows and special registers are filled. @return NULL: out of memory */
struct simt_frame *simt_frame_create(const struct simt_block_run *block,
                                     const struct simt_warp_run *warp, const struct simt_code *code,
                                     struct simt_frame *caller);

/** Makes a frame of a warp's kernel that of the same warp of another block. @return it */
struct simt_frame *simt_frame_renew(const struct simt_block_run *block,
                                    const struct simt_warp_run *warp, struct simt_frame *frame);

/** @return what a call of a function takes of a thread's stack: its arrays, and an estimate for
 * where to return to. */
size_t simt_frame_bytes(const struct simt_code *code);

/**
 * @brief Whether a function that calls itself, maybe through others, may do so once more: a thread
 *        has run->stack_bytes for the arrays of such functions, and for where to return to.
 */
bool simt_frame_fits(const struct simt_run *run, const struct simt_code *code,
                     const struct simt_frame *caller);

void simt_frame_free(struct simt_frame *frame);

/** @return true when a kernel may call a function of that name without a definition: printf() and
 *  the like, and those of the device's runtime, which are refused where they are used. */
bool simt_system_has(const char *name);

/** @return true when the function is one of those that start a kernel from a kernel. */
bool simt_system_starts_kernels(const char *name);

/**
 * @brief vprintf and __assertfail for the active lanes of a warp.
 * @param fragment those lanes, with the caller's frame
 * @return false when @p call names none of them
 */
bool simt_system_call(struct simt_warp_run *warp, const struct simt_fragment *fragment,
                      const struct simt_instruction *instruction, const struct simt_call *call);

/* Runs blocks, one after another on one host thread. */

/** What every block of a launch gets. */
struct simt_block_shape {
    const struct simt_run *run;
    const struct simt_code *code;
    size_t shared_bytes, dynamic_shared_bytes;
    bool reserves_shared; /**< the last SIMT_RESERVED_BYTES of it are the system's */
    size_t local_bytes;   /**< of one thread, a multiple of 16 */
    uint64_t instruction_limit;
    uint64_t seed;                    /**< draws the warps that are followed */
    bool is_cluster;                  /**< launched in clusters, of run->cluster blocks */
    bool has_async_reads;             /**< bulk copies or wgmma read shared memory */
    bool is_pipelined;                /**< its warps wait for mbarriers, or run wgmma */
    struct simt_block_clocks *clocks; /**< of blocks that may wait for others; NULL: they may not */
};

/** Counters and race detection of the blocks of one host thread. */
struct simt_block_counts {
    struct simt_counters *counters;
    struct simt_site *sites;  /**< by number; NULL: no counts by site */
    struct simt_watch *watch; /**< races in global memory; NULL: not looked for */
    struct simt_xray *xray;   /**< NULL: no record */
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY; memory for one block after another. */
MUST_CHECK enum status simt_block_create(struct simt_block_run **block,
                                         const struct simt_block_shape *shape,
                                         const struct simt_block_counts *counts);

/** Frees all. */
void simt_block_free(struct simt_block_run *block);

/** Starts block number @p order of the grid. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_block_begin(struct simt_block_run *block, uint64_t order);

/** How a block's turn ended. */
enum simt_turn {
    SIMT_TURN_GOES_ON,
    SIMT_TURN_WAITS, /**< all its warps wait for other blocks, or for ever */
    SIMT_TURN_OVER   /**< all threads have exited, or block.fault is set */
};

/** Lets each warp of the block run for a while. */
enum simt_turn simt_block_turn(struct simt_block_run *block);

/** All warps wait, and nobody will open their barriers: fails the block. */
void simt_block_fail_stuck(struct simt_block_run *block);

/**
 * @brief Opens the barrier of a cluster when all its threads have arrived, and lets warps that wait
 *        at it go on.
 * @param blocks (count) of the cluster; a block without one is a cluster of its own
 * @return true when a warp goes on
 */
bool simt_cluster_barrier_open(struct simt_block_run *const *blocks, uint32_t count);

/**
 * @brief Runs the block, which is in no cluster, for a while.
 * @return true when it is finished: all threads have exited, or block.fault is set
 */
bool simt_block_go(struct simt_block_run *block);

/** A block is finished: adds its counts to those of the host thread. @return them */
const struct simt_counters *simt_block_end(struct simt_block_run *block);

/** After a race while its other side is looked for (witness.h): lets the other warps run on for a
 *  while, to see whether they execute the same line. The fault stays. */
void simt_block_run_on(struct simt_block_run *block);

/** A block begins. */
void simt_stall_begin(struct simt_block_run *block);

/**
 * @brief Ends blocks that run together and never end: when they are in the same state again without
 *        having written anything in between, or when one has taken too many instructions.
 *
 * For each round of all warps' turns. Fails a block.
 */
void simt_stall_check(struct simt_block_run *const *blocks, uint32_t count);

/** The same after other blocks of this host thread have run. */
bool simt_block_resume(struct simt_block_run *block);

#endif
