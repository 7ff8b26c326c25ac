#include "common/simt/runtime/library_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char LIBRARY[] = "libcudart.so.13";

/** Finds the running program's file, in a chroot without /proc by the name it was started with. */
static enum status find_own(char own[PATH_MAX], struct error *error) {
    ssize_t length = readlink("/proc/self/exe", own, PATH_MAX - 1);
    if (length >= 0) {
        own[length] = '\0';
        return STATUS_OK;
    }
    const char *started = (const char *)getauxval(AT_EXECFN);
    return started != NULL && realpath(started, own) != NULL
               ? STATUS_OK
               : error_set(error, STATUS_NOT_FOUND, "/proc/self/exe: %s", strerror(errno));
}

enum status library_path_find(char *path, size_t size, struct error *error) {
    static const char *const FOLDERS[] = {"", "../lib/"};
    char own[PATH_MAX];
    TRY(find_own(own, error));
    const char *folder = dirname(own);
    for (size_t n = 0; n < sizeof FOLDERS / sizeof *FOLDERS; n++) {
        int used = snprintf(path, size, "%s/%s%s", folder, FOLDERS[n], LIBRARY);
        if (used > 0 && (size_t)used < size && access(path, R_OK) == 0) {
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_NOT_FOUND, "%s is neither in %s nor in %s/../lib", LIBRARY,
                     folder, folder);
}

bool library_path_find_nccl(const char *library, char *path, size_t size) {
    static const char *const FOLDERS[] = {"", "../nccl/"};
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", library);
    const char *folder = dirname(copy);
    for (size_t n = 0; n < sizeof FOLDERS / sizeof *FOLDERS; n++) {
        int used = snprintf(path, size, "%s/%slibnccl.so.2", folder, FOLDERS[n]);
        if (used > 0 && (size_t)used < size && access(path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

/** Names a file without blanks: by a descriptor that the program inherits. */
static enum status name_by_descriptor(const char *path, char *name, size_t size,
                                      struct error *error) {
    enum { FIRST = 200 }; /* out of the way of the program's own */
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    int kept = opened >= 0 ? fcntl(opened, F_DUPFD, FIRST) : -1;
    if (kept < 0) {
        return error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    close(opened);
    snprintf(name, size, "/proc/self/fd/%d", kept);
    return access(name, R_OK) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO,
                           "%s: a path with blanks or colons needs /proc, which is not mounted",
                           path);
}

/** Puts the driver's library behind the runtime's where both lie together; not by a descriptor. */
static void add_driver(char *name, size_t size) {
    static const char *const PLACES[] = {"", "driver/"};
    size_t length = strlen(name), folder = length - strlen(LIBRARY);
    for (size_t n = 0; n < sizeof PLACES / sizeof *PLACES && strcmp(name + folder, LIBRARY) == 0;
         n++) {
        char driver[PATH_MAX];
        int used =
            snprintf(driver, sizeof driver, "%.*s%slibcuda.so.1", (int)folder, name, PLACES[n]);
        if (used > 0 && (size_t)used < sizeof driver && access(driver, R_OK) == 0 &&
            length + 1 + (size_t)used < size) {
            snprintf(name + length, size - length, ":%s", driver);
            return;
        }
    }
}

enum status library_path_preload(const char *path, struct error *error) {
    const char *before = getenv("LD_PRELOAD");
    char name[2 * PATH_MAX];
    snprintf(name, sizeof name, "%s", path);
    if (path[strcspn(path, " :\t\n")] != '\0') {
        TRY(name_by_descriptor(path, name, sizeof name, error));
    } else if (strlen(path) > strlen(LIBRARY)) {
        add_driver(name, sizeof name);
    }
    size_t size = strlen(name) + (before != NULL ? strlen(before) : 0) + 2;
    char *all = malloc(size);
    if (all == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    snprintf(all, size, "%s%s%s", name, before != NULL ? ":" : "", before != NULL ? before : "");
    int failed = setenv("LD_PRELOAD", all, 1);
    free(all);
    return failed == 0 ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
}
