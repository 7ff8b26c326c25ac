#include "common/ranks/processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/terminal.h"
#include "common/ranks/processes_internal.h"
#include "common/ranks/started.h"

/* ---- Starting ---- */

struct ranks_board *ranks_board_map(int file) {
    int flags = file >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
    void *memory = mmap(NULL, sizeof(struct ranks_board), PROT_READ | PROT_WRITE, flags, file, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

/* A byte with a descriptor beside it. */
static bool send_file(int socket, int file) {
    char byte = 'm';
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &file, sizeof file);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static int receive_file(int socket) {
    char byte;
    int file = -1;
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1) {
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
            memcpy(&file, CMSG_DATA(header), sizeof file);
        }
    }
    return file;
}

static bool is_local(int socket) {
    struct sockaddr_storage name;
    socklen_t bytes = sizeof name;
    return getsockname(socket, (struct sockaddr *)&name, &bytes) == 0 && name.ss_family == AF_UNIX;
}

static int make_board_file(void) {
    int file = memfd_create("warpbook-ranks", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, sizeof(struct ranks_board)) != 0) {
        close(file);
        file = -1;
    }
    return file;
}

/* Rank 0 hands its shared memory to all; it has no name that could stay behind. */
static enum status share_board(struct ranks *r, struct error *error) {
    const int *talk = r->sockets.of[RENDEZVOUS_TALK];
    if (!is_local(talk[r->rank == 0 ? 1 : 0])) {
        return STATUS_OK;
    }
    int file = r->rank == 0 ? make_board_file() : receive_file(talk[0]);
    bool sent = file >= 0;
    for (int i = 1; i < r->count && r->rank == 0 && sent; i++) {
        sent = send_file(talk[i], file);
    }
    r->board = file >= 0 ? ranks_board_map(file) : NULL;
    if (file >= 0) {
        close(file);
    }
    return sent && r->board != NULL
               ? STATUS_OK
               : error_set(error, STATUS_IO,
                           "the ranks of this host cannot share memory; has one of them ended?");
}

static enum status check_count(int gpus, const struct started *s, struct error *error) {
    if (gpus < 1 || gpus > RANKS_MOST) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--gpus %d: from 1 to %d", gpus,
                         RANKS_MOST);
    }
    if (s->by != NULL && gpus > 1 && gpus != s->count) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--gpus %d: %s has started %d processes; start one for each GPU: %s -n %d",
                         gpus, s->by, s->count, s->by, gpus);
    }
    return STATUS_OK;
}

static enum status meet(struct ranks *r, const struct started *s, struct error *error) {
    r->rank = s->rank;
    r->local = s->local;
    const char *place = getenv("WARPBOOK_RENDEZVOUS"); /* where they meet is their name, too */
    snprintf(r->job, sizeof r->job, "%s", place != NULL && place[0] != '\0' ? place : s->job);
    TRY(rendezvous_meet(&r->sockets, r->rank, r->count, r->job, error));
    return share_board(r, error);
}

static enum status start(struct ranks *r, const struct started *s, struct error *error) {
    TRY(s->by != NULL ? meet(r, s, error) : ranks_fork(r, error));
    return r->launches ? STATUS_OK : ranks_watch(r, error);
}

enum status ranks_start(struct ranks **ranks, const char *program, int gpus, struct error *error) {
    struct started started;
    *ranks = NULL;
    TRY(started_read(&started, error));
    TRY(check_count(gpus, &started, error));
    if (gpus == 1) {
        return STATUS_OK;
    }
    struct ranks *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the ranks");
    }
    r->program = program;
    r->count = gpus;
    r->token = r->wake[0] = r->wake[1] = -1;
    pthread_mutex_init(&r->holds, NULL);
    rendezvous_none(&r->sockets);
    enum status status = start(r, &started, error);
    if (status != STATUS_OK) {
        ranks_free(r);
        return status;
    }
    *ranks = r;
    return STATUS_OK;
}

void ranks_free(struct ranks *r) {
    ranks_watch_end(r);
    rendezvous_close(&r->sockets);
    if (r->token >= 0) {
        close(r->token);
    }
    if (r->board != NULL) {
        munmap(r->board, sizeof *r->board);
    }
    pthread_mutex_destroy(&r->holds);
    free(r);
}

/* ---- What a rank knows ---- */

bool ranks_launches(const struct ranks *r) {
    return r != NULL && r->launches;
}

int ranks_rank(const struct ranks *r) {
    return r != NULL ? r->rank : 0;
}

int ranks_count(const struct ranks *r) {
    return r != NULL ? r->count : 1;
}

int ranks_local(const struct ranks *r) {
    return r != NULL ? r->local : 0;
}

void ranks_phase(struct ranks *r, const char *phase) {
    if (r != NULL && r->board != NULL) {
        snprintf(r->board->phases[r->rank], sizeof r->board->phases[0], "%s", phase);
    }
}

void ranks_hold(struct ranks *r) {
    if (r != NULL) {
        pthread_mutex_lock(&r->holds);
    }
}

void ranks_release(struct ranks *r) {
    if (r != NULL) {
        pthread_mutex_unlock(&r->holds);
    }
}

/* ---- Gathering ---- */

struct header {
    uint32_t calls, failed;
    uint64_t bytes;
};

static enum status gone(int who, struct error *error) {
    return error_set(error, STATUS_IO, "rank %d has gone", who);
}

/* Rank 0: what rank `from` gives. */
static enum status collect(struct ranks *r, int from, size_t bytes, char *to, struct error *error) {
    struct header header;
    int socket = r->sockets.of[RENDEZVOUS_TALK][from];
    if (!rendezvous_receive(socket, &header, sizeof header)) {
        return gone(from, error);
    }
    if (header.calls != r->calls || header.bytes != bytes) {
        return error_set(error, STATUS_MISMATCH,
                         "rank %d gives %zu bytes in its call %u, rank 0 %zu in its call %u: all "
                         "ranks must make the same calls",
                         from, (size_t)header.bytes, header.calls, bytes, r->calls);
    }
    return rendezvous_receive(socket, to, bytes) ? STATUS_OK : gone(from, error);
}

static enum status gather_at_hub(struct ranks *r, const void *mine, size_t bytes, char *all,
                                 struct error *error) {
    if (bytes > 0) {
        memcpy(all, mine, bytes);
    }
    for (int i = 1; i < r->count; i++) {
        TRY(collect(r, i, bytes, all + (size_t)i * bytes, error));
    }
    for (int i = 1; i < r->count; i++) {
        if (!rendezvous_send(r->sockets.of[RENDEZVOUS_TALK][i], all,
                             (size_t)r->count * bytes + 1)) {
            return gone(i, error);
        }
    }
    return STATUS_OK;
}

static enum status gather_at_spoke(struct ranks *r, const void *mine, size_t bytes, void *all,
                                   struct error *error) {
    const struct header header = {.calls = r->calls, .bytes = bytes};
    int socket = r->sockets.of[RENDEZVOUS_TALK][0];
    return rendezvous_send(socket, &header, sizeof header) &&
                   rendezvous_send(socket, mine, bytes) &&
                   rendezvous_receive(socket, all, (size_t)r->count * bytes + 1)
               ? STATUS_OK
               : gone(0, error);
}

/* One byte more than what is gathered, so that a barrier has an answer, too. */
static enum status gather(struct ranks *r, const void *mine, size_t bytes, void *all,
                          struct error *error) {
    size_t whole = (size_t)r->count * bytes;
    char *room = calloc(whole + 1, 1);
    if (room == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for what the ranks gather");
    }
    enum status status = r->rank == 0 ? gather_at_hub(r, mine, bytes, room, error)
                                      : gather_at_spoke(r, mine, bytes, room, error);
    if (status == STATUS_OK && bytes > 0) {
        memcpy(all, room, whole);
    }
    free(room);
    return status;
}

enum status ranks_all_gather(struct ranks *r, const void *mine, size_t bytes, void *all,
                             struct error *error) {
    if (r == NULL) {
        if (bytes > 0) {
            memcpy(all, mine, bytes);
        }
        return STATUS_OK;
    }
    r->calls++;
    return gather(r, mine, bytes, all, error);
}

/* A text's beginning, for messages, and a checksum of all of it. */
struct digest {
    uint64_t sum;
    char text[160];
};

enum status ranks_compare(struct ranks *r, const char *what, const char *text,
                          struct error *error) {
    struct digest mine = {.sum = checksum_bytes(text, strlen(text))}, all[RANKS_MOST];
    snprintf(mine.text, sizeof mine.text, "%s", text);
    TRY(ranks_all_gather(r, &mine, sizeof mine, all, error));
    for (int i = 1; i < ranks_count(r); i++) {
        if (all[i].sum != all[0].sum) {
            return error_set(error, STATUS_MISMATCH,
                             "%s must be the same on all ranks: rank 0 has %s, rank %d has %s",
                             what, all[0].text, i, all[i].text);
        }
    }
    return STATUS_OK;
}

enum status ranks_largest(struct ranks *r, uint32_t *value, struct error *error) {
    uint32_t all[RANKS_MOST];
    TRY(ranks_all_gather(r, value, sizeof *value, all, error));
    for (int i = 0; i < ranks_count(r); i++) {
        *value = all[i] > *value ? all[i] : *value;
    }
    return STATUS_OK;
}

/* ---- The end ---- */

static void pause_ms(long ms) {
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Until the watcher ends this process, which another rank's end has caused. */
static void await_end(void) {
    pause_ms(20000);
    _exit(1);
}

/* The error may come from another rank's death, which the watcher sees a moment later. What all
 * ranks find wrong is rank 0's to say. */
static void look_for_cause(struct ranks *r, enum status status) {
    bool may_follow = status == STATUS_DEVICE || status == STATUS_IO;
    int tens = (may_follow ? 50 : 0) + (r->rank != 0 ? 30 : 0);
    for (int i = 0; i < tens && !atomic_load(&r->ending); i++) {
        pause_ms(10);
    }
}

static void fail(struct ranks *r, const char *program, const struct error *error,
                 enum status status) {
    look_for_cause(r, status);
    if (atomic_load(&r->ending) || !ranks_claim(r)) {
        await_end();
    }
    struct error whole = {.status = status};
    snprintf(whole.message, sizeof whole.message, "rank %d of %d: %s", r->rank, r->count,
             error_text(error, status));
    fflush(stdout);
    report_failure(program, r->rank == 0 ? error : &whole, status);
    ranks_say(r, r->rank == 0 ? RANKS_STOP : RANKS_FAILED);
    pause_ms(300);
    _exit(1);
}

/* All have done their work: rank 0 leaves last. */
static void part(struct ranks *r, enum status met) {
    if (met != STATUS_OK) {
        await_end();
    }
    if (r->rank != 0) {
        ranks_say(r, RANKS_DONE);
        for (int i = 0; i < 500 && !atomic_load(&r->may_leave); i++) {
            pause_ms(2);
        }
        return;
    }
    ranks_say(r, RANKS_BYE);
}

int ranks_end(struct ranks *r, const char *program, const struct error *error, enum status status,
              int number) {
    bool well = status == STATUS_OK || status == STATUS_INTERRUPTED;
    if (!well && r != NULL) {
        fail(r, program, error, status);
    }
    uint32_t signal_ = (uint32_t)number; /* only some ranks have seen it */
    enum status met = ranks_largest(r, &signal_, NULL);
    if (r != NULL) {
        part(r, met);
    }
    bool says = status != STATUS_OK && (status != STATUS_INTERRUPTED || error->message[0] != '\0');
    if (says && ranks_rank(r) == 0) {
        report_failure(program, error, status);
    }
    if (r != NULL) {
        ranks_free(r);
    }
    return status == STATUS_OK ? 0 : status == STATUS_INTERRUPTED ? 128 + (int)signal_ : 1;
}
