/* This machine: some tasks at a time, each a child that ends with this process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grader/class/backend/backend.h"
#include "grader/class/task.h"

enum { MOST_JOBS = 256 };

struct local {
    char folder[TASK_PATH];
    size_t jobs;
    struct {
        pid_t process; /* 0: free */
        unsigned id;
    } running[MOST_JOBS];
};

static enum status local_open(void **self, const struct backend_options *o, struct error *error) {
    size_t jobs = o->jobs > 0 ? o->jobs : 1;
    if (o->gpu != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--gpu chooses a kind of GPU of a cluster; --backend local has those of "
                         "this machine");
    }
    if (o->text != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--backend-options: --backend local has none");
    }
    if (jobs > MOST_JOBS || (jobs > 1 && o->needs_gpu)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--jobs %zu: %s", jobs,
                         jobs > MOST_JOBS ? "at most 256"
                                          : "on a GPU time is measured, so one at a time");
    }
    struct local *l = calloc(1, sizeof *l);
    if (l == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    snprintf(l->folder, sizeof l->folder, "%s", o->folder);
    l->jobs = jobs;
    *self = l;
    return STATUS_OK;
}

/* Its tasks ended with the earlier collector. */
static bool local_has(void *self, unsigned id) {
    (void)self;
    (void)id;
    return false;
}

static size_t count_running(const struct local *l) {
    size_t running = 0;
    for (size_t i = 0; i < l->jobs; i++) {
        running += l->running[i].process != 0;
    }
    return running;
}

/* One at a time, so that a start that fails has started nothing. */
static size_t local_room(void *self) {
    const struct local *l = self;
    return count_running(l) < l->jobs ? 1 : 0;
}

/* In the child. */
static void become(const char *program, const char *folder, const char *id, int said,
                   pid_t parent) {
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0); /* Ctrl-C is the collector's */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(TASK_RETRY);
    }
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(said, 1) == 1 && dup2(said, 2) == 2) {
        execl(program, program, folder, id, (char *)NULL);
    }
    _exit(TASK_RETRY);
}

static enum status start_one(struct local *l, size_t slot, unsigned id, struct error *error) {
    char path[TASK_PATH], program[TASK_PATH + 40], number[16];
    TRY(task_path(path, l->folder, id, "said", error));
    int said = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (said < 0) {
        return error_set(error, STATUS_IO, "%.400s: cannot write: %s", path, strerror(errno));
    }
    snprintf(program, sizeof program, "%s/kit/bin/grade_submission", l->folder);
    snprintf(number, sizeof number, "%06u", id);
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        become(program, l->folder, number, said, parent);
    }
    close(said);
    if (child < 0) {
        return error_set(error, STATUS_IO, "cannot start a process: %s", strerror(errno));
    }
    setpgid(child, child); /* whoever comes first */
    l->running[slot].process = child;
    l->running[slot].id = id;
    return STATUS_OK;
}

static enum status local_start(void *self, const unsigned *ids, size_t count, struct error *error) {
    struct local *l = self;
    for (size_t i = 0; i < l->jobs && count == 1; i++) {
        if (l->running[i].process == 0) {
            return start_one(l, i, ids[0], error);
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "no room for %zu tasks", count);
}

static enum status local_poll(void *self, struct backend_end *ends, size_t most, size_t *count,
                              struct error *error) {
    struct local *l = self;
    (void)error;
    *count = 0;
    for (size_t i = 0; i < l->jobs && *count < most; i++) {
        int state;
        pid_t process = l->running[i].process;
        if (process == 0 || waitpid(process, &state, WNOHANG) != process) {
            continue;
        }
        kill(-process, SIGKILL); /* whatever it left behind */
        ends[(*count)++] =
            (struct backend_end){.id = l->running[i].id,
                                 .how = WIFSIGNALED(state) ? BACKEND_SIGNALLED : BACKEND_EXITED,
                                 .code = WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state)};
        l->running[i].process = 0;
    }
    return STATUS_OK;
}

static void local_describe(void *self, char *text, size_t size) {
    struct local *l = self;
    snprintf(text, size, "%zu running", count_running(l));
}

static void local_cancel(void *self) {
    struct local *l = self;
    for (size_t i = 0; i < l->jobs; i++) {
        if (l->running[i].process != 0) {
            kill(l->running[i].process, SIGTERM);
        }
    }
    for (size_t i = 0; i < l->jobs; i++) {
        for (int tries = 0; l->running[i].process != 0; tries++) {
            if (waitpid(l->running[i].process, NULL, WNOHANG) != 0) {
                l->running[i].process = 0;
            } else if (tries == 100) {
                kill(-l->running[i].process, SIGKILL);
            }
            usleep(20000);
        }
    }
}

static void local_close(void *self) {
    free(self);
}

const struct backend backend_local = {.name = "local",
                                      .open = local_open,
                                      .has = local_has,
                                      .room = local_room,
                                      .start = local_start,
                                      .poll = local_poll,
                                      .describe = local_describe,
                                      .cancel = local_cancel,
                                      .close = local_close};
