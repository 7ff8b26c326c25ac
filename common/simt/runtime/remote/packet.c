#include "common/simt/runtime/remote/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum { HEAD = offsetof(struct packet, data) };

void packet_begin(struct packet *packet, enum packet_kind kind) {
    memset(packet, 0, HEAD);
    packet->kind = kind;
    packet->last = PACKET_NO_ERROR;
}

bool packet_put(struct packet *packet, const void *value, size_t bytes) {
    if (bytes > sizeof packet->data - packet->size) {
        return false;
    }
    memcpy(packet->data + packet->size, value, bytes);
    packet->size += (uint32_t)bytes;
    return true;
}

bool packet_take(const struct packet *packet, size_t *at, void *value, size_t bytes) {
    if (*at > packet->size || bytes > packet->size - *at) {
        return false;
    }
    memcpy(value, packet->data + *at, bytes);
    *at += bytes;
    return true;
}

enum status packet_send(int socket, const struct packet *packet, const void *attached) {
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)packet, .iov_len = HEAD + packet->size},
                            {.iov_base = (void *)(uintptr_t)attached, .iov_len = packet->extra}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = packet->extra > 0 ? 2 : 1};
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EFAULT) {
        return STATUS_INVALID_ARGUMENT;
    }
    return sent == (ssize_t)(HEAD + packet->size + packet->extra) ? STATUS_OK : STATUS_IO;
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void packet_watch(struct packet_watch *watch, struct pollfd *sockets, nfds_t count) {
    enum { NANOSECONDS = 20000, MOST_VAIN = 4, LEFT_OUT = 64 };
    if (watch->sleeping > 0) {
        watch->sleeping--;
        return;
    }
    int ready = poll(sockets, count, 0);
    for (int64_t end = nanoseconds() + NANOSECONDS; ready == 0 && nanoseconds() < end;) {
        ready = poll(sockets, count, 0);
    }
    watch->vain = ready == 0 ? watch->vain + 1 : 0;
    if (watch->vain == MOST_VAIN) {
        *watch = (struct packet_watch){.sleeping = LEFT_OUT};
    }
}

bool packet_is_good(const struct packet *packet, size_t received) {
    return received >= HEAD && received <= sizeof *packet && packet->size <= received - HEAD &&
           packet->extra == received - HEAD - packet->size;
}

enum status packet_receive(int socket, struct packet *packet) {
    ssize_t got;
    do {
        got = recv(socket, packet, sizeof *packet, MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return STATUS_IO;
    }
    return packet_is_good(packet, (size_t)got) ? STATUS_OK : STATUS_BAD_FORMAT;
}
