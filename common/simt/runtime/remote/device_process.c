#include "common/simt/runtime/remote/device_process.h"
#include "common/simt/control.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
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
static bool spawn(int socket, const char *how) {
    Dl_info library;
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    int status = 0;
    char **environment = variables();
    if (environment == NULL || dladdr((void *)(uintptr_t)device_process_start, &library) == 0) {
        free(environment);
        return false;
    }
    const char *argv[] = {SIMT_DEVICE_LOADER, library.dli_fname, how, NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, SIMT_DEVICE_PROGRAM);
    int failed = posix_spawn(&child, SIMT_DEVICE_LOADER, &actions, NULL, (char **)(uintptr_t)argv,
                             environment);
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
    simt_control_widen(ends[0]);
    simt_control_widen(ends[1]);
    bool runs = spawn(ends[1], "detach");
    close(ends[1]);
    if (!runs) {
        close(ends[0]);
        return -1;
    }
    return ends[0];
}

/** An abstract name goes with its socket, so nothing is left in a folder. @return its length */
static socklen_t address_of(const char *name, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int used = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "simt-%u-%s",
                        (unsigned)getuid(), name);
    bool fits = used > 0 && (size_t)used < sizeof address->sun_path - 1;
    return fits ? (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)used) : 0;
}

/** The one that gets the name starts the process, which takes the socket over. */
static void try_to_start(const struct sockaddr_un *address, socklen_t length) {
    enum { WAITING = 16 };
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener >= 0 && bind(listener, (const struct sockaddr *)address, length) == 0 &&
        listen(listener, WAITING) == 0) {
        (void)spawn(listener, "shared");
    }
    if (listener >= 0) {
        close(listener);
    }
}

int device_process_share(const char *name) {
    enum { TRIES = 500 };
    const struct timespec pause = {.tv_nsec = 10000000};
    struct sockaddr_un address;
    socklen_t length = address_of(name, &address);
    for (int n = 0; length > 0 && n < TRIES; n++) {
        int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (made < 0) {
            return -1;
        }
        if (connect(made, (struct sockaddr *)&address, length) == 0) {
            return made;
        }
        close(made);
        try_to_start(&address, length);
        if (n > 0) {
            nanosleep(&pause, NULL);
        }
    }
    return -1;
}
