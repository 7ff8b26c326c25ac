#include "common/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOST_LINKS = 40, MOST_TRIES = 100 };

/* STATUS_NOT_FOUND or STATUS_IO by errno: "FILE: cannot ACTION: No space left on device". */
static enum status file_error(struct error *error, const char *path, const char *action) {
    int code = errno;
    enum status status = code == ENOENT || code == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO;
    return error_set(error, status, "%s: cannot %s: %s", path, action, strerror(code));
}

/* ---- Reading ---- */

static enum status map_descriptor(struct file_view *view, int descriptor, const char *path,
                                  struct error *error) {
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        return file_error(error, path, "read");
    }
    if (!S_ISREG(info.st_mode)) {
        return error_set(error, STATUS_IO, "%s: not a regular file", path);
    }
    if (info.st_size == 0) {
        return STATUS_OK;
    }
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
        return file_error(error, path, "map");
    }
    view->data = data;
    view->size = (size_t)info.st_size;
    return STATUS_OK;
}

enum status file_view_open(struct file_view *view, const char *path, struct error *error) {
    *view = (struct file_view){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return file_error(error, path, "open");
    }
    enum status status = map_descriptor(view, descriptor, path, error);
    close(descriptor);
    return status;
}

void file_view_close(struct file_view *view) {
    if (view->data != NULL) {
        munmap((void *)(uintptr_t)view->data, view->size);
    }
    *view = (struct file_view){0};
}

void file_enter_working_directory(void) {
    const char *folder = getenv("BUILD_WORKING_DIRECTORY");
    if (folder != NULL && chdir(folder) != 0) {
        fprintf(stderr,
                "cannot change to the folder %s: %s; relative paths will not be found there\n",
                folder, strerror(errno));
    }
}

/* Whether it is /dev/zero, /dev/full, /dev/random or /dev/urandom. */
static bool is_endless(int descriptor) {
    struct stat info;
    if (fstat(descriptor, &info) != 0 || !S_ISCHR(info.st_mode) || major(info.st_rdev) != 1) {
        return false;
    }
    unsigned number = minor(info.st_rdev);
    return number == 5 || number == 7 || number == 8 || number == 9;
}

/* Reads into *text, which grows, until the end of the file or more than limit bytes. */
static enum status read_descriptor(int descriptor, size_t limit, char **text, size_t *size,
                                   const char *path, struct error *error) {
    size_t capacity = 0;
    if (is_endless(descriptor)) {
        return error_set(error, STATUS_TOO_LONG, "%s: never ends; give a file", path);
    }
    for (;;) {
        if (*size + 1 >= capacity) {
            size_t grown = capacity == 0 ? 65536 : capacity * 2;
            char *memory = realloc(*text, grown);
            if (memory == NULL) {
                return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
            }
            *text = memory;
            capacity = grown;
        }
        ssize_t count = read(descriptor, *text + *size, capacity - *size - 1);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return file_error(error, path, "read");
        }
        if (count == 0) {
            (*text)[*size] = '\0';
            return STATUS_OK;
        }
        *size += (size_t)count;
        if (*size > limit) {
            return error_set(error, STATUS_TOO_LONG, "%s: longer than %zu bytes", path, limit);
        }
    }
}

enum status file_read(const char *path, size_t limit, char **text, size_t *size,
                      struct error *error) {
    *text = NULL;
    *size = 0;
    bool standard_input = strcmp(path, "-") == 0;
    int descriptor = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return file_error(error, path, "open");
    }
    const char *name = standard_input ? "standard input" : path;
    enum status status = read_descriptor(descriptor, limit, text, size, name, error);
    if (!standard_input) {
        close(descriptor);
    }
    if (status != STATUS_OK) {
        free(*text);
        *text = NULL;
        *size = 0;
    }
    return status;
}

/* ---- Writing ---- */

static bool write_all(int descriptor, const char *data, size_t size) {
    while (size > 0) {
        ssize_t count = write(descriptor, data, size);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        data += count;
        size -= (size_t)count;
    }
    return true;
}

/* The descriptor that "/dev/fd/3" and the like name; -1: the path names none. */
static int named_descriptor(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) == 0) {
            char *end;
            long number = strtol(path + length, &end, 10);
            bool whole = end > path + length && *end == '\0' && number >= 0 && number <= INT_MAX;
            return whole ? (int)number : -1;
        }
    }
    return -1;
}

/* Sets errno if not. */
static bool is_writable(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
    }
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/* Whether it exists and is no regular file: a device, a pipe, a socket. Links are followed. */
static bool is_special(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

/* What a link names, seen from the folder of the link. @return whether path was a link, and fits */
static bool follow_link(char *path) {
    char target[PATH_MAX], joined[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) {
        return false;
    }
    target[length] = '\0';
    const char *slash = strrchr(path, '/');
    int folder = target[0] == '/' || slash == NULL ? 0 : (int)(slash + 1 - path);
    if ((size_t)snprintf(joined, sizeof joined, "%.*s%s", folder, path, target) >= sizeof joined) {
        return false;
    }
    memcpy(path, joined, strlen(joined) + 1);
    return true;
}

/* The file behind all links, which need not exist. */
static enum status find_target(const char *path, char target[PATH_MAX], struct error *error) {
    if ((size_t)snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(ENAMETOOLONG));
    }
    for (int i = 0; follow_link(target); i++) {
        if (i == MOST_LINKS) {
            return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(ELOOP));
        }
    }
    return STATUS_OK;
}

/* Opens a new file beside the target; its permissions follow the umask, as any new file's. */
static int open_beside(const char *target, char *temporary, size_t size) {
    for (int i = 0; i < MOST_TRIES; i++) {
        if ((size_t)snprintf(temporary, size, "%s.%ld-%d", target, (long)getpid(), i) >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

/* A file that is there already keeps its permissions. */
static bool keep_mode(int descriptor, const char *target) {
    struct stat old;
    return stat(target, &old) != 0 || fchmod(descriptor, old.st_mode & 07777) == 0;
}

static enum status replace(const char *path, const char *target, const void *data, size_t size,
                           struct error *error) {
    char temporary[PATH_MAX + 32];
    int descriptor = open_beside(target, temporary, sizeof temporary);
    if (descriptor < 0) {
        return file_error(error, path, "create");
    }
    bool written = write_all(descriptor, data, size) && keep_mode(descriptor, target) &&
                   fsync(descriptor) == 0;
    written = close(descriptor) == 0 && written;
    written = written && rename(temporary, target) == 0;
    if (!written) {
        enum status status = file_error(error, path, "write");
        unlink(temporary);
        return status;
    }
    return STATUS_OK;
}

static enum status write_into(const char *path, int descriptor, const void *data, size_t size,
                              struct error *error) {
    if (descriptor < 0) {
        return file_error(error, path, "open");
    }
    return write_all(descriptor, data, size) ? STATUS_OK : file_error(error, path, "write");
}

enum status file_write(const char *path, const void *data, size_t size, struct error *error) {
    char target[PATH_MAX];
    int named = named_descriptor(path);
    if (named >= 0) {
        return write_into(path, named, data, size, error);
    }
    if (is_special(path)) {
        int descriptor = open(path, O_WRONLY | O_CLOEXEC);
        enum status status = write_into(path, descriptor, data, size, error);
        if (descriptor >= 0) {
            close(descriptor);
        }
        return status;
    }
    TRY(find_target(path, target, error));
    return replace(path, target, data, size, error);
}

enum status file_open_append(const char *path, int *descriptor, struct error *error) {
    int named = named_descriptor(path);
    int flags = is_special(path) ? O_WRONLY : O_WRONLY | O_CREAT | O_APPEND;
    *descriptor = named < 0            ? open(path, flags | O_CLOEXEC, 0666)
                  : is_writable(named) ? fcntl(named, F_DUPFD_CLOEXEC, 0)
                                       : -1;
    return *descriptor >= 0 ? STATUS_OK : file_error(error, path, "append");
}

bool file_is_regular(const char *path) {
    struct stat found;
    return named_descriptor(path) < 0 && stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* The folder of a path, as it is written there. */
static void folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        memcpy(path, ".", 2);
    } else {
        slash[slash == path] = '\0';
    }
}

enum status file_check_writable(const char *path, struct error *error) {
    char target[PATH_MAX];
    struct stat found;
    int named = named_descriptor(path);
    if (named >= 0) {
        return is_writable(named) ? STATUS_OK : file_error(error, path, "write");
    }
    if (is_special(path)) {
        return access(path, W_OK) == 0 ? STATUS_OK : file_error(error, path, "write");
    }
    TRY(find_target(path, target, error));
    if (target[0] == '\0' || (stat(target, &found) == 0 && S_ISDIR(found.st_mode))) {
        errno = target[0] == '\0' ? ENOENT : EISDIR;
        return file_error(error, path, "write");
    }
    folder_of(target);
    return access(target, W_OK | X_OK) == 0 ? STATUS_OK : file_error(error, path, "write");
}
