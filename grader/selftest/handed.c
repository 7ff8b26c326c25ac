/*
 * Row 41: a submission that was handed everything. hand_over.c sends it the numbers of all
 * processes and addresses in the device; channel, arena and connection are descriptors of its own.
 * It tries each on all of them, and does what was asked for, honestly and slowly.
 */
#include "grader/selftest/handed.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "common/simt/runtime/remote/numbers.h"
#include "common/simt/runtime/remote/packet.h"
#include "grader/isolation/message.h"
#include "grader/selftest/honest_ways.h"

enum { MOST = 32 };

/* What was handed over; a process has one submission. */
static struct {
    pid_t processes[MOST];
    uintptr_t addresses[MOST];
    size_t process_count, address_count;
    bool all;
} handed;

static sigset_t signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, HANDED_PROCESS);
    sigaddset(&set, HANDED_ADDRESS);
    sigaddset(&set, HANDED_ALL);
    return set;
}

/* Before main(): none of them may end this process. */
__attribute__((constructor)) static void wait_for_signals(void) {
    const char *name = getenv("WRONG_SABOTAGE");
    if (name != NULL && strncmp(name, "handed_", 7) == 0) {
        const sigset_t set = signals();
        sigprocmask(SIG_BLOCK, &set, NULL);
    }
}

static void note(const siginfo_t *info) {
    if (info->si_signo == HANDED_PROCESS && handed.process_count < MOST) {
        handed.processes[handed.process_count++] = (pid_t)info->si_value.sival_int;
    } else if (info->si_signo == HANDED_ADDRESS && handed.address_count < MOST) {
        handed.addresses[handed.address_count++] = (uintptr_t)info->si_value.sival_ptr;
    }
    handed.all = handed.all || info->si_signo == HANDED_ALL;
}

/* Once. @return false, with a line, when nothing comes */
static enum status take(struct error *error) {
    const struct timespec patience = {20, 0};
    const sigset_t set = signals();
    siginfo_t info;
    while (!handed.all && sigtimedwait(&set, &info, &patience) > 0) {
        note(&info);
    }
    return handed.all && handed.process_count >= 4 && handed.address_count > 0
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH, "nothing was handed over");
}

/* Something that a process was reached by: no test may see this. */
static enum status reached(struct error *error, const char *by) {
    return error_set(error, STATUS_MISMATCH, "another process was reached by %s", by);
}

typedef bool reach_function(pid_t process);

/* Tries it on each process in each call; `true` of it means that it worked. */
static enum status on_all(reach_function *reach, const char *by, struct error *error) {
    TRY(take(error));
    for (size_t i = 0; i < handed.process_count; i++) {
        if (reach(handed.processes[i])) {
            return reached(error, by);
        }
    }
    return STATUS_OK;
}

#define HANDED(name, expression)                     \
    static bool name##_reaches(pid_t process) {      \
        return (expression) >= 0;                    \
    }                                                \
    static enum status name(struct error *error) {   \
        return on_all(name##_reaches, #name, error); \
    }

static ssize_t move_memory(pid_t process, bool write) {
    static double zeros[8];
    const struct iovec own = {zeros, sizeof zeros};
    ssize_t moved = -1;
    for (size_t i = 0; i < handed.address_count && moved < 0; i++) {
        const struct iovec there = {(void *)handed.addresses[i], sizeof zeros};
        moved = write ? process_vm_writev(process, &own, 1, &there, 1, 0)
                      : process_vm_readv(process, &own, 1, &there, 1, 0);
    }
    return moved;
}

static int open_any(pid_t process) {
    static const char *const names[] = {"mem",           "maps",      "fd/3", "fd/4",
                                        "environ",       "root",      "cwd",  "oom_score_adj",
                                        "timerslack_ns", "clear_refs"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)process, names[i]);
        if (open(path, O_RDWR) >= 0 || open(path, O_RDONLY) >= 0) {
            return 0;
        }
    }
    return -1;
}

static int use_one_processor(pid_t process) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    return sched_setaffinity(process, sizeof one, &one);
}

static int make_idle(pid_t process) {
    const struct sched_param none = {0};
    return sched_setscheduler(process, SCHED_IDLE, &none);
}

/* Whoever is nicer gets less of a processor; 0 stands for all of this user's, or this group's. */
static int make_nice(pid_t process) {
    bool one = setpriority(PRIO_PROCESS, (id_t)process, 19) == 0;
    bool group = setpriority(PRIO_PGRP, (id_t)process, 19) == 0;
    bool user = setpriority(PRIO_USER, 0, 19) == 0 || setpriority(PRIO_USER, getuid(), 19) == 0;
    return one || group || user ? 0 : -1;
}

static const struct rlimit no_time = {0, 0};

HANDED(stops, kill(process, SIGSTOP))
HANDED(ends, kill(process, SIGKILL))
HANDED(stops_group, kill(-process, SIGSTOP))
HANDED(stops_thread, syscall(SYS_tgkill, process, process, SIGSTOP))
HANDED(queues, sigqueue(process, SIGSTOP, (union sigval){0}))
HANDED(traces, ptrace(PTRACE_SEIZE, process, NULL, NULL))
HANDED(writes, move_memory(process, true))
HANDED(reads, move_memory(process, false))
HANDED(takes_descriptors, syscall(SYS_pidfd_open, process, 0))
HANDED(limits, syscall(SYS_prlimit64, process, RLIMIT_CPU, &no_time, NULL))
HANDED(opens, open_any(process))
HANDED(processors, use_one_processor(process))
HANDED(idles, make_idle(process))
HANDED(priorities, make_nice(process))

/* ---- Memory and descriptors of its own, which others have, too ---- */

/* The arena's pages: thrown away, closed and opened again, and cut out of the file. */
static enum status pages(struct error *error) {
    const off_t end = lseek(WORKER_ARENA, 0, SEEK_END);
    const size_t bytes = (size_t)end;
    TRY(take(error));
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, WORKER_ARENA, 0);
    if (pages == MAP_FAILED) {
        return error_set(error, STATUS_IO, "the arena cannot be mapped");
    }
    (void)madvise(pages, bytes, MADV_REMOVE);
    (void)madvise(pages, bytes, MADV_DONTNEED);
    (void)madvise(pages, bytes, MADV_COLD);
    (void)mprotect(pages, bytes, PROT_NONE);
    (void)munmap(pages, bytes);
    (void)fallocate(WORKER_ARENA, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, end);
    return ftruncate(WORKER_ARENA, 0) == 0 || fcntl(WORKER_ARENA, F_ADD_SEALS, F_SEAL_WRITE) == 0
               ? reached(error, "the arena's file")
               : STATUS_OK;
}

/* Each setting that simt knows, and what else an environment can say. */
static enum status settings(struct error *error) {
    static const char *const settings[] = {"SIMT_CHECK=off", "SIMT_GPU=b200",   "SIMT_THREADS=1",
                                           "SIMT_SEED=1",    "SIMT_DEVICE=3",   "SIMT_BLOCKS=1",
                                           "LD_PRELOAD=x",   "WARPBOOK_SEED=1", "WARPBOOK_CALLS=1"};
    TRY(take(error));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        putenv((char *)(uintptr_t)settings[i]);
    }
    return STATUS_OK;
}

/* An answer to a question that was not asked yet, and packets that are none. */
static enum status channel(struct error *error) {
    static struct message forged = {.kind = MESSAGE_CALL, .ms = 1e-6};
    TRY(take(error));
    for (uint64_t number = 0; number < 4; number++) {
        forged.number = number;
        enum status status = message_send(WORKER_CHANNEL, &forged);
        (void)status;
    }
    return STATUS_OK;
}

/* As much as the channel holds. */
static enum status flood(struct error *error) {
    static char packet[4096];
    TRY(take(error));
    while (send(WORKER_CHANNEL, packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    return STATUS_OK;
}

/* Questions to the device, whose answers nobody takes: it must not wait for that for ever. */
static enum status questions(struct error *error) {
    static struct packet packet;
    TRY(take(error));
    packet_begin(&packet, PACKET_CALL);
    packet.call = CALL_cudaDeviceSynchronize;
    fcntl(WORKER_DEVICE, F_SETFL, O_NONBLOCK);
    while (packet_send(WORKER_DEVICE, &packet, NULL) == STATUS_OK) {
    }
    return STATUS_OK;
}

/* Closes its ends, or sends nothing any more. */
static enum status ends_connection(struct error *error) {
    TRY(take(error));
    (void)shutdown(WORKER_DEVICE, SHUT_RDWR);
    (void)close(WORKER_ARENA);
    return STATUS_OK;
}

/* ---- Which of them ---- */

typedef enum status trick_function(struct error *error);

#define BEFORE(name) \
    { "handed_" #name, name, NULL }
#define BEHIND(name) \
    { "handed_" #name, NULL, name }

static const struct trick {
    const char *name;
    trick_function *before, *behind; /* the work; NULL: nothing */
} tricks[] = {
    {"handed_nothing", NULL, NULL},
    BEFORE(stops),
    BEFORE(ends),
    BEFORE(stops_group),
    BEFORE(stops_thread),
    BEFORE(queues),
    BEFORE(traces),
    BEFORE(writes),
    BEFORE(reads),
    BEFORE(takes_descriptors),
    BEFORE(limits),
    BEFORE(opens),
    BEFORE(processors),
    BEFORE(idles),
    BEFORE(priorities),
    BEFORE(pages),
    BEFORE(settings),
    BEHIND(channel),
    BEFORE(flood),
    BEHIND(questions),
    BEFORE(ends_connection),
};

enum status honest_around(honest_work *work, const void *arguments, device_stream stream,
                          bool moves, struct error *error) {
    const char *name = getenv("WRONG_SABOTAGE");
    (void)moves;
    for (size_t i = 0; name != NULL && i < sizeof tricks / sizeof *tricks; i++) {
        if (strcmp(name, tricks[i].name) == 0) {
            TRY(tricks[i].before != NULL ? tricks[i].before(error) : STATUS_OK);
            TRY(work(arguments, stream, error));
            return tricks[i].behind != NULL ? tricks[i].behind(error) : STATUS_OK;
        }
    }
    abort();
}
