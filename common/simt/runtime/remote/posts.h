/**
 * @file posts.h
 * @brief Calls without an answer: collected by the program, sent in front of the next call.
 *
 * Most calls of a program that copies and frees small things tell it nothing that it does not know.
 * Such a call costs a copy into a packet here, and no exchange of packets. The device serves it
 * when the next call with an answer comes, before that: so the order stays what it was, and each
 * message to the device has one answer.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_POSTS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_POSTS_H_

#include <stdbool.h>

#include "common/simt/runtime/remote/packet.h"

/** Most bytes of such calls in one message. */
enum { POSTS_BYTES = 40 << 10 };

/** @return whether a call may be one without an answer, whatever its arguments. */
bool posts_allow(uint32_t call);

/** @return whether the next call that is asked returns such a call's error. A free's says little,
 * as who else uses the device has freed the memory before; names and kernels that are not taken are
 * no error of the program's. */
bool posts_tell_error(uint32_t call);

/** Adds a call, with its `extra` bytes behind its data. @return false when there is no room */
bool posts_add(struct packet *posts, const struct packet *call);

/** What a device has received: perhaps POSTS, and a packet behind them. */
struct posts_inbox {
    size_t at, end; /**< of the calls without an answer that are left, in bytes */
    union {
        struct packet first;
        unsigned char bytes[2 * offsetof(struct packet, data) + POSTS_BYTES + PACKET_BYTES];
    } got;
};

/** Waits for a message; @p packet receives its last packet. @return as packet_receive() */
MUST_CHECK enum status posts_receive(int socket, struct posts_inbox *inbox, struct packet *packet);

/**
 * @brief Takes the next call without an answer.
 * @return STATUS_OK; STATUS_NOT_FOUND: there is none left; STATUS_BAD_FORMAT: it is none
 */
MUST_CHECK enum status posts_next(struct posts_inbox *inbox, struct packet *call);

#endif
