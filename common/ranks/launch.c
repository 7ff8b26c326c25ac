/**
 * @file launch.c
 * @brief The launcher of one host: forks a process for each rank, passes signals on to them, and
 *        says which one was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/ranks/processes_internal.h"

enum { GRACE_SECONDS = 8 };

/* The signals that the launcher passes on, and that of a process which ends. */
static sigset_t handled(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* ---- Forking ---- */

/* Both ends of rank 0's connections. */
struct wires {
    struct rendezvous_sockets hub, spoke; /* spoke.of[c][r] is that of rank r */
};

static enum status connect_all(struct wires *wires, int count, struct error *error) {
    rendezvous_none(&wires->hub);
    rendezvous_none(&wires->spoke);
    for (int c = 0; c < RENDEZVOUS_CHANNELS; c++) {
        for (int r = 1; r < count; r++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
                return error_set(error, STATUS_IO, "cannot connect the ranks: %s", strerror(errno));
            }
            wires->hub.of[c][r] = pair[0];
            wires->spoke.of[c][r] = pair[1];
        }
    }
    return STATUS_OK;
}

/* A pipe with one byte. */
static enum status make_token(struct ranks *r, struct error *error) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || write(ends[1], "!", 1) != 1) {
        return error_set(error, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    }
    close(ends[1]);
    r->token = ends[0];
    return STATUS_OK;
}

/* Of all connections a rank keeps its own. */
static void keep_own(struct ranks *r, struct wires *wires) {
    if (r->rank == 0) {
        r->sockets = wires->hub;
        rendezvous_close(&wires->spoke);
        return;
    }
    rendezvous_none(&r->sockets);
    for (int c = 0; c < RENDEZVOUS_CHANNELS; c++) {
        r->sockets.of[c][0] = wires->spoke.of[c][r->rank];
        wires->spoke.of[c][r->rank] = -1;
    }
    rendezvous_close(&wires->spoke);
    rendezvous_close(&wires->hub);
}

/* In a rank that was just forked. If the launcher is killed, the rank gets SIGTERM. */
static void begin_rank(struct ranks *r, int rank, pid_t launcher, struct wires *wires,
                       const sigset_t *before) {
    r->rank = r->local = rank;
    r->launches = false;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    pthread_sigmask(SIG_SETMASK, before, NULL);
    if (getppid() != launcher) {
        _exit(1);
    }
    keep_own(r, wires);
}

/* @return whether this is the launcher, which has forked all ranks */
static enum status fork_all(struct ranks *r, struct wires *wires, struct error *error) {
    const sigset_t set = handled();
    sigset_t before;
    pid_t launcher = getpid();
    fflush(NULL);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    r->launches = true;
    for (int i = 0; i < r->count; i++) {
        r->pids[i] = fork();
        if (r->pids[i] == 0) {
            begin_rank(r, i, launcher, wires, &before);
            return STATUS_OK;
        }
        if (r->pids[i] < 0) {
            enum status status =
                error_set(error, STATUS_IO, "cannot start rank %d: %s", i, strerror(errno));
            for (int j = 0; j < i; j++) {
                kill(r->pids[j], SIGKILL);
                waitpid(r->pids[j], NULL, 0);
            }
            r->launches = false;
            pthread_sigmask(SIG_SETMASK, &before, NULL);
            return status;
        }
    }
    return STATUS_OK;
}

/* The devices that simt emulates are in a process of their own, which all ranks share. On a GPU the
   variable means nothing. */
static enum status share_devices(struct error *error) {
    char name[64];
    const char *value = getenv("SIMT_DEVICE");
    if (value != NULL && value[0] != '\0' && strcmp(value, "inside") != 0) {
        return STATUS_OK;
    }
    snprintf(name, sizeof name, "shared:warpbook-%ld", (long)getpid());
    return setenv("SIMT_DEVICE", name, 1) == 0
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the environment");
}

enum status ranks_fork(struct ranks *r, struct error *error) {
    struct wires wires;
    r->supervised = true;
    TRY(share_devices(error));
    TRY(make_token(r, error));
    r->board = ranks_board_map(-1);
    if (r->board == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for what the ranks share");
    }
    enum status status = connect_all(&wires, r->count, error);
    status = status == STATUS_OK ? fork_all(r, &wires, error) : status;
    if (r->launches || status != STATUS_OK) {
        rendezvous_close(&wires.hub);
        rendezvous_close(&wires.spoke);
    }
    return status;
}

/* ---- Supervising ---- */

/* What the launcher knows while it waits. */
struct supervision {
    int alive;
    int passed;          /* the first signal that it passed on; 0: none */
    bool broken, killed; /* a rank has failed or was killed; the rest was killed by the launcher */
    struct timespec until; /* broken: when the others are killed */
    int first;             /* broken: the rank that ended first */
};

static void signal_all(const struct ranks *r, int number) {
    for (int i = 0; i < r->count; i++) {
        if (!r->ended[i]) {
            kill(r->pids[i], number);
        }
    }
}

/* Says how a rank has ended, unless the user asked for it, or a rank has said why. */
static void report_end(struct ranks *r, const struct supervision *s, int who) {
    int status = r->statuses[who];
    const char *phase = r->board->phases[who];
    const char *during = phase[0] != '\0' ? " while " : "";
    if (WIFSIGNALED(status) && WTERMSIG(status) != s->passed && !s->killed && ranks_claim(r)) {
        fprintf(stderr,
                "%s: rank %d of %d was killed by signal %d (%s)%s%s: the other ranks end, too\n",
                r->program, who, r->count, WTERMSIG(status), strsignal(WTERMSIG(status)), during,
                phase);
    }
}

static bool ended_well(int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) > 128);
}

static void reap(struct ranks *r, struct supervision *s) {
    for (int i = 0; i < r->count; i++) {
        if (r->ended[i] || waitpid(r->pids[i], &r->statuses[i], WNOHANG) != r->pids[i]) {
            continue;
        }
        r->ended[i] = true;
        s->alive--;
        report_end(r, s, i);
        if (!ended_well(r->statuses[i]) && !s->broken) {
            s->broken = true;
            s->first = i;
            clock_gettime(CLOCK_MONOTONIC, &s->until);
            s->until.tv_sec += GRACE_SECONDS;
        }
    }
}

/* A signal for the launcher alone goes to all ranks; one of the terminal has reached them. */
static void pass_on(const struct ranks *r, struct supervision *s, const siginfo_t *info) {
    s->passed = s->passed == 0 ? info->si_signo : s->passed;
    if (info->si_code != SI_KERNEL) {
        signal_all(r, info->si_signo);
    }
}

static void wait_for_signal(struct ranks *r, struct supervision *s) {
    const sigset_t set = handled();
    const struct timespec look = {.tv_nsec = 200000000};
    siginfo_t info;
    if (sigtimedwait(&set, &info, &look) > 0 && info.si_signo != SIGCHLD) {
        pass_on(r, s, &info);
    }
}

static bool is_over(const struct supervision *s) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return s->broken && now.tv_sec >= s->until.tv_sec;
}

/* That of the rank which ended first, else the first that is not 0. */
static int exit_status(const struct ranks *r, const struct supervision *s) {
    for (int i = s->broken ? s->first : 0; i < r->count; i++) {
        int status = r->statuses[i];
        if (WIFSIGNALED(status)) {
            return WTERMSIG(status) == s->passed ? 128 + s->passed : 1;
        }
        if (WEXITSTATUS(status) != 0) {
            return WEXITSTATUS(status);
        }
    }
    return 0;
}

/* A rank that failed has said why, unless a library ended it; or it left while others needed it. */
static void report_silence(struct ranks *r, const struct supervision *s) {
    int who = s->first;
    for (int i = 0; i < r->count && s->broken; i++) {
        who = r->statuses[i] == 0 ? i : who;
    }
    int status = r->statuses[who];
    if (s->broken && WIFEXITED(status) && ranks_claim(r)) {
        fprintf(stderr, "%s: rank %d of %d has ended with exit status %d, before the others\n",
                r->program, who, r->count, WEXITSTATUS(status));
    }
}

int ranks_supervise(struct ranks *r) {
    struct supervision s = {.alive = r->count};
    while (s.alive > 0) {
        wait_for_signal(r, &s);
        reap(r, &s);
        if (is_over(&s)) {
            s.killed = true;
            signal_all(r, SIGKILL);
        }
    }
    report_silence(r, &s);
    int status = exit_status(r, &s);
    ranks_free(r);
    return status;
}
