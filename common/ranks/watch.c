/**
 * @file watch.c
 * @brief The thread of each rank that notices the end of another one, and ends this process.
 *
 * Rank 0 watches all others, the others watch rank 0. A connection that closes without a word is
 * that of a rank that died. The process ends with _exit(): its main thread may wait for a kernel
 * that never ends. Of a killed or ended process the system takes back sockets, device memory and
 * shared memory, which has no name.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/ranks/processes_internal.h"

enum { HOLD_SECONDS = 6 };

void ranks_say(struct ranks *r, enum ranks_word word) {
    const char byte = (char)word;
    for (int i = 0; i < r->count; i++) {
        int socket = r->sockets.of[RENDEZVOUS_WATCH][i];
        if (socket >= 0) {
            bool sent = rendezvous_send(socket, &byte, 1);
            (void)sent; /* it is gone */
        }
    }
}

bool ranks_claim(struct ranks *r) {
    char byte;
    return r->supervised ? read(r->token, &byte, 1) == 1 : rendezvous_claim(r->job);
}

/* Ends this process, when it has finished its files. */
static void leave(struct ranks *r) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HOLD_SECONDS;
    (void)pthread_mutex_timedlock(&r->holds, &until);
    _exit(1);
}

/* Gives the others time to try for the claim and miss it. */
static void linger(void) {
    const struct timespec pause = {.tv_nsec = 300000000};
    nanosleep(&pause, NULL);
}

static void report_death(struct ranks *r, int who) {
    atomic_store(&r->ending, true);
    bool first = !r->supervised && ranks_claim(r); /* else the launcher says it */
    if (first) {
        int doing = r->board != NULL ? who : r->rank;
        const char *phase = r->board != NULL ? r->board->phases[doing] : "";
        fprintf(stderr,
                "%s: rank %d of %d has ended without a message%s%s: the other ranks end, too\n",
                r->program, who, r->count, phase[0] != '\0' ? " while " : "", phase);
    }
    if (r->rank == 0) {
        ranks_say(r, RANKS_STOP);
    }
    if (first) {
        linger();
    }
    leave(r);
}

/* A word of rank `who`, or its end. @return whether there is more to come from it */
static bool hear(struct ranks *r, int who) {
    char word = 0;
    if (!rendezvous_receive(r->sockets.of[RENDEZVOUS_WATCH][who], &word, 1)) {
        report_death(r, who);
    }
    if (word == RANKS_BYE) {
        atomic_store(&r->may_leave, true);
    }
    if (word == RANKS_FAILED || word == RANKS_STOP) {
        atomic_store(&r->ending, true);
        if (r->rank == 0) {
            ranks_say(r, RANKS_STOP);
        }
        leave(r);
    }
    return false; /* it has done its work */
}

static void *watch(void *context) {
    struct ranks *r = context;
    struct pollfd sockets[RANKS_MOST + 1];
    for (int i = 0; i < RANKS_MOST; i++) {
        sockets[i] = (struct pollfd){.fd = r->sockets.of[RENDEZVOUS_WATCH][i], .events = POLLIN};
    }
    sockets[RANKS_MOST] = (struct pollfd){.fd = r->wake[0], .events = POLLIN};
    while (poll(sockets, RANKS_MOST + 1, -1) >= 0 || errno == EINTR) {
        for (int i = 0; i < RANKS_MOST; i++) {
            if (sockets[i].fd >= 0 && sockets[i].revents != 0 && !hear(r, i)) {
                sockets[i].fd = -1;
            }
        }
        if (sockets[RANKS_MOST].revents != 0) {
            break;
        }
    }
    return NULL;
}

enum status ranks_watch(struct ranks *r, struct error *error) {
    sigset_t all, before;
    if (pipe2(r->wake, O_CLOEXEC) != 0) {
        r->wake[0] = r->wake[1] = -1;
        return error_set(error, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    }
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r->watching = pthread_create(&r->watcher, NULL, watch, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->watching
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "cannot start a thread that watches");
}

void ranks_watch_end(struct ranks *r) {
    if (r->watching) {
        close(r->wake[1]);
        pthread_join(r->watcher, NULL);
        close(r->wake[0]);
        r->watching = false;
    }
}
