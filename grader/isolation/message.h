/**
 * @file message.h
 * @brief What the grader and the process with the learner's code say to each other.
 *
 * One request, one answer, over a socket of packets; numbers, a function's name and its
 * arguments as they lie in memory. Both are built from the same sources, so there is nothing to
 * convert. What comes from the learner's process is never trusted: the grader uses an answer's
 * numbers as numbers, and hands pointers in it back without looking behind them.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_MESSAGE_H_
#define WARPBOOK_GRADER_ISOLATION_MESSAGE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Descriptors that the worker begins with. */
enum { WORKER_CHANNEL = 3, WORKER_ARENA = 4, WORKER_DEVICE = 5 };
#define WORKER_DEVICE_TEXT "5"

/** Bytes of arguments that a call can carry; what is larger lies in the arena. */
enum { MESSAGE_BYTES = 3072, MESSAGE_NAME = 48 };

/** What the grader asks for. a[] and the answer's a[] are said beside it. */
enum message_kind {
    MESSAGE_READY, /**< a: arena's address, bytes; the worker maps it. First of all */
    MESSAGE_CALL,  /**< a: enum call_mode, stream; name, bytes: arguments. Answer: the same bytes as
                        the function left them, ms; a: launches; a[3], a[4]: operations and
                        bytes of global memory that simt counted */
    MESSAGE_DEVICE /**< a: enum device_request and what it takes */
};

/** How a function is called. */
enum call_mode {
    CALL_ONCE,   /**< that is all */
    CALL_TIMED,  /**< between two looks at the clock, with the whole device waited for */
    CALL_BENCH,  /**< one run between two events, behind DEVICE_PREPARE; ms: its time */
    CALL_COUNTED /**< recorded, and its launches counted */
};

/** What is asked of the device; see worker_device.c. */
enum device_request {
    DEVICE_OPEN, /**< answer's bytes: struct device_properties */
    DEVICE_ALLOC,
    DEVICE_FREE,
    DEVICE_WRITE,
    DEVICE_READ,
    DEVICE_COPY,
    DEVICE_SET,
    DEVICE_STREAM_CREATE,
    DEVICE_STREAM_DESTROY,
    DEVICE_SYNCHRONIZE,
    DEVICE_LAUNCHED,
    DEVICE_TRAFFIC, /**< answer's bytes: struct device_traffic */
    DEVICE_NOW,
    DEVICE_LIMITS,  /**< answer's bytes: struct device_limits */
    DEVICE_PREPARE, /**< for a CALL_BENCH; a[1]: stream, a[2]: sweep L2 */
    DEVICE_SETTLE, /**< waits until the GPU works for nobody else, a[1] ms at most; answer's ms: how
                        long that took */
    DEVICE_WARM_UP, /**< keeps tensor cores busy, if there are any, for about a millisecond */
    DEVICE_LONGEST /**< answer's bytes: struct simt_profile of the longest launch since it was asked
                        last; none on a GPU */
};

struct message {
    uint64_t number; /**< of the request; its answer has the same */
    uint32_t kind;   /**< enum message_kind */
    int32_t status;  /**< answer: enum status */
    uint64_t a[5];
    double ms; /**< answer: of the call */
    char name[MESSAGE_NAME];
    char text[512]; /**< answer: the error's line */
    uint32_t size;  /**< of bytes */
    unsigned char bytes[MESSAGE_BYTES];
};

/** @return seconds of a clock that never goes back. */
double message_now(void);

/** Sends one message whole. @return STATUS_OK, or STATUS_IO when nobody is there any more. */
MUST_CHECK enum status message_send(int channel, const struct message *message);

/**
 * @brief Waits for one message.
 * @param seconds at most; below 0: for ever
 * @return STATUS_OK; STATUS_INTERRUPTED when the time is over; STATUS_IO when the other side is
 *         gone; STATUS_BAD_FORMAT for a packet that is no message
 */
MUST_CHECK enum status message_receive(int channel, struct message *message, double seconds);

#ifdef __cplusplus
}
#endif

#endif
