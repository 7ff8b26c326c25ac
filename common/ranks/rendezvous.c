#include "common/ranks/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/version.h"

/* ---- Sockets ---- */

void rendezvous_none(struct rendezvous_sockets *sockets) {
    for (int c = 0; c < RENDEZVOUS_CHANNELS; c++) {
        for (int r = 0; r < RANKS_MOST; r++) {
            sockets->of[c][r] = -1;
        }
    }
}

void rendezvous_close(struct rendezvous_sockets *sockets) {
    for (int c = 0; c < RENDEZVOUS_CHANNELS; c++) {
        for (int r = 0; r < RANKS_MOST; r++) {
            if (sockets->of[c][r] >= 0) {
                close(sockets->of[c][r]);
            }
        }
    }
    rendezvous_none(sockets);
}

bool rendezvous_send(int socket, const void *data, size_t bytes) {
    const char *from = data;
    while (bytes > 0) {
        ssize_t sent = send(socket, from, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        from += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

bool rendezvous_receive(int socket, void *data, size_t bytes) {
    char *to = data;
    while (bytes > 0) {
        ssize_t got = recv(socket, to, bytes, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* ---- The address ---- */

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_storage room;
    } at;
    socklen_t bytes;
    const char *path; /* a socket in the file system, or NULL */
    char text[160];   /* for messages */
};

/* An abstract name: nothing is left of it when its last process ends. */
static void make_abstract(struct address *a, const char *what, const char *job) {
    char name[sizeof a->at.local.sun_path - 1];
    snprintf(name, sizeof name, "warpbook-%s-%ld-%.64s", what, (long)getuid(), job);
    a->at.local = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->at.local.sun_path + 1, name, strlen(name));
    a->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    snprintf(a->text, sizeof a->text, "@%.150s", name);
}

static enum status make_path(struct address *a, const char *path, struct error *error) {
    if (strlen(path) >= sizeof a->at.local.sun_path) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "WARPBOOK_RENDEZVOUS: the path of a socket has at most %zu bytes",
                         sizeof a->at.local.sun_path - 1);
    }
    a->at.local = (struct sockaddr_un){.sun_family = AF_UNIX};
    strcpy(a->at.local.sun_path, path);
    a->bytes = sizeof a->at.local;
    a->path = path;
    snprintf(a->text, sizeof a->text, "%.150s", path);
    return STATUS_OK;
}

static enum status make_tcp(struct address *a, const char *value, struct error *error) {
    char host[128];
    const char *colon = strrchr(value, ':');
    if (colon == NULL || colon == value || colon[1] == '\0' ||
        (size_t)(colon - value) >= sizeof host) {
        return error_set(
            error, STATUS_INVALID_ARGUMENT,
            "WARPBOOK_RENDEZVOUS is '%.80s': HOST:PORT or the path of a socket is needed", value);
    }
    snprintf(host, sizeof host, "%.*s", (int)(colon - value), value);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, colon + 1, &hints, &found);
    if (code != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "WARPBOOK_RENDEZVOUS is '%.80s': %s",
                         value, gai_strerror(code));
    }
    memcpy(&a->at.room, found->ai_addr, found->ai_addrlen);
    a->bytes = found->ai_addrlen;
    freeaddrinfo(found);
    snprintf(a->text, sizeof a->text, "%.150s", value);
    return STATUS_OK;
}

static enum status make_address(struct address *a, const char *job, struct error *error) {
    const char *value = getenv("WARPBOOK_RENDEZVOUS");
    *a = (struct address){.bytes = 0};
    if (value == NULL || value[0] == '\0') {
        make_abstract(a, "ranks", job);
        return STATUS_OK;
    }
    return value[0] == '/' ? make_path(a, value, error) : make_tcp(a, value, error);
}

bool rendezvous_claim(const char *job) {
    struct address a = {.bytes = 0};
    make_abstract(&a, "report", job);
    int socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return socket_ < 0 || bind(socket_, &a.at.any, a.bytes) == 0; /* held until the process ends */
}

/* ---- Meeting ---- */

/* The first message of each connection. */
struct hello {
    char magic[8];
    uint64_t job;
    int32_t rank, count, channel, padding;
};

static const char MAGIC[8] = "wbranks1";

static struct hello hello_of(int rank, int count, int channel, const char *job) {
    struct hello hello = {
        .job = checksum_bytes(job, strlen(job)), .rank = rank, .count = count, .channel = channel};
    memcpy(hello.magic, MAGIC, sizeof MAGIC);
    return hello;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum status read_patience(double *patience, struct error *error) {
    const char *value = getenv("WARPBOOK_RENDEZVOUS_SECONDS");
    char *end = NULL;
    *patience = value != NULL ? strtod(value, &end) : 9.0;
    if (value != NULL && (end == value || *end != '\0' || !(*patience > 0.0 && *patience <= 1e6))) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "WARPBOOK_RENDEZVOUS_SECONDS is '%.40s': seconds above 0 are needed",
                         value);
    }
    return STATUS_OK;
}

/* A connection of another user, or of another program, is closed; the ranks go on waiting. */
static bool is_own(int socket, bool local) {
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return !local || (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
                      peer.uid == getuid());
}

/* @return whether the connection is one of the job's; places it, or sets the error */
static bool take(struct rendezvous_sockets *sockets, int socket, const struct hello *want,
                 struct error *error) {
    const struct timeval patience = {.tv_sec = 2}, none = {.tv_sec = 0};
    struct hello hello;
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool good = rendezvous_receive(socket, &hello, sizeof hello) &&
                memcmp(hello.magic, MAGIC, sizeof MAGIC) == 0 && hello.job == want->job;
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    if (!good) {
        return false;
    }
    bool fits = hello.rank > 0 && hello.rank < want->count && hello.channel >= 0 &&
                hello.channel < RENDEZVOUS_CHANNELS;
    if (hello.count != want->count) {
        error_set(error, STATUS_INVALID_ARGUMENT,
                  "rank %d was started for %d GPUs, rank 0 for %d: give all ranks the same --gpus",
                  (int)hello.rank, (int)hello.count, (int)want->count);
    } else if (!fits || sockets->of[hello.channel][hello.rank] >= 0) {
        error_set(error, STATUS_INVALID_ARGUMENT, "two processes say that they are rank %d of %d",
                  (int)hello.rank, (int)hello.count);
    } else {
        sockets->of[hello.channel][hello.rank] = socket;
        return true;
    }
    return false;
}

/* Names the ranks that have not come. @return their number */
static int name_missing(const struct rendezvous_sockets *sockets, int count, char list[80]) {
    int missing = 0;
    list[0] = '\0';
    for (int r = 1; r < count; r++) {
        if (sockets->of[RENDEZVOUS_TALK][r] < 0 || sockets->of[RENDEZVOUS_WATCH][r] < 0) {
            size_t used = strlen(list);
            snprintf(list + used, 80 - used, "%s%d", missing++ > 0 ? ", " : "", r);
        }
    }
    return missing;
}

static enum status accept_all(struct rendezvous_sockets *sockets, int listener,
                              const struct hello *want, bool local, double patience,
                              struct error *error) {
    double end = seconds() + patience;
    char list[80];
    while (name_missing(sockets, want->count, list) > 0) {
        struct pollfd poll_ = {.fd = listener, .events = POLLIN};
        double left = end - seconds();
        if (left <= 0.0) {
            return error_set(error, STATUS_IO, "of %d ranks, these did not come within %g s: %s",
                             want->count, patience, list);
        }
        if (poll(&poll_, 1, (int)(left * 1000.0) + 1) <= 0) {
            continue;
        }
        int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (socket < 0) {
            continue;
        }
        struct error wrong = {0};
        if (!is_own(socket, local) || !take(sockets, socket, want, &wrong)) {
            close(socket);
            if (wrong.status != STATUS_OK) {
                return error_set(error, wrong.status, "%s", wrong.message);
            }
        }
    }
    return STATUS_OK;
}

static enum status serve(struct rendezvous_sockets *sockets, const struct address *a,
                         const struct hello *want, double patience, struct error *error) {
    const int yes = 1;
    int family = a->at.any.sa_family;
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener < 0 || bind(listener, &a->at.any, a->bytes) != 0 ||
        listen(listener, 2 * RANKS_MOST) != 0) {
        enum status status = error_set(
            error, STATUS_IO, "the ranks cannot meet at %s: %s%s", a->text, strerror(errno),
            errno == EADDRINUSE ? ": another job is there; a socket of a killed one must be removed"
                                : "");
        close(listener);
        return status;
    }
    enum status status = accept_all(sockets, listener, want, family == AF_UNIX, patience, error);
    close(listener);
    if (a->path != NULL) {
        unlink(a->path);
    }
    return status;
}

static int try_connect(const struct address *a) {
    int made = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && connect(made, &a->at.any, a->bytes) != 0) {
        close(made);
        made = -1;
    }
    return made;
}

static enum status join(struct rendezvous_sockets *sockets, const struct address *a, int rank,
                        int count, const char *job, double patience, struct error *error) {
    const struct timespec pause = {.tv_nsec = 20000000};
    double end = seconds() + patience;
    for (int c = 0; c < RENDEZVOUS_CHANNELS; c++) {
        int made = try_connect(a);
        while (made < 0 && seconds() < end) {
            nanosleep(&pause, NULL);
            made = try_connect(a);
        }
        const struct hello hello = hello_of(rank, count, c, job);
        if (made < 0 || !rendezvous_send(made, &hello, sizeof hello)) {
            close(made);
            return error_set(error, STATUS_IO, "rank 0 of %d did not come within %g s, at %s",
                             count, patience, a->text);
        }
        sockets->of[c][0] = made;
    }
    return STATUS_OK;
}

enum status rendezvous_meet(struct rendezvous_sockets *sockets, int rank, int count,
                            const char *job, struct error *error) {
    struct address address;
    double patience = 0.0;
    rendezvous_none(sockets);
    TRY(read_patience(&patience, error));
    TRY(make_address(&address, job, error));
    const struct hello want = hello_of(0, count, 0, job);
    enum status status = rank == 0 ? serve(sockets, &address, &want, patience, error)
                                   : join(sockets, &address, rank, count, job, patience, error);
    if (status != STATUS_OK) {
        rendezvous_close(sockets);
    }
    return status;
}
