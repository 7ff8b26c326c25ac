/*
 * Kills a graded test, its workers or their devices at random moments:
 *   kill_grader TEST COUNT FOLDER
 * TEST must end soon and say in a line what was killed, unless it was killed itself; nothing may be
 * left running, and nothing in FOLDER, where temporary files are. TEST passes when nobody is
 * killed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/testing/children.h"

enum { MOST = 64, TEXT = 1 << 18 };

/* Far away: it only ends what hangs. */
static const double PATIENCE = 120.0;

/* Starts the test; what it writes goes to the file. */
static pid_t start(const char *test, const char *folder, int output) {
    pid_t child = fork();
    if (child == 0) {
        setenv("TMPDIR", folder, 1);
        setenv("TEST_TMPDIR", folder, 1);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execl(test, test, (char *)NULL);
        _exit(127);
    }
    return child;
}

/* A process's parent; 0: there is no such process. */
static pid_t parent_of(pid_t process) {
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0) {
        close(file);
    }
    const char *end = size > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

static bool descends_from(pid_t process, pid_t ancestor) {
    for (int depth = 0; depth < 8 && process > 1; depth++) {
        if (process == ancestor) {
            return true;
        }
        process = parent_of(process);
    }
    return false;
}

/* The test's workers and their devices, which are its children's children or its children. */
static size_t find_others(pid_t test, pid_t found[MOST]) {
    size_t count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *e; folder != NULL && count < MOST && (e = readdir(folder)) != NULL;) {
        pid_t process = (pid_t)strtol(e->d_name, NULL, 10);
        if (process > 1 && process != test && descends_from(process, test)) {
            found[count++] = process;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

static bool is_empty(const char *path) {
    bool empty = true;
    DIR *folder = opendir(path);
    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        bool dots = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
        if (!dots) {
            fprintf(stderr, "kill_grader: %s/%s was left\n", path, e->d_name);
        }
        empty = empty && dots;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return folder != NULL && empty;
}

/* A kill that came too late changes nothing; else the test fails and says why. */
static bool said_so(const char *text, int status) {
    static const char *const lines[] = {
        "your code was killed", "your code was ended", "the emulated GPU",
        "the process that watched it was killed", "devices unavailable"};
    bool said = false;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        said = said || strstr(text, lines[i]) != NULL;
    }
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (WEXITSTATUS(status) == 1 && said));
}

static bool try_once(const char *test, const char *folder, struct rng *rng) {
    static char text[TEXT];
    pid_t others[MOST];
    int status = 0, output = memfd_create("output", MFD_CLOEXEC);
    bool grader = rng_u64(rng) % 3 == 0;
    pid_t child = start(test, folder, output), victim = child;
    children_rest(rng_u64(rng) % 1500);
    if (!grader) {
        size_t count = find_others(child, others);
        victim = count > 0 ? others[rng_u64(rng) % count] : 0;
    }
    if (victim > 0) {
        kill(victim, SIGKILL);
    }
    bool ended = children_all_end(child, PATIENCE, &status);
    ssize_t size = pread(output, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    close(output);
    bool said = grader || said_so(text, status), empty = is_empty(folder);
    if (!ended || !said || !empty) {
        fprintf(stderr,
                "kill_grader: FAILED after the %s was killed: %s, status %d, it said:\n%s\n",
                grader ? "test" : "worker or device", ended ? "all ended" : "something stayed",
                status, text);
    }
    return ended && said && empty;
}

int main(int argc, char **argv) {
    int failed = 0;
    struct rng rng = rng_create(rng_secret_seed());
    if (argc != 4) {
        fprintf(stderr, "usage: kill_grader TEST COUNT FOLDER\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    for (long i = strtol(argv[2], NULL, 10); i > 0 && failed == 0; i--) {
        failed += !try_once(argv[1], argv[3], &rng);
    }
    return failed;
}
