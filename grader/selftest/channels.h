/**
 * @file channels.h
 * @brief Ways in which bytes of the host get to the GPU, for submissions whose CPU computes.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_CHANNELS_H_
#define WARPBOOK_GRADER_SELFTEST_CHANNELS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum channel {
    CHANNEL_ARGUMENTS,     /**< of launches, 4000 bytes of each */
    CHANNEL_ARRAY,         /**< a CUDA array, copied on the GPU */
    CHANNEL_CONSTANTS,     /**< a variable in constant memory, and a kernel that reads it */
    CHANNEL_GRAPH,         /**< a copy that is a node of a graph */
    CHANNEL_HOST_FUNCTION, /**< page-locked memory that a host function of the stream fills */
    CHANNEL_MANAGED,       /**< managed memory, copied as if it were the GPU's */
    CHANNEL_MAPPED,        /**< page-locked memory that a kernel reads */
    CHANNEL_REGISTERED     /**< memory that is registered, and a kernel that reads it */
};

/** At most this many bytes. */
enum { CHANNEL_BYTES = 1 << 15 };

/** Sends them behind what was started on a stream. @p from stays until the stream has been waited
 *  for. @param bytes a multiple of 4, at most CHANNEL_BYTES */
MUST_CHECK enum status channel_send(enum channel channel, void *to, const void *from, size_t bytes,
                                    device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
