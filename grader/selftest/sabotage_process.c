/* Rows 27 to 29: what would stop the grader or the machine, and code that runs before the first
 * call and after the last. The sandbox refuses it. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "grader/isolation/message.h"
#include "grader/selftest/sabotage.h"

/* ---- Rows 27 and 29: what would stop the grader, or the machine ---- */

static enum status loops(const struct sabotage_call *call, struct error *error) {
    (void)call;
    (void)error;
    for (volatile size_t i = 0; i < SIZE_MAX; i++) {
    }
    return STATUS_OK;
}

static enum status forks(const struct sabotage_call *call, struct error *error) {
    (void)call;
    while (fork() >= 0) {
    }
    return error_set(error, STATUS_UNSUPPORTED, "no more processes");
}

/* 100 GiB, touched from the beginning, on a machine that promises more than it has. */
static enum status takes_memory(const struct sabotage_call *call, struct error *error) {
    const size_t bytes = (size_t)100 << 30, page = 4096;
    volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    (void)call;
    for (size_t i = 0; memory != MAP_FAILED && i < bytes; i += page) {
        memory[i] = 1;
    }
    return error_set(error, STATUS_OUT_OF_MEMORY, "no 100 GiB");
}

static enum status fills_disk(const struct sabotage_call *call, struct error *error) {
    static char block[1 << 20];
    FILE *file = fopen("large", "w");
    (void)call;
    while (file != NULL && fwrite(block, sizeof block, 1, file) == 1) {
        fflush(file);
    }
    return error_set(error, STATUS_IO, "cannot fill the disk");
}

static enum status writes_for_ever(const struct sabotage_call *call, struct error *error) {
    (void)call;
    while (puts("again and again and again") >= 0) {
    }
    return error_set(error, STATUS_IO, "nobody reads");
}

static enum status kills_parent(const struct sabotage_call *call, struct error *error) {
    (void)error;
    kill(getppid(), SIGKILL);
    return sabotage_right(call, error);
}

static enum status kills_group(const struct sabotage_call *call, struct error *error) {
    (void)error;
    kill(0, SIGKILL);
    return sabotage_right(call, error);
}

static void leave(int signal) {
    (void)signal;
    _exit(0);
}

/* Row 27: a crash that looks like success to whoever asks only for the exit status. */
static enum status hides_crash(const struct sabotage_call *call, struct error *error) {
    (void)call;
    (void)error;
    signal(SIGSEGV, leave);
    raise(SIGSEGV);
    return STATUS_OK;
}

static enum status crashes(const struct sabotage_call *call, struct error *error) {
    volatile int *nowhere = NULL;
    (void)call;
    (void)error;
    *nowhere = 1;
    return STATUS_OK;
}

/* ---- Row 28: code that runs before the first call, and after the last ---- */

static void claim(void) {
    printf("[  PASSED  ] 10 tests.\n");
    fflush(stdout);
    _exit(0);
}

static bool is(const char *name) {
    const char *chosen = getenv("WRONG_SABOTAGE");
    return chosen != NULL && strcmp(chosen, name) == 0;
}

__attribute__((constructor)) static void begin(void) {
    if (is("exits_at_start")) {
        claim();
    } else if (is("crashes_at_start")) {
        raise(SIGSEGV);
    } else if (is("hangs_at_start")) {
        for (;;) {
            pause();
        }
    } else if (is("closes_channel")) {
        close(WORKER_CHANNEL);
    } else if (is("claims_at_exit")) {
        atexit(claim);
    }
}

/* Computes nothing, and hopes that the end of the process makes up for it. */
static enum status nothing(const struct sabotage_call *call, struct error *error) {
    (void)call;
    (void)error;
    return STATUS_OK;
}

/* Leaves in the middle of a call. */
static enum status exits(const struct sabotage_call *call, struct error *error) {
    (void)call;
    (void)error;
    exit(0);
}

const struct sabotage sabotage_process[] = {SABOTAGE(loops),
                                            SABOTAGE(forks),
                                            SABOTAGE(takes_memory),
                                            SABOTAGE(fills_disk),
                                            SABOTAGE(writes_for_ever),
                                            SABOTAGE(kills_parent),
                                            SABOTAGE(kills_group),
                                            SABOTAGE(hides_crash),
                                            SABOTAGE(crashes),
                                            {"exits_at_start", nothing},
                                            {"crashes_at_start", nothing},
                                            {"hangs_at_start", nothing},
                                            {"closes_channel", nothing},
                                            {"claims_at_exit", nothing},
                                            SABOTAGE(exits),
                                            {0}};
