/* _GNU_SOURCE: memfd_create() and strdupa() */
#include "grader/class/slurm/slurm_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20 };

double slurm_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In the child. */
static void become(const struct slurm_command *c, char *const *arguments, pid_t parent) {
    int nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(c->out, 1) == 1 && dup2(c->said, 2) == 2) {
        execvp(arguments[0], arguments);
        dprintf(2, "cannot be started: %s (./setup.sh --cluster installs it)\n", strerror(errno));
    }
    _exit(127);
}

static void close_outputs(struct slurm_command *c) {
    if (c->out >= 0) {
        close(c->out);
    }
    if (c->said >= 0) {
        close(c->said);
    }
    c->process = 0;
}

enum status slurm_command_start(struct slurm_command *c, char *const *arguments,
                                struct error *error) {
    *c = (struct slurm_command){.out = memfd_create("out", MFD_CLOEXEC),
                                .said = memfd_create("said", MFD_CLOEXEC),
                                .begun = slurm_clock(),
                                .name = arguments[0]};
    pid_t parent = getpid();
    fflush(NULL);
    c->process = c->out < 0 || c->said < 0 ? -1 : fork();
    if (c->process == 0) {
        become(c, arguments, parent);
    }
    if (c->process < 0) {
        int reason = errno;
        close_outputs(c);
        return error_set(error, STATUS_IO, "%s: cannot start: %s", arguments[0], strerror(reason));
    }
    return STATUS_OK;
}

/* What is in a file, with a NUL; NULL: no memory, or too much. */
static char *contents(int file) {
    struct stat state;
    if (fstat(file, &state) != 0 || state.st_size > MOST_BYTES) {
        return NULL;
    }
    size_t size = (size_t)state.st_size;
    char *text = malloc(size + 1);
    if (text != NULL && pread(file, text, size, 0) == (ssize_t)size) {
        text[size] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

/* Slurm says why in the last line that has words. */
static void last_line(char *line, size_t size, const char *name, char *said) {
    const char *last = "no message";
    char *rest = NULL;
    for (char *next = strtok_r(said, "\n", &rest); next != NULL;
         next = strtok_r(NULL, "\n", &rest)) {
        if (next[strspn(next, " \t\r")] != '\0') {
            last = next;
        }
    }
    const char *text = strncmp(last, name, strlen(name)) == 0 ? last + strlen(name) : last;
    text = strncmp(text, ": error: ", 9) == 0 ? text + 9 : last;
    text = strncmp(text, "Batch job submission failed: ", 29) == 0 ? text + 29 : text;
    snprintf(line, size, "%s: %.250s", name, text);
}

static void settle(struct slurm_command *c, int state, bool late, struct slurm_reply *reply) {
    *reply = (struct slurm_reply){.text = contents(c->out)};
    char *said = contents(c->said);
    if (late) {
        snprintf(reply->line, sizeof reply->line, "%s: no answer from slurmctld", c->name);
    } else if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        last_line(reply->line, sizeof reply->line, c->name, said != NULL ? said : strdupa(""));
    } else if (reply->text == NULL) {
        snprintf(reply->line, sizeof reply->line, "%s: out of memory for its answer", c->name);
    }
    free(said);
    close_outputs(c);
}

bool slurm_command_ended(struct slurm_command *c, double limit_s, struct slurm_reply *reply) {
    int state = 0;
    bool late = slurm_clock() - c->begun > limit_s;
    pid_t ended = waitpid(c->process, &state, WNOHANG);
    if (ended == 0 && !late) {
        return false;
    }
    if (ended == 0) {
        kill(c->process, SIGKILL);
        waitpid(c->process, &state, 0);
    }
    settle(c, state, ended == 0, reply);
    return true;
}

bool slurm_command_wait(struct slurm_command *c, double limit_s, struct slurm_reply *reply) {
    while (!slurm_command_ended(c, limit_s, reply)) {
        usleep(10000);
    }
    return reply->line[0] == '\0';
}

bool slurm_command_run(char *const *arguments, double limit_s, struct slurm_reply *reply) {
    struct slurm_command command;
    struct error error = {0};
    *reply = (struct slurm_reply){0};
    enum status status = slurm_command_start(&command, arguments, &error);
    if (status != STATUS_OK) {
        snprintf(reply->line, sizeof reply->line, "%.299s", error_text(&error, status));
        return false;
    }
    return slurm_command_wait(&command, limit_s, reply);
}

void slurm_command_stop(struct slurm_command *c) {
    if (c->process > 0) {
        kill(c->process, SIGKILL);
        waitpid(c->process, NULL, 0);
        close_outputs(c);
    }
}

void slurm_reply_free(struct slurm_reply *reply) {
    free(reply->text);
    reply->text = NULL;
}
