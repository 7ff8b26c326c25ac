#include "common/base/whole_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PARTIAL[] = ".partial";
static const char OLD[] = ".old";

static enum status failed(struct error *error, const char *path, const char *action) {
    return error_set(error, STATUS_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

static enum status add_ending(char out[FOLDER_PATH_BYTES], const char *path, const char *ending,
                              struct error *error) {
    int length = snprintf(out, FOLDER_PATH_BYTES, "%s%s", path, ending);
    return length > 0 && length < FOLDER_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_TOO_LONG, "%.100s...: the path is too long", path);
}

enum status whole_folder_make(const char *path, struct error *error) {
    char part[FOLDER_PATH_BYTES];
    TRY(add_ending(part, path, "", error));
    for (char *c = part + 1; *c != '\0'; c++) {
        if (*c == '/') {
            *c = '\0';
            if (mkdir(part, 0777) != 0 && errno != EEXIST) {
                return failed(error, part, "make the folder");
            }
            *c = '/';
        }
    }
    if (mkdir(part, 0777) == 0 || folder_exists(part)) {
        return STATUS_OK;
    }
    return failed(error, part, "make the folder");
}

static int is_entry(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* The names in a folder, for free_names(). */
static enum status list_names(const char *path, struct dirent ***names, int *count,
                              struct error *error) {
    *count = scandir(path, names, is_entry, alphasort);
    return *count >= 0 ? STATUS_OK : failed(error, path, "read the folder");
}

static void free_names(struct dirent **names, int count) {
    for (int i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

enum status whole_folder_remove(const char *path, struct error *error) {
    struct dirent **names;
    int count;
    if (!path_exists(path)) {
        return STATUS_OK;
    }
    TRY(list_names(path, &names, &count, error));
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        char file[FOLDER_PATH_BYTES];
        status = folder_join(file, path, names[i]->d_name, "folder", error);
        if (status == STATUS_OK && unlink(file) != 0) {
            status = failed(error, file, "remove");
        }
    }
    free_names(names, count);
    if (status == STATUS_OK && rmdir(path) != 0) {
        status = failed(error, path, "remove");
    }
    return status;
}

/* Synchronises a folder, so that new and renamed entries are on the disk. */
static enum status sync_folder(const char *path, struct error *error) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
        return failed(error, path, "open");
    }
    /* Some file systems cannot synchronise a folder and return an error. */
    bool synced = fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS;
    enum status status = synced ? STATUS_OK : failed(error, path, "write");
    close(descriptor);
    return status;
}

static enum status sync_parent(const char *path, struct error *error) {
    char parent[FOLDER_PATH_BYTES];
    TRY(add_ending(parent, path, "", error));
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        return sync_folder(".", error);
    }
    slash[slash == parent] = '\0'; /* of "/name" the slash stays */
    return sync_folder(parent, error);
}

enum status whole_folder_begin(const char *path, char partial[FOLDER_PATH_BYTES],
                               struct error *error) {
    TRY(add_ending(partial, path, PARTIAL, error));
    TRY(whole_folder_remove(partial, error));
    return mkdir(partial, 0777) == 0 ? STATUS_OK : failed(error, partial, "make the folder");
}

enum status whole_folder_finish(const char *path, struct error *error) {
    char partial[FOLDER_PATH_BYTES], old[FOLDER_PATH_BYTES];
    TRY(add_ending(partial, path, PARTIAL, error));
    TRY(add_ending(old, path, OLD, error));
    TRY(sync_folder(partial, error));
    TRY(whole_folder_remove(old, error));
    if (path_exists(path) && rename(path, old) != 0) {
        return failed(error, path, "rename");
    }
    if (rename(partial, path) != 0) {
        return failed(error, partial, "rename");
    }
    TRY(sync_parent(path, error));
    return whole_folder_remove(old, error);
}

void whole_folder_abandon(const char *path) {
    char partial[FOLDER_PATH_BYTES];
    if (add_ending(partial, path, PARTIAL, NULL) == STATUS_OK &&
        whole_folder_remove(partial, NULL) != STATUS_OK) {
        return; /* the next start of the program removes it */
    }
}

/* Whether name is BASE followed by the ending; then it is cut to BASE. */
static bool cut_ending(char *name, const char *ending) {
    size_t length = strlen(name), tail = strlen(ending);
    if (length <= tail || strcmp(name + length - tail, ending) != 0) {
        return false;
    }
    name[length - tail] = '\0';
    return true;
}

static enum status recover_one(const char *parent, const char *name,
                               bool (*is_mine)(const char *name), struct error *error) {
    char path[FOLDER_PATH_BYTES], base[FOLDER_PATH_BYTES], target[FOLDER_PATH_BYTES];
    TRY(folder_join(path, parent, name, "folder", error));
    TRY(add_ending(base, name, "", error));
    bool partial = cut_ending(base, PARTIAL);
    if ((!partial && !cut_ending(base, OLD)) || !is_mine(base) || !folder_exists(path)) {
        return STATUS_OK;
    }
    TRY(folder_join(target, parent, base, "folder", error));
    if (partial || path_exists(target)) {
        return whole_folder_remove(path, error);
    }
    return rename(path, target) == 0 ? STATUS_OK : failed(error, path, "rename");
}

enum status whole_folder_recover(const char *parent, bool (*is_mine)(const char *name),
                                 struct error *error) {
    struct dirent **names;
    int count;
    TRY(list_names(parent, &names, &count, error));
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        status = recover_one(parent, names[i]->d_name, is_mine, error);
    }
    free_names(names, count);
    return status;
}
