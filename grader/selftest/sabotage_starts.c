/* Row 28: code that runs before the first call, and after the last. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grader/isolation/message.h"
#include "grader/selftest/sabotage.h"

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

const struct sabotage sabotage_starts[] = {{"exits_at_start", nothing},
                                           {"crashes_at_start", nothing},
                                           {"hangs_at_start", nothing},
                                           {"closes_channel", nothing},
                                           {"claims_at_exit", nothing},
                                           {"exits", exits},
                                           {0}};
