/**
 * @file xray.h
 * @brief What one launch did, instruction by instruction: the raw data of an x-ray page.
 *
 * Recorded only where a launch asks for it. Each host thread has a record of its own; the sum does
 * not depend on how many there are.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_XRAY_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_XRAY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/exec.h"
#include "common/simt/memory/race/history.h"
#include "common/simt/ptx/ptx.h"

/** What a warp that is followed stands still for; see timeline.h. */
enum simt_wait {
    SIMT_WAIT_FIXED,   /**< an arithmetic result, or its turn to issue */
    SIMT_WAIT_LOAD,    /**< global or local memory, beside the latency of the load itself */
    SIMT_WAIT_SHARED,  /**< shared memory, or another lane's value */
    SIMT_WAIT_BARRIER, /**< the latency of a barrier */
    SIMT_WAIT_COUNT
};

/** One instruction of a kernel or of a function it calls. */
struct simt_xray_instruction {
    const struct simt_instruction *instruction; /**< lives with the module */
    uint64_t executed, lanes;                   /**< warp instructions; active lanes, summed */
    int64_t wait[SIMT_WAIT_COUNT]; /**< cycles that the followed warps waited at it; a chain that
                                        gives way to another can make single ones negative */
    int64_t loads;                 /**< latencies of loads that they waited for at it, likewise */
};

/** One request as a warp made it: the first of its site, in the lowest block that came there. */
struct simt_xray_request {
    uint64_t block;       /**< position in the grid */
    uint32_t warp;        /**< of the block */
    uint32_t mask;        /**< active lanes; 0: no request was seen */
    uint32_t bytes;       /**< of one lane; of the joined access where ptxas joins several */
    uint64_t first;       /**< address of the first active lane, in its space */
    uint64_t allocation;  /**< global: where the allocation of that address begins; else 0 */
    uint32_t cost, least; /**< sectors or wavefronts, and what would do */
    enum simt_access_kind kind;
    enum ptx_space space;         /**< PTX_GLOBAL, PTX_SHARED or PTX_LOCAL */
    int32_t relative[SIMT_LANES]; /**< bytes from `first`; 0 for inactive lanes */
};

/** Begins as zeros. */
struct simt_xray {
    struct simt_xray_instruction *instructions; /**< (count), by simt_code.first + place */
    size_t count;
    struct simt_xray_request *requests; /**< (2 * site_count): of global or local memory, then of
                                             shared memory, as cp.async makes both */
    size_t site_count;
};

/**
 * @brief Makes an empty record.
 * @return false when memory is short; simt_xray_free() also then
 */
bool simt_xray_create(struct simt_xray *xray, size_t instructions, size_t sites);

/** Forgets what was recorded, and keeps which instructions there are. */
void simt_xray_clear(struct simt_xray *xray);

/** Keeps the first request of a site. */
void simt_xray_keep(struct simt_xray *xray, uint32_t site, const struct simt_xray_request *request);

/** Adds the record of another host thread, of the same kernel. */
void simt_xray_add(struct simt_xray *to, const struct simt_xray *from);

/** Frees the record and makes it zeros. */
void simt_xray_free(struct simt_xray *xray);

#endif
