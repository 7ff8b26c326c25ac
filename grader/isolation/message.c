#include "grader/isolation/message.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

/* A packet ends behind the bytes that are used. */
static size_t packet_size(uint32_t size) {
    return offsetof(struct message, bytes) + size;
}

enum status message_send(int channel, const struct message *message) {
    size_t size = packet_size(message->size);
    ssize_t sent;
    do {
        sent = send(channel, message, size, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size ? STATUS_OK : STATUS_IO;
}

double message_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waits until there is something to read, or the other side is gone. */
static enum status wait_for(int channel, double seconds) {
    double end = message_now() + seconds;
    for (;;) {
        double left = seconds < 0.0 ? 1.0 : end - message_now();
        struct pollfd p = {.fd = channel, .events = POLLIN};
        int ready = poll(&p, 1, left > 0.0 ? (int)ceil(1e3 * fmin(left, 1.0)) : 0);
        if (ready > 0) {
            return STATUS_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return STATUS_IO;
        }
        if (seconds >= 0.0 && left <= 0.0) {
            return STATUS_INTERRUPTED;
        }
    }
}

enum status message_receive(int channel, struct message *message, double seconds) {
    ssize_t got;
    TRY(wait_for(channel, seconds));
    do {
        got = recv(channel, message, sizeof *message, MSG_TRUNC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        return STATUS_IO;
    }
    if ((size_t)got < packet_size(0) || (size_t)got > sizeof *message ||
        message->size > MESSAGE_BYTES || packet_size(message->size) != (size_t)got) {
        return STATUS_BAD_FORMAT;
    }
    message->name[MESSAGE_NAME - 1] = '\0';
    message->text[sizeof message->text - 1] = '\0';
    return STATUS_OK;
}
