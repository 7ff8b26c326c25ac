/* A folder of files; links are not followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grader/class/intake/intake.h"

struct walk {
    struct found *found;
    size_t seen;
    int depth;
};

struct place {
    int folder;
    const char *name;
};

static enum status fail(const char *name, struct error *error) {
    return error_set(error, STATUS_INVALID_ARGUMENT, "%.200s: cannot read: %s", name,
                     strerror(errno));
}

/* At most MOST_SOURCE bytes, whatever the file says of its size. */
static enum status read_all(int file, const char *name, char **text, size_t *size,
                            struct error *error) {
    *text = malloc(MOST_SOURCE + 1);
    if (*text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    ssize_t got = 1;
    for (*size = 0; got > 0 && *size <= MOST_SOURCE; *size += got > 0 ? (size_t)got : 0) {
        got = read(file, *text + *size, MOST_SOURCE + 1 - *size);
    }
    if (got < 0) {
        return fail(name, error);
    }
    return *size <= MOST_SOURCE ? STATUS_OK
                                : error_set(error, STATUS_INVALID_ARGUMENT,
                                            "%.200s has more than %d bytes", name, MOST_SOURCE);
}

static enum status read_file(void *source, char **text, size_t *size, struct error *error) {
    const struct place *place = source;
    int file = openat(place->folder, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return fail(place->name, error);
    }
    enum status status = read_all(file, place->name, text, size, error);
    close(file);
    return status;
}

static enum status walk_folder(struct walk *walk, int folder, const char *path,
                               struct error *error);

static enum status walk_into(struct walk *walk, int parent, const char *name, const char *path,
                             struct error *error) {
    if (walk->depth >= MOST_DEPTH) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "folders are nested more than %d deep",
                         MOST_DEPTH);
    }
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        return fail(path, error);
    }
    walk->depth++;
    enum status status = walk_folder(walk, folder, path, error);
    walk->depth--;
    return status;
}

static enum status look_at(struct walk *walk, int folder, const char *name, const char *path,
                           struct error *error) {
    struct stat seen;
    if (++walk->seen > MOST_FILES) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "it has more than %d files", MOST_FILES);
    }
    if (fstatat(folder, name, &seen, AT_SYMLINK_NOFOLLOW) != 0) {
        return fail(path, error);
    }
    if (S_ISDIR(seen.st_mode)) {
        return walk_into(walk, folder, name, path, error);
    }
    struct place place = {.folder = folder, .name = name};
    enum found_kind kind = S_ISREG(seen.st_mode)   ? FOUND_PLAIN
                           : S_ISLNK(seen.st_mode) ? FOUND_LINK
                                                   : FOUND_OTHER;
    return found_add(walk->found, path, kind, (uint64_t)seen.st_size, read_file, &place, error);
}

/* Closes `folder`. */
static enum status walk_folder(struct walk *walk, int folder, const char *path,
                               struct error *error) {
    char inner[TASK_PATH];
    DIR *dir = fdopendir(folder);
    if (dir == NULL) {
        close(folder);
        return fail(path, error);
    }
    enum status status = STATUS_OK;
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int length = snprintf(inner, sizeof inner, "%s%s%s", path, path[0] != '\0' ? "/" : "",
                              entry->d_name);
        status = length < (int)sizeof inner
                     ? look_at(walk, dirfd(dir), entry->d_name, inner, error)
                     : error_set(error, STATUS_INVALID_ARGUMENT, "a path in it is too long");
    }
    closedir(dir);
    return status;
}

enum status intake_folder(struct found *found, const char *path, struct error *error) {
    struct walk walk = {.found = found};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
        return fail("the folder", error);
    }
    return walk_folder(&walk, folder, "", error);
}
