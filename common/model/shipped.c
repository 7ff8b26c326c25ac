#include "common/model/shipped.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(PATH_MAX <= FOLDER_PATH_BYTES, "a path that the system knows fits");

/* Whether there is ROOT/datasets/NAME; then path is that. */
static bool found_in(const char *root, const char *name, char path[FOLDER_PATH_BYTES]) {
    int length = snprintf(path, FOLDER_PATH_BYTES, "%s/datasets/%s", root, name);
    return length > 0 && length < FOLDER_PATH_BYTES && path_exists(path);
}

static bool found_in_workspace(const char *name, char path[FOLDER_PATH_BYTES]) {
    const char *root = getenv("BUILD_WORKSPACE_DIRECTORY");
    return root != NULL && root[0] == '/' && found_in(root, name, path);
}

/* What a program is built to bring along lies beside it, or where a test says. */
static bool found_in_runfiles(const char *name, char path[FOLDER_PATH_BYTES]) {
    char root[FOLDER_PATH_BYTES], program[FOLDER_PATH_BYTES];
    const char *runfiles = getenv("RUNFILES_DIR");
    if (runfiles != NULL && folder_join(root, runfiles, "warpbook", "", NULL) == STATUS_OK &&
        found_in(root, name, path)) {
        return true;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
        return false;
    }
    program[length] = '\0';
    length = snprintf(root, sizeof root, "%s.runfiles/warpbook", program);
    return length < (ssize_t)sizeof root && found_in(root, name, path);
}

/* Whether the folder is a workspace. */
static bool is_workspace(const char *folder) {
    char file[FOLDER_PATH_BYTES];
    return folder_join(file, folder, "WORKSPACE", "", NULL) == STATUS_OK && path_exists(file);
}

/* The current folder, or the workspace that it lies in. */
static bool found_above(const char *name, char path[FOLDER_PATH_BYTES]) {
    char folder[FOLDER_PATH_BYTES];
    if (getcwd(folder, sizeof folder) == NULL || folder[0] != '/') {
        return false;
    }
    if (found_in(folder, name, path)) {
        return true;
    }
    while (folder[0] != '\0' && !is_workspace(folder)) {
        *strrchr(folder, '/') = '\0';
    }
    return folder[0] != '\0' && found_in(folder, name, path);
}

enum status shipped_find(const char *name, const char *flag, const char *hint,
                         char path[FOLDER_PATH_BYTES], struct error *error) {
    if (found_in_workspace(name, path) || found_in_runfiles(name, path) ||
        found_above(name, path)) {
        return STATUS_OK;
    }
    path[0] = '\0';
    return error_set(error, STATUS_NOT_FOUND, "no %s given, and datasets/%s is not there: %s", flag,
                     name, hint);
}
