/**
 * @file counters.h
 * @brief What one launch did, counted as the hardware's counters count it.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_COUNTERS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_COUNTERS_H_

#include <stdint.h>

#include "common/simt/core/instruction_class.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Cycles of a load of global memory, where chains of waiting are compared. */
enum { SIMT_LOAD_NOMINAL = 500 };

/** Warpgroups of a block: what its warps do differs by warpgroup where they are specialised. */
enum { SIMT_ROLES = 8 };

/** Formats of what tensor cores multiply, as they are counted: both of eight bits together. */
enum simt_tensor_format {
    SIMT_TENSOR_F16,
    SIMT_TENSOR_BF16,
    SIMT_TENSOR_TF32,
    SIMT_TENSOR_F64,
    SIMT_TENSOR_FP8,
    SIMT_TENSOR_INT8,
    SIMT_TENSOR_INT4,
    SIMT_TENSOR_FORMATS
};

/**
 * A request is one warp instruction; a sector is 32 aligned bytes; a shared
 * wavefront is one cycle of the 32 banks of 4 bytes (a request without
 * conflicts takes one, for 8- and 16-byte accesses two and four).
 */
struct simt_counters {
    uint64_t instructions[SIMT_CLASS_COUNT]; /**< warp instructions */
    uint64_t active_lanes;                   /**< sum over warp instructions */
    uint64_t flops;                          /**< sum over active lanes */
    uint64_t global_load_requests, global_load_sectors;
    uint64_t global_store_requests, global_store_sectors;
    uint64_t global_bytes; /**< bytes the lanes asked for */
    uint64_t local_requests, local_sectors;
    uint64_t shared_load_requests, shared_load_wavefronts;
    uint64_t shared_store_requests, shared_store_wavefronts;
    uint64_t shared_bank_conflicts; /**< wavefronts beyond those that the access size needs */
    uint64_t tensor_operations[SIMT_TENSOR_FORMATS]; /**< multiplications and additions of tensor
                                                          cores, by the format of a */
    uint64_t atomic_requests;
    uint64_t bulk_requests, bulk_bytes; /**< copies by the TMA; bytes that they move, of a multicast
                                             once */
    uint64_t multicast_bytes; /**< bytes that multicasts bring to shared memory, of all blocks */
    uint64_t peer_requests;   /**< of those to shared memory (atomics, too): to another block's */
    uint64_t peer_sectors; /**< of 32 bytes, of these requests; of atomics twice: there and back */
    uint64_t peer_far_sectors;    /**< of these: in clusters of more than two blocks */
    uint64_t peer_served_sectors; /**< that other blocks asked this one for, counted alike */
    uint64_t peer_served_passes;  /**< of its shared memory for loads and stores of other blocks:
                                     words  of one bank one after the other */
    uint64_t peer_served_atomics; /**< the same for atomics: lanes of one bank */
    uint64_t barriers;            /**< warp arrivals */
    uint64_t divergent_branches;

    /** @name Estimates of the caches, for the model of time
     * @{ */
    uint64_t global_lines; /**< different lines of 128 bytes, of each global request */
    uint64_t atomic_lanes; /**< lanes of atomics */
    uint64_t
        atomic_serial; /**< lanes of atomics that share their address with a lane before them */
    uint64_t
        l1_hit_sectors;  /**< global load sectors that a block finds where it loaded them before */
    uint64_t l2_sectors; /**< sectors that reach L2: loads that missed L1, stores, atomics, local */
    uint64_t dram_bytes; /**< sectors that no launch touched recently enough for L2 to hold */
    uint64_t atomic_hottest; /**< lanes of atomics of the line of device memory that had most */
    uint64_t machine_instructions; /**< warp instructions that ptxas would make of these */
    uint64_t followed_warps;       /**< warps whose chain of waiting was followed; see timeline.h */
    uint64_t chain_cycles;         /**< of these warps: cycles of arithmetic and shared memory */
    uint64_t chain_loads;          /**< of these warps: loads one after the other */
    uint64_t chain_squares;        /**< of these warps: square of their chain / 256, of cycles with
                                        SIMT_LOAD_NOMINAL a load */
    uint64_t followed_machine;     /**< of these warps: machine instructions */
    uint64_t followed_loads;       /**< of these warps: loads in all */
    uint64_t pipelined_blocks;     /**< blocks with asynchronous copies or products that were
                                        followed as a whole; see memory/pipeline.h */
    uint64_t pipelined_cycles;     /**< of these blocks: until the last warp ended */
    uint64_t role_waits[SIMT_ROLES];  /**< of these, by warpgroup: cycles that its warps waited */
    uint64_t role_cycles[SIMT_ROLES]; /**< and cycles that they took in all */
    uint64_t longest_warps;   /**< machine instructions of each block's longest warp, over blocks */
    uint64_t constant_serial; /**< different addresses of loads of constants and parameters beyond
                                   the first, which come one after the other */
    uint64_t spills; /**< 256ths of accesses to local memory that ptxas would add, as the registers
                          that the kernel may have are too few for its values */
    /** @} */
};

/**
 * What one memory instruction of a kernel did: a place where a learner can look.
 * `least_sectors` and `least_wavefronts` are what the same bytes would take
 * if the lanes' addresses lay side by side.
 */
struct simt_site {
    const struct ptx_instruction *source;
    uint64_t requests, lanes;              /**< lanes: summed over the requests */
    uint64_t sectors, least_sectors;       /**< global and local memory */
    uint64_t wavefronts, least_wavefronts; /**< shared memory */
    uint64_t lines;                        /**< lines of 128 bytes of global loads and stores */
    uint64_t l1_hit_sectors;               /**< sectors of global loads found in L1 */
};

/** Adds @p from to @p to. */
void simt_counters_add(struct simt_counters *to, const struct simt_counters *from);

/** Takes @p part away, which was counted before. */
void simt_counters_subtract(struct simt_counters *from, const struct simt_counters *part);

/** Adds the counts of @p from to @p to, whose source stays. */
void simt_site_add(struct simt_site *to, const struct simt_site *from);

#ifdef __cplusplus
}
#endif

#endif
