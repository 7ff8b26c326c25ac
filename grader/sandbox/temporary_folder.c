#include "grader/sandbox/temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *usual_parent(void) {
    static const char *const names[] = {"TEST_TMPDIR", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0') {
            return value;
        }
    }
    return "/tmp";
}

enum status folder_create(const char *parent, char *path, size_t size, struct error *error) {
    if (parent == NULL) {
        parent = usual_parent();
    }
    char *whole = realpath(parent, NULL);
    if (whole == NULL) {
        return error_set(error, STATUS_IO, "%s: %s", parent, strerror(errno));
    }
    int length = snprintf(path, size, "%s/sandbox.XXXXXX", whole);
    free(whole);
    if (length < 0 || (size_t)length >= size) {
        return error_set(error, STATUS_TOO_LONG, "%s: too long for a folder's name", parent);
    }
    if (mkdtemp(path) == NULL) {
        return error_set(error, STATUS_IO, "%s: no folder can be made: %s", parent,
                         strerror(errno));
    }
    return STATUS_OK;
}

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

bool folder_use(const char *path, unsigned most, struct folder_use *use) {
    DIR *dir = opendir(path);
    const struct dirent *entry;
    *use = (struct folder_use){0};
    while (dir != NULL && use->entries < most && (entry = readdir(dir)) != NULL) {
        struct stat status;
        if (!is_dots(entry->d_name) &&
            fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            use->entries++;
            use->bytes += (uint64_t)status.st_blocks * 512;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return dir != NULL;
}

/* A folder may have been made without rights. Links are not followed: only folders change. */
static void make_enterable(int parent, const char *name) {
    char path[48];
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        (void)!chmod(path, S_IRWXU); /* what cannot be entered then stays, and that is said */
        close(fd);
    }
}

static DIR *open_folder(int parent, const char *name) {
    make_enterable(parent, name);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0) {
        close(fd);
    }
    return dir;
}

/*
 * Empties the folder `name` of `top` and removes it. Folders inside it move up
 * into `top` under new names, so that depth does not matter.
 */
static bool remove_folder(int top, const char *name, unsigned long *moved) {
    DIR *dir = open_folder(top, name);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char fresh[48];
        if (is_dots(entry->d_name) || unlinkat(dirfd(dir), entry->d_name, 0) == 0 ||
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0) {
            continue;
        }
        do {
            snprintf(fresh, sizeof fresh, "%lu", (*moved)++);
        } while (faccessat(top, fresh, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
        make_enterable(dirfd(dir), entry->d_name);
        renameat(dirfd(dir), entry->d_name, top, fresh);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return unlinkat(top, name, AT_REMOVEDIR) == 0;
}

/* One pass over what is in `top`. @return whether something could be removed */
static bool remove_entries(DIR *top, unsigned long *moved) {
    bool any = false;
    const struct dirent *entry;
    rewinddir(top);
    while ((entry = readdir(top)) != NULL) {
        if (is_dots(entry->d_name)) {
            continue;
        }
        any |= unlinkat(dirfd(top), entry->d_name, 0) == 0 ||
               remove_folder(dirfd(top), entry->d_name, moved);
    }
    return any;
}

bool folder_remove(const char *path) {
    unsigned long moved = 0;
    DIR *top = open_folder(AT_FDCWD, path);
    if (top != NULL) {
        while (remove_entries(top, &moved)) {
        }
        closedir(top);
    }
    return rmdir(path) == 0;
}
