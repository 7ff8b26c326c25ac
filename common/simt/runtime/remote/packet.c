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

enum status packet_send_behind(int socket, const struct packet *posts, const struct packet *packet,
                               const void *attached) {
    const size_t sizes[] = {posts != NULL ? HEAD + posts->size : 0, HEAD + packet->size,
                            packet->extra};
    const void *const from[] = {posts, packet, attached};
    struct iovec parts[3];
    struct msghdr message = {.msg_iov = parts};
    ssize_t sent, whole = 0;
    for (size_t i = 0; i < 3; i++) {
        if (sizes[i] > 0) {
            parts[message.msg_iovlen++] =
                (struct iovec){.iov_base = (void *)(uintptr_t)from[i], .iov_len = sizes[i]};
            whole += (ssize_t)sizes[i];
        }
    }
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EFAULT) {
        return STATUS_INVALID_ARGUMENT;
    }
    return sent == whole ? STATUS_OK : STATUS_IO;
}

enum status packet_send(int socket, const struct packet *packet, const void *attached) {
    return packet_send_behind(socket, NULL, packet, attached);
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

enum status packet_receive_into(int socket, struct packet *packet, void *to, size_t room) {
    struct iovec parts[] = {{.iov_base = packet, .iov_len = HEAD},
                            {.iov_base = to, .iov_len = room}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t got;
    do {
        got = recvmsg(socket, &message, MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return STATUS_IO;
    }
    bool fits = got >= HEAD && packet->size == 0 && packet->extra <= room;
    return fits && packet->extra == (size_t)got - HEAD ? STATUS_OK : STATUS_BAD_FORMAT;
}
