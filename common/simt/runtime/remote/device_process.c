#include "common/simt/runtime/remote/device_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/** The variables without those that concern the program alone. @return a list to free, or NULL */
static char **variables(void) {
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    char **kept = calloc(count + 1, sizeof *kept);
    for (size_t i = 0, n = 0; kept != NULL && i < count; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
            strncmp(environ[i], "SIMT_DEVICE=", 12) != 0) {
            kept[n++] = environ[i];
        }
    }
    return kept;
}

/** @return true when it runs; it has forked, so that the program has no child to wait for. */
static bool spawn(int socket) {
    Dl_info library;
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    int status = 0;
    char **environment = variables();
    if (environment == NULL || dladdr((void *)(uintptr_t)device_process_start, &library) == 0) {
        free(environment);
        return false;
    }
    const char *argv[] = {DEVICE_LOADER, library.dli_fname, "detach", NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, DEVICE_PROGRAM);
    int failed =
        posix_spawn(&child, DEVICE_LOADER, &actions, NULL, (char **)(uintptr_t)argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    if (failed != 0) {
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return true;
}

int device_process_start(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    bool runs = spawn(ends[1]);
    close(ends[1]);
    if (!runs) {
        close(ends[0]);
        return -1;
    }
    return ends[0];
}
