/**
 * @file launch.h
 * @brief From a parsed kernel to a finished launch: the interface between runtime API and core.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_LAUNCH_LAUNCH_H_
#define WARPBOOK_COMMON_SIMT_CORE_LAUNCH_LAUNCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/access/block_clock.h"
#include "common/simt/memory/block_costs.h"
#include "common/simt/memory/counters.h"
#include "common/simt/memory/fault.h"
#include "common/simt/memory/run.h"
#include "common/simt/memory/space/memory.h"
#include "common/simt/memory/xray.h"
#include "common/simt/ptx/ptx.h"

/** A module in device memory: its variables have addresses, its kernels are decoded on first use.
 */
struct simt_module;

/**
 * @brief Places the module's variables and links their addresses.
 * @param ptx is owned by the module from here on, also on failure
 */
MUST_CHECK enum status simt_module_load(struct simt_module **module, struct ptx_module *ptx,
                                        struct simt_memory *memory, struct error *error);

/** Makes one module of those of a program's files: ptx_link(), which knows the functions that
 *  simt has itself. Owns the modules from here on, also on failure. */
MUST_CHECK enum status simt_module_link(struct ptx_module **linked, struct ptx_module **modules,
                                        size_t count, struct error *error);

/** Frees the module and the memory of its variables. */
void simt_module_unload(struct simt_module *module);

/** @return address and size of a module-scope variable; STATUS_NOT_FOUND. */
MUST_CHECK enum status simt_module_variable(const struct simt_module *module, const char *name,
                                            uint64_t *address, size_t *bytes);

/** What cudaFuncGetAttributes() and occupancy need of a kernel. */
struct simt_kernel_info {
    size_t static_shared_bytes, local_bytes, constant_bytes, parameter_bytes;
    bool order_sensitive; /**< results may depend on the order of blocks: it may wait for others */
    uint32_t registers;   /**< 32-bit registers a thread: an estimate from live PTX registers */
    uint32_t max_threads;
    uint32_t cluster[3];  /**< that the kernel has in every launch; 0: the launch says it */
    bool controls_grids;  /**< has griddepcontrol: other launches overlap with it */
    bool sets_conditions; /**< of graphs, on some path */
    size_t parameter_count;
    const size_t *parameter_offsets; /**< of each parameter in the block; lives with the module */
    const size_t *parameter_sizes;
};

/** @return STATUS_OK; STATUS_NOT_FOUND; STATUS_UNSUPPORTED with instruction and source line. */
MUST_CHECK enum status simt_kernel_info(struct simt_module *module, const char *kernel,
                                        struct simt_kernel_info *info, struct error *error);

/**
 * Where the memory instructions of one kernel and of all functions it calls did
 * what. Begins as zeros; launches of the same kernel of the same module add to
 * it. Lives no longer than the module.
 */
struct simt_sites {
    struct simt_site *sites; /**< (count), in the order of the text; most may have requests = 0 */
    size_t count;
    const struct ptx_module *module; /**< names the files: files[site.source->file] */
};

/** Frees the list and makes it empty. */
void simt_sites_free(struct simt_sites *sites);

struct simt_launch {
    struct simt_module *module;
    const struct simt_textures *textures; /**< texture and surface objects; NULL: none */
    struct simt_conditions *conditions;   /**< of graphs; NULL: none */
    const char *kernel;
    uint32_t grid[3], threads[3];
    uint32_t cluster[3]; /**< blocks of a cluster; 0: what the kernel says, or no clusters */
    size_t dynamic_shared_bytes;
    struct simt_yield *yield; /**< lets other launches run; NULL: there are none */
    const void *parameters;   /**< parameter block, laid out as the kernel declares it */
    bool cooperative;         /**< all blocks are resident at the same time */
    enum simt_check check;
    struct simt_global_shadow *global_shadow; /**< of the memory; NULL: races in global memory go
                                                   unseen */
    struct simt_footprint *const *footprint;  /**< receives what the launch touches; or NULL */
    struct simt_primary *primaries;           /**< launches that may still run; see primary.h */
    struct simt_trace *trace;                 /**< receives the same for the next one; or NULL */
    int host_threads;                         /**< at least 1; results do not depend on it */
    uint64_t instruction_limit; /**< warp instructions a block may take; 0: no limit */
    uint64_t start_nanoseconds; /**< what %globaltimer says when a block begins */
    uint64_t clock_khz;         /**< of the GPU; 0: not known, then a gigahertz */
    size_t stack_bytes;  /**< of a thread, for functions that call themselves: 0 counts as 1024,
                              the default of cudaLimitStackSize */
    size_t l1_bytes;     /**< share of L1 that a block has: L1 and shared memory of a multiprocessor
                            less what its blocks take as shared memory, over those blocks; 0: no L1 */
    size_t l2_bytes;     /**< of the GPU; 0: no L2, then every sector comes from device memory */
    uint32_t processors; /**< of the GPU: multiprocessors; 0: not known, then one */
    uint32_t tensor_code;     /**< as of struct simt_run */
    uint64_t resident_blocks; /**< that the GPU runs at a time; 0: not known, then few */
    struct simt_sites *sites; /**< of this kernel: the launch adds to it. NULL: no counts by site */
    uint64_t seed;            /**< draws the warps whose chains are followed, and the blocks of
                                   SIMT_CHECK_SAMPLED */
    uint64_t number;          /**< of the launch among others, for what the seed draws */
    struct simt_block_costs *costs; /**< zeros: receives what the blocks cost, nothing when there is
                                         a fault; simt_block_costs_free() it. NULL: not wanted */
    const struct simt_alone *alone; /**< to follow blocks that wait for blocks; NULL: none are */
    uint64_t *waited; /**< with it: receives the cycles of the longest chain of these, until its
                           last block has ended; 0: no block has loaded what another one stored */
    struct simt_xray *xray; /**< zeros: receives the record of the launch, nothing when there is a
                                 fault; simt_xray_free() it. NULL: no record */
};

/**
 * @brief Runs a kernel to its end.
 * @param counters receives the counts of this launch; zeros when there is a fault
 * @param fault    kind is SIMT_FAULT_NONE, or the first fault in block order
 * @return STATUS_OK (also when a fault was found), STATUS_OUT_OF_MEMORY, STATUS_UNSUPPORTED,
 *         STATUS_NOT_FOUND, STATUS_INVALID_ARGUMENT (sizes of grid, cluster or block)
 */
MUST_CHECK enum status simt_launch_run(const struct simt_launch *launch,
                                       struct simt_counters *counters, struct simt_fault *fault,
                                       struct error *error);

#endif
