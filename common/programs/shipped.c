#include "common/programs/shipped.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(PATH_MAX <= FOLDER_PATH_BYTES, "every path of the system fits");

/* Whether ROOT/datasets/NAME exists; path receives it. */
static bool found_in(const char *root, const char *name, char path[FOLDER_PATH_BYTES]) {
    int length = snprintf(path, FOLDER_PATH_BYTES, "%s/datasets/%s", root, name);
    return length > 0 && length < FOLDER_PATH_BYTES && access(path, F_OK) == 0;
}

static bool found_in_workspace(const char *name, char path[FOLDER_PATH_BYTES]) {
    const char *root = getenv("BUILD_WORKSPACE_DIRECTORY");
    return root != NULL && root[0] == '/' && found_in(root, name, path);
}

/* The absolute path of this program. */
static bool find_program(char path[FOLDER_PATH_BYTES]) {
    ssize_t length = readlink("/proc/self/exe", path, FOLDER_PATH_BYTES - 1);
    path[length > 0 ? length : 0] = '\0';
    return path[0] == '/';
}

/* A program's runfiles lie beside it, or in the folder that a test names. */
static bool found_in_runfiles(const char *name, char path[FOLDER_PATH_BYTES]) {
    char root[FOLDER_PATH_BYTES], program[FOLDER_PATH_BYTES];
    const char *runfiles = getenv("RUNFILES_DIR");
    if (runfiles != NULL && folder_join(root, runfiles, "warpbook", "", NULL) == STATUS_OK &&
        found_in(root, name, path)) {
        return true;
    }
    if (!find_program(program)) {
        return false;
    }
    int length = snprintf(root, sizeof root, "%s.runfiles/warpbook", program);
    return length < (int)sizeof root && found_in(root, name, path);
}

/* Whether the folder contains the file. */
static bool holds(const char *folder, const char *file) {
    char path[FOLDER_PATH_BYTES];
    return folder_join(path, folder, file, "", NULL) == STATUS_OK && access(path, F_OK) == 0;
}

/* Goes up from the folder to the first one that contains the file, and looks only there. The folder
   is an absolute path; it is changed. */
static bool found_around(char *folder, const char *file, const char *name,
                         char path[FOLDER_PATH_BYTES]) {
    while (folder[0] != '\0' && !holds(folder, file)) {
        *strrchr(folder, '/') = '\0';
    }
    return folder[0] != '\0' && found_in(folder, name, path);
}

/* Looks in the current folder, then in the workspace around it. */
static bool found_above(const char *name, char path[FOLDER_PATH_BYTES]) {
    char folder[FOLDER_PATH_BYTES];
    return getcwd(folder, sizeof folder) != NULL && folder[0] == '/' &&
           (found_in(folder, name, path) || found_around(folder, "WORKSPACE", name, path));
}

/* Looks in the grader's archive that the program was unpacked from. */
static bool found_in_archive(const char *name, char path[FOLDER_PATH_BYTES]) {
    char program[FOLDER_PATH_BYTES];
    return find_program(program) && found_around(program, "manifest.tsv", name, path);
}

enum status shipped_find(const char *name, const char *flag, const char *hint,
                         char path[FOLDER_PATH_BYTES], struct error *error) {
    if (found_in_workspace(name, path) || found_in_runfiles(name, path) ||
        found_above(name, path) || found_in_archive(name, path)) {
        return STATUS_OK;
    }
    path[0] = '\0';
    return error_set(error, STATUS_NOT_FOUND, "no %s given, and datasets/%s is not there: %s", flag,
                     name, hint);
}
