/**
 * @file module.h
 * @brief A loaded module and its decoded kernels; private to the core.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_LAUNCH_MODULE_H_
#define WARPBOOK_COMMON_SIMT_CORE_LAUNCH_MODULE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/code.h"
#include "common/simt/core/launch/launch.h"

/** Local memory of a thread for functions that are called; more where the stack is larger. */
enum { SIMT_CALL_STACK_BYTES = 16384 };

/** A kernel with the device functions it can reach, decoded for it. */
struct simt_kernel {
    const struct ptx_function *function;
    const struct simt_code *code;
    struct simt_code **codes; /**< of all functions; codes[0] is the kernel */
    size_t code_count;
    size_t static_shared_bytes; /**< of all functions, and of shared variables of the module */
    size_t dynamic_shared;      /**< where dynamic shared memory begins */
    size_t local_bytes;         /**< of one thread, a multiple of 16 */
    bool order_sensitive;
    bool has_atomics;           /**< of any memory */
    bool controls_grids;        /**< has griddepcontrol */
    bool sets_conditions;       /**< calls cudaGraphSetConditional() */
    bool may_wait;              /**< its blocks, for each other: they load what others store */
    bool is_pipelined;          /**< its warps wait for mbarriers, or run wgmma */
    bool has_async_reads;       /**< bulk copies or wgmma read shared memory */
    bool reserves_shared;       /**< uses the shared memory that the system reserves */
    uint32_t site_count;        /**< see simt_number_sites() */
    uint32_t instruction_count; /**< of all functions */
    size_t *parameter_offsets, *parameter_sizes;
};

/** A variable at module scope in its place. */
struct simt_placed {
    const struct ptx_variable *variable;
    uint64_t address; /**< global, const: address; shared: offset */
};

struct simt_module {
    struct ptx_module *ptx;
    struct simt_memory *memory;
    struct simt_placed *placed;   /**< as many as ptx->variable_count */
    struct simt_kernel **kernels; /**< (ptx->function_count), NULL until first used */
};

/** @return the kernel, decoded; NULL with a status and a line in @p error else. */
MUST_CHECK enum status simt_module_kernel(struct simt_module *module, const char *name,
                                          const struct simt_kernel **kernel, struct error *error);

/** Makes an empty list one of the kernel's sites. @param list may be NULL */
MUST_CHECK enum status simt_sites_prepare(struct simt_sites *list, const struct simt_module *module,
                                          const struct simt_kernel *kernel, struct error *error);

/** Makes an empty record one of the kernel. @param xray may be NULL */
MUST_CHECK enum status simt_xray_prepare(struct simt_xray *xray, const struct simt_kernel *kernel,
                                         struct error *error);

#endif
