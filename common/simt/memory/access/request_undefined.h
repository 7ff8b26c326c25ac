/**
 * @file request_undefined.h
 * @brief Undefined values on their way from and to memory; see memory/undefined.h.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_REQUEST_UNDEFINED_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_REQUEST_UNDEFINED_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/access/request.h"

enum { SIMT_MOST_GROUPS = 32 };

/** The bytes of a lane's access, in groups of which one byte must be written. */
struct simt_groups {
    uint32_t bytes; /**< of a group */
    bool racing;    /**< the bytes are written, but not in order with this; see harmless.h */
    uint32_t missing[SIMT_MOST_GROUPS]; /**< lanes, of which no byte of the group is written */
};

/**
 * @brief Lanes read bytes that nothing has written: their registers carry it along, or, for an
 *        access that is no load, it is a fault.
 * @return false after a fault
 */
bool simt_request_unwritten(const struct simt_request *request, uint32_t lanes,
                            const struct simt_groups *groups);

/**
 * @brief After a store by a warp with undefined values: a fault in global memory; bytes of the
 *        block's memory count as not written.
 * @return false after a fault
 */
bool simt_request_stored(const struct simt_request *request);

#endif
