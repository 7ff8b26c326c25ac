#include "common/base/file.h"
#include "common/base/file_error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum status file_error(struct error *error, const char *path, const char *action) {
    int code = errno;
    enum status status = code == ENOENT || code == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO;
    return error_set(error, status, "%s: cannot %s: %s", path, action, strerror(code));
}

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

/* Reads into *text, which grows, until the end of the file or more than limit bytes. */
static enum status read_descriptor(int descriptor, size_t limit, char **text, size_t *size,
                                   const char *path, struct error *error) {
    size_t capacity = 0;
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
