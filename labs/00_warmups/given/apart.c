/* trial_run(): an exercise in a process of its own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/device/device.h"
#include "labs/00_warmups/given/trial.h"

enum {
    LIMIT_SECONDS = 30, /* an endless kernel on a GPU; simt ends it earlier */
    TICK_MS = 5,
    MOST_OUTPUT = 64 << 20,
};

/* The code that an exercise needs. */
static int least_code(enum exercise_needs needs) {
    if (needs == NEEDS_SM80 || needs == NEEDS_SIMT_SM80) {
        return 80;
    }
    return needs == NEEDS_SM90 || needs == NEEDS_HOPPER ? 90 : 0;
}

/* simt takes a loop for endless from here on: no exercise needs a tenth of it. */
static const char instruction_limit[] = "5000000";

static void need(struct trial *t) {
    struct device_properties properties;
    struct error error = {0};
    enum exercise_needs needs = t->exercise->needs;
    enum status status = device_open(&error);
    if (status == STATUS_OK) {
        status = device_properties(&properties, &error);
    }
    if (status != STATUS_OK) {
        trial_fail(t, "%s", error_text(&error, status));
    }
    t->counts = simt_find(&t->simt);
    t->verdict->state = TRIAL_NOT_HERE;
    if ((needs == NEEDS_SIMT || needs == NEEDS_SIMT_SM80) && !t->counts) {
        snprintf(t->verdict->message, sizeof t->verdict->message,
                 "%s may not notice the fault: bazel run --config=simt //labs/00_warmups:check -- "
                 "%.3s",
                 properties.name, t->exercise->name);
        _exit(0);
    }
    int least = least_code(needs);
    bool is_newer = needs == NEEDS_HOPPER && properties.major > 9;
    if (properties.code < least || is_newer) {
        snprintf(t->verdict->message, sizeof t->verdict->message,
                 "it needs code for compute capability %d.0%s; %s runs code for %d.%d", least / 10,
                 needs == NEEDS_HOPPER ? " alone" : " or later", properties.name,
                 properties.code / 10, properties.code % 10);
        _exit(0);
    }
}

/* In the child. */
static void try_here(const struct exercise *exercise, struct verdict *verdict, FILE *printed) {
    struct trial t = {.exercise = exercise, .verdict = verdict, .rng = rng_create(1)};
    const struct rlimit output = {MOST_OUTPUT, MOST_OUTPUT};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* Ctrl-C ends both */
    setrlimit(RLIMIT_FSIZE, &output);
    dup2(fileno(printed), STDOUT_FILENO);
    dup2(fileno(printed), STDERR_FILENO);
    setenv("SIMT_CHECK", "full", 1);
    setenv("SIMT_INSTRUCTION_LIMIT", instruction_limit, 1);
    need(&t);
    verdict->state = TRIAL_NOT_YET;
    exercise->run(&t);
    fflush(NULL);
    verdict->state = TRIAL_PASSED;
    _exit(0);
}

/* @return how the process ended, or -1: it was stopped after the limit */
static int wait_for(pid_t child) {
    const struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
    int state = 0;
    for (long waited = 0; waitpid(child, &state, WNOHANG) == 0; waited += TICK_MS) {
        if (waited >= LIMIT_SECONDS * 1000L) {
            kill(child, SIGKILL);
            waitpid(child, &state, 0);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return state;
}

static void read_printed(struct verdict *verdict, FILE *printed) {
    rewind(printed);
    size_t got = fread(verdict->printed, 1, sizeof verdict->printed - 1, printed);
    verdict->printed[got] = '\0';
}

static void judge_end(struct verdict *verdict, int state) {
    const char *what = NULL;
    if (state == -1) {
        what = "it did not end within 30 s and was stopped";
    } else if (WIFSIGNALED(state)) {
        what = strsignal(WTERMSIG(state));
    } else if (WEXITSTATUS(state) != 0) {
        what = "the program was ended while it ran";
    }
    if (what != NULL) {
        verdict->state = TRIAL_NOT_YET;
        snprintf(verdict->message, sizeof verdict->message, "%s%s",
                 state != -1 && WIFSIGNALED(state) ? "crashed on the host: " : "", what);
    }
}

static enum status run_apart(const struct exercise *exercise, struct verdict *shared, FILE *printed,
                             struct error *error) {
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        return error_set(error, STATUS_IO, "cannot start a process: %s", strerror(errno));
    }
    if (child == 0) {
        try_here(exercise, shared, printed);
    }
    int state = wait_for(child);
    read_printed(shared, printed);
    judge_end(shared, state);
    return STATUS_OK;
}

enum status trial_run(const struct exercise *exercise, struct verdict *verdict,
                      struct error *error) {
    *verdict = (struct verdict){.state = TRIAL_NOT_YET};
    FILE *printed = tmpfile();
    struct verdict *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    enum status status = STATUS_IO;
    if (printed == NULL || shared == MAP_FAILED) {
        (void)error_set(error, STATUS_IO, "cannot prepare a trial: %s", strerror(errno));
    } else {
        status = run_apart(exercise, shared, printed, error);
        *verdict = *shared;
    }
    if (shared != MAP_FAILED) {
        munmap(shared, sizeof *shared);
    }
    if (printed != NULL) {
        fclose(printed);
    }
    return status;
}
