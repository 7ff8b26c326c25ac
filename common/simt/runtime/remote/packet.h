/**
 * @file packet.h
 * @brief What a program and its device say to each other: packets over a socket.
 *
 * A program sends a CALL and reads until its REPLY. In between the device may ask it for what only
 * the program has: its memory, its functions, its output. Calls without an answer travel in front
 * of the next CALL (posts.h). Both ends are built from the same sources, so values lie in packets
 * as they lie in memory. The device trusts nothing in a packet.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_PACKET_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_PACKET_H_

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

enum packet_kind {
    /* From the program. */
    PACKET_CALL = 1, /**< call: row of calls.h; thread; error: the thread's device; data: arguments;
                        behind them `extra` bytes that lie at `address` in the program */
    PACKET_DATA,     /**< extra bytes: a piece of what PULL asked for */
    PACKET_POSTS,    /**< data: calls without an answer; in the same message follows a CALL */
    PACKET_DONE,     /**< the function has returned, the memory is there (address), or is not (0) */
    PACKET_FAILED,   /**< the program has no such memory */

    /* From the device. */
    PACKET_HELLO, /**< the first of all; error: it has told the user why it ends; or address, bytes:
                     the window of device memory; thread: how many devices */
    PACKET_REPLY, /**< call; error; last: the thread's last error, or PACKET_NO_ERROR; thread: its
                     device from now on; bytes: to a controller, the calls of programs; flags;
                     posted: the first error of calls without an answer; data; the extra bytes, if
                     any, belong at `address` */
    PACKET_TEXT,  /**< call: 1 or 2, the stream that the extra bytes are for */
    PACKET_PULL,  /**< send the `bytes` bytes at `address` as DATA */
    PACKET_TAKE,  /**< the same, and close the pages */
    PACKET_OPEN,  /**< open the pages of the `bytes` bytes at `address` again */
    PACKET_PUSH,  /**< the extra bytes belong at `address` */
    PACKET_CALLBACK,           /**< call the host function at `address` with the pointer `bytes` */
    PACKET_CALLBACK_OF_STREAM, /**< the same with the stream `thread` and `error` */
    PACKET_ALLOCATE,           /**< take `bytes` bytes of memory, whole pages */
    PACKET_RELEASE             /**< give back the `bytes` bytes at `address` */
};

enum { PACKET_BYTES = 56 << 10, PACKET_ATTACHED = 32 << 10, PACKET_NO_ERROR = -1 };

/** Flags of a REPLY. */
enum {
    PACKET_SETTLED = 1 /**< no work is left that may fail, no stream is captured, and the device
                          uses no memory of the host's */
};

struct packet {
    uint32_t kind, call;
    int32_t error, last;
    uint64_t thread, address, bytes;
    uint32_t flags;
    int32_t posted;
    uint32_t size;  /**< of data */
    uint32_t extra; /**< behind it */
    unsigned char data[PACKET_BYTES];
};

/** Empties a packet but for its kind; data is left as it is. */
void packet_begin(struct packet *packet, enum packet_kind kind);

/** Adds a value to data. @return false when there is no room */
bool packet_put(struct packet *packet, const void *value, size_t bytes);

/** Takes the next value from data. @return false when there is not as much left */
bool packet_take(const struct packet *packet, size_t *at, void *value, size_t bytes);

/**
 * @brief Sends a packet whole, with @p extra bytes at @p attached behind its data.
 * @return STATUS_OK; STATUS_IO: nobody is there any more; STATUS_INVALID_ARGUMENT: @p attached
 *         cannot be read, nothing was sent
 */
MUST_CHECK enum status packet_send(int socket, const struct packet *packet, const void *attached);

/** The same behind a packet of POSTS, in one message; NULL: there are none. */
MUST_CHECK enum status packet_send_behind(int socket, const struct packet *posts,
                                          const struct packet *packet, const void *attached);

/**
 * @brief Waits for a packet.
 * @return STATUS_OK; STATUS_IO: nobody is there any more; STATUS_BAD_FORMAT: it is none
 */
MUST_CHECK enum status packet_receive(int socket, struct packet *packet);

/** The same for a packet without data, whose extra bytes come to @p to, where there is room for
 *  @p room; more of them, or data, are STATUS_BAD_FORMAT. */
MUST_CHECK enum status packet_receive_into(int socket, struct packet *packet, void *to,
                                           size_t room);

/** How waiting awake went; zeros at first. */
struct packet_watch {
    unsigned vain;     /**< times in a row that nothing came */
    unsigned sleeping; /**< so many times from now on it is not tried */
};

/**
 * @brief Waits a few microseconds for something to come, awake: waking a process that sleeps takes
 *        longer than most calls. Where nothing came several times in a row, as on a busy machine,
 *        it is left out for a while.
 */
void packet_watch(struct packet_watch *watch, struct pollfd *sockets, nfds_t count);

/** @return true when what was received has the sizes that it says. */
bool packet_is_good(const struct packet *packet, size_t received);

#endif
