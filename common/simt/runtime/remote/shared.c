/*
 * A device process that several programs use: each with streams, modules and errors of its own, on
 * the same devices. One thread serves a call at a time, of whoever asks.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/simt/runtime/remote/server.h"
#include "common/simt/runtime/state.h"

/* Who starts the process connects at once; else nobody comes. */
enum { PATIENCE_MILLISECONDS = 30000, PATIENCE_SECONDS = 10 };

struct guest {
    struct server server;
    struct program_state state;
    int socket;
};

static struct guest *guests[SIMT_MOST_PROGRAMS];

static void free_guest(struct guest *guest) {
    server_free(&guest->server);
    close(guest->socket);
    free(guest);
}

/** Chooses whose call is served. */
static void select_guest(struct server *root, struct guest *guest) {
    runtime_select_program(root->runtime, &guest->state);
    root->runtime->program = &guest->server.program;
    root->speaks = &guest->server;
}

/** A program comes; one too many is sent away. */
static void take_guest(struct server *root, int listener) {
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int number = 0;
    while (number < SIMT_MOST_PROGRAMS && guests[number] != NULL) {
        number++;
    }
    int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (socket < 0) {
        return;
    }
    struct guest *guest = number < SIMT_MOST_PROGRAMS ? calloc(1, sizeof *guest) : NULL;
    if (guest == NULL) {
        close(socket);
        return;
    }
    guest->socket = socket;
    guest->state.number = number;
    guest->server.runtime = root->runtime;
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!server_prepare(&guest->server) || !server_greet(&guest->server, socket)) {
        free_guest(guest);
        return;
    }
    guests[number] = guest;
}

/** A program has gone: its device memory, and all else it had, goes with it. */
static void lose_guest(struct server *root, int number) {
    struct guest *guest = guests[number];
    select_guest(root, guest);
    guest->server.socket = -1;
    runtime_end_program(root->runtime);
    runtime_select_program(root->runtime, NULL);
    root->speaks = NULL;
    guests[number] = NULL;
    free_guest(guest);
}

static void serve_guest(struct server *root, int number) {
    struct guest *guest = guests[number];
    select_guest(root, guest);
    root->runtime->finished = false;
    if (!server_serve(&guest->server, guest->socket, false)) {
        lose_guest(root, number);
    }
}

static int wait_for_calls(struct pollfd *sockets, int listener) {
    sockets[SIMT_MOST_PROGRAMS] = (struct pollfd){.fd = listener, .events = POLLIN};
    int count = 0;
    for (int n = 0; n < SIMT_MOST_PROGRAMS; n++) {
        count += guests[n] != NULL;
        sockets[n] =
            (struct pollfd){.fd = guests[n] != NULL ? guests[n]->socket : -1, .events = POLLIN};
    }
    int ready = poll(sockets, SIMT_MOST_PROGRAMS + 1, count > 0 ? -1 : PATIENCE_MILLISECONDS);
    return ready < 0 && errno == EINTR ? 1 : ready;
}

static int serve_all(struct server *root, int listener) {
    struct pollfd sockets[SIMT_MOST_PROGRAMS + 1];
    bool left = true, came = false;
    while (left && wait_for_calls(sockets, listener) > 0) {
        if (sockets[SIMT_MOST_PROGRAMS].revents != 0) {
            take_guest(root, listener);
            came = true;
        }
        for (int n = 0; n < SIMT_MOST_PROGRAMS; n++) {
            if (guests[n] != NULL && sockets[n].fd >= 0 && sockets[n].revents != 0) {
                serve_guest(root, n);
            }
        }
        left = !came;
        for (int n = 0; n < SIMT_MOST_PROGRAMS; n++) {
            left = left || guests[n] != NULL;
        }
    }
    return 0;
}

int server_run_shared(int listener) {
    static struct server root; /* the process has one */
    root.runtime = server_begin();
    if (!server_prepare(&root) || !server_redirect_output(&root) ||
        getrandom(root.runtime->key, sizeof root.runtime->key, 0) !=
            (ssize_t)sizeof root.runtime->key ||
        !confine()) {
        return 1;
    }
    return serve_all(&root, listener);
}
