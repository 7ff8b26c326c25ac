#include "common/testing/children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void children_rest(unsigned milliseconds) {
    const struct timespec t = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    nanosleep(&t, NULL);
}

bool children_all_end(pid_t one, double seconds, int *status) {
    const double until = now() + seconds;
    while (now() < until) {
        int how = 0;
        pid_t ended = waitpid(-1, &how, WNOHANG);
        if (ended < 0 && errno == ECHILD) {
            return true;
        }
        if (ended == one) {
            *status = how;
        }
        if (ended == 0) {
            children_rest(1);
        }
    }
    return false;
}

/* "(name) state parent ...", of /proc/PID/stat: a name may hold anything. */
struct stat_line {
    char name[64], state;
    int parent;
};

static bool read_stat(pid_t process, struct stat_line *line) {
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0) {
        close(file);
    }
    const char *begin = strchr(text, '('), *end = strrchr(text, ')');
    if (size <= 0 || begin == NULL || end == NULL ||
        sscanf(end + 1, " %c %d", &line->state, &line->parent) != 2) {
        return false;
    }
    snprintf(line->name, sizeof line->name, "%.*s", (int)(end - begin - 1), begin + 1);
    return true;
}

pid_t children_parent_of(pid_t process) {
    struct stat_line line;
    return read_stat(process, &line) ? (pid_t)line.parent : 0;
}

char children_state_of(pid_t process) {
    struct stat_line line;
    return read_stat(process, &line) ? line.state : '\0';
}

bool children_is_named(pid_t process, const char *name) {
    struct stat_line line;
    return read_stat(process, &line) && strcmp(line.name, name) == 0;
}

bool children_have_same_name(pid_t one, pid_t other) {
    struct stat_line a, b;
    return read_stat(one, &a) && read_stat(other, &b) && strcmp(a.name, b.name) == 0;
}

static bool is_below(pid_t process, pid_t ancestor) {
    enum { DEPTH = 8 };
    for (int depth = 0; depth < DEPTH && process > 1; depth++) {
        process = children_parent_of(process);
        if (process == ancestor) {
            return true;
        }
    }
    return false;
}

size_t children_below(pid_t ancestor, pid_t *found, size_t most) {
    size_t count = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *e; folder != NULL && count < most && (e = readdir(folder)) != NULL;) {
        pid_t process = (pid_t)strtol(e->d_name, NULL, 10);
        if (process > 1 && is_below(process, ancestor)) {
            found[count++] = process;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}
