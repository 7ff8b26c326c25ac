#include "common/simt/runtime/remote/posts.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/simt/runtime/remote/numbers.h"

enum { HEAD = offsetof(struct packet, data), ALIGNMENT = 8 };

_Static_assert(HEAD % ALIGNMENT == 0, "packets lie behind each other");

bool posts_allow(uint32_t call) {
    switch (call) {
    case CALL_cudaFree:
    case CALL_simt_ask_name:
    case CALL_simt_add_kernel:
    case CALL_simt_add_variable:
        return true;
    default:
        return posts_tell_error(call);
    }
}

bool posts_tell_error(uint32_t call) {
    switch (call) {
    case CALL_cudaMemcpy:
    case CALL_cudaMemcpyAsync:
    case CALL_cudaMemset:
    case CALL_cudaMemsetAsync:
    case CALL_cudaStreamSynchronize:
    case CALL_cudaDeviceSynchronize:
        return true;
    default:
        return false;
    }
}

static size_t room_of(const struct packet *packet) {
    size_t bytes = HEAD + (size_t)packet->size + packet->extra;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool posts_add(struct packet *posts, const struct packet *call) {
    unsigned char *to = posts->data + posts->size;
    size_t bytes = HEAD + (size_t)call->size + call->extra, room = room_of(call);
    if (bytes > sizeof *call || room > POSTS_BYTES - posts->size) {
        return false;
    }
    memcpy(to, call, bytes);
    memset(to + bytes, 0, room - bytes);
    posts->size += (uint32_t)room;
    return true;
}

/** @return whether a packet of @p bytes bytes that lies in an inbox has been copied */
static bool take_packet(struct packet *packet, const unsigned char *from, size_t bytes) {
    if (bytes < HEAD || bytes > sizeof *packet) {
        return false;
    }
    memcpy(packet, from, bytes);
    return packet_is_good(packet, bytes);
}

/** Copies the packet behind POSTS, and finds the calls in these. */
static bool divide(struct posts_inbox *inbox, size_t got, struct packet *packet) {
    const struct packet *first = &inbox->got.first;
    size_t posts = 0;
    if (got < HEAD || got > sizeof inbox->got) {
        return false;
    }
    if (first->kind == PACKET_POSTS) {
        posts = HEAD + (size_t)first->size;
    }
    if (posts > got || posts % ALIGNMENT != 0) {
        return false;
    }
    inbox->at = posts > 0 ? HEAD : 0;
    inbox->end = posts;
    return take_packet(packet, inbox->got.bytes + posts, got - posts);
}

enum status posts_receive(int socket, struct posts_inbox *inbox, struct packet *packet) {
    ssize_t got;
    do {
        got = recv(socket, &inbox->got, sizeof inbox->got, MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    inbox->at = inbox->end = 0;
    if (got <= 0) {
        return STATUS_IO;
    }
    return divide(inbox, (size_t)got, packet) ? STATUS_OK : STATUS_BAD_FORMAT;
}

enum status posts_next(struct posts_inbox *inbox, struct packet *call) {
    size_t left = inbox->end - inbox->at, bytes = 0;
    if (left == 0) {
        return STATUS_NOT_FOUND;
    }
    if (left < HEAD) {
        return STATUS_BAD_FORMAT;
    }
    memcpy(call, inbox->got.bytes + inbox->at, HEAD);
    bytes = room_of(call);
    if (bytes > left ||
        !take_packet(call, inbox->got.bytes + inbox->at, HEAD + (size_t)call->size + call->extra) ||
        call->kind != PACKET_CALL || !posts_allow(call->call)) {
        return STATUS_BAD_FORMAT;
    }
    inbox->at += bytes;
    return STATUS_OK;
}
