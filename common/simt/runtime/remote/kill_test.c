/*
 * Kills the program or its device at random moments: kill_test RUN CASE COUNT. The other one must
 * end soon, a program with one line; nothing may be left running.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/testing/children.h"

enum { TEXT = 4096 };

/* Far away: it only ends what hangs. */
static const double PATIENCE = 60.0;

/* Starts the program; *errors receives what it writes to stderr. */
static pid_t start(const char *run, const char *program, int *errors) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        abort();
    }
    pid_t child = fork();
    if (child == 0) {
        setenv("SIMT_DEVICE", "process", 1);
        dup2(ends[1], STDERR_FILENO);
        dup2(open("/dev/null", O_RDWR), STDOUT_FILENO);
        execl(run, run, program, "work", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    *errors = ends[0];
    return child;
}

/* Orphans of this process's children are its children: the device's process is one. */
static pid_t find_device(void) {
    enum { MOST = 64 };
    pid_t found[MOST], device = 0;
    size_t count = children_below(getpid(), found, MOST);
    for (size_t i = 0; i < count && device == 0; i++) {
        bool is_device =
            children_is_named(found[i], "simt device") && children_parent_of(found[i]) == getpid();
        device = is_device ? found[i] : 0;
    }
    return device;
}

static size_t lines_of(const char *text) {
    size_t lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n';
    }
    return lines;
}

/* A program whose device was killed says so, in one line, and fails. */
static bool said_so(int errors, int status) {
    char text[TEXT] = "";
    size_t used = 0;
    for (ssize_t got;
         used < sizeof text - 1 && (got = read(errors, text + used, sizeof text - 1 - used)) > 0;) {
        used += (size_t)got;
    }
    text[used] = '\0';
    bool good = WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 3) &&
                lines_of(text) == 1 &&
                strstr(text, "simt: the process of the emulated GPU has ended") != NULL;
    if (!good) {
        fprintf(stderr, "kill_test: status %d, it said: %s\n", status, text);
    }
    return good;
}

static bool try_once(const char *run, const char *program, struct rng *rng) {
    int errors = -1, status = 0;
    bool kill_device = rng_u64(rng) % 2 == 0;
    pid_t child = start(run, program, &errors), device = 0;
    while (kill_device && (device = find_device()) == 0 && waitpid(child, &status, WNOHANG) == 0) {
    }
    children_rest(rng_u64(rng) % 60);
    kill(kill_device ? device : child, SIGKILL);
    bool good =
        children_all_end(child, PATIENCE, &status) && (!kill_device || said_so(errors, status));
    close(errors);
    if (!good) {
        fprintf(stderr, "kill_test: FAILED after the %s was killed\n",
                kill_device ? "device" : "program");
    }
    return good;
}

int main(int argc, char **argv) {
    int failed = 0;
    struct rng rng = rng_create((uint64_t)time(NULL));
    if (argc != 4) {
        fprintf(stderr, "usage: kill_test RUN CASE COUNT\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    unsetenv("BUILD_WORKING_DIRECTORY");
    for (long i = strtol(argv[3], NULL, 10); i > 0 && failed == 0; i--) {
        failed += !try_once(argv[1], argv[2], &rng);
    }
    return failed;
}
