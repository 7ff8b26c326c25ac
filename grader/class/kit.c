#include "grader/class/kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "grader/class/copy_file.h"

enum { MOST_MANIFEST = 16 << 20 };

/* Makes the folders of a path that ends with a file. */
static enum status make_folders(char *path, struct error *error) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        enum status status =
            made ? STATUS_OK
                 : error_set(error, STATUS_IO, "%.400s: cannot make it: %s", path, strerror(errno));
        *slash = '/';
        TRY(status);
    }
    return STATUS_OK;
}

/* @param labs names with commas between, or "all" */
static bool is_needed(char *labs, const bool chosen[LAB_COUNT]) {
    char *rest;
    for (char *name = strtok_r(labs, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        for (size_t i = 0; i < LAB_COUNT; i++) {
            if (strcmp(name, "all") == 0 || (chosen[i] && strcmp(name, lab_at(i)->name) == 0)) {
                return true;
            }
        }
    }
    return false;
}

static enum status copy_line(char *line, const char *runfiles, const char *folder,
                             const bool chosen[LAB_COUNT], struct error *error) {
    char from[TASK_PATH], to[TASK_PATH];
    char *tab = strchr(line, '\t'), *last = strrchr(line, '\t');
    if (tab == last) {
        return error_set(error, STATUS_BAD_FORMAT, "the kit's manifest: '%.200s' has no two tabs",
                         line);
    }
    *tab = *last = '\0';
    if (!is_needed(last + 1, chosen)) {
        return STATUS_OK;
    }
    const char *below = tab[1] == '/' ? "" : runfiles;
    int length = snprintf(from, sizeof from, "%s%s%s", below, below[0] != '\0' ? "/" : "", tab + 1);
    if (length >= (int)sizeof from ||
        snprintf(to, sizeof to, "%s/%s", folder, line) >= (int)sizeof to) {
        return error_set(error, STATUS_TOO_LONG, "a path of the kit is too long");
    }
    TRY(make_folders(to, error));
    return copy_file(from, to, error);
}

static enum status check_labs(const char *folder, const bool chosen[LAB_COUNT],
                              struct error *error) {
    char path[TASK_PATH];
    for (size_t i = 0; i < LAB_COUNT; i++) {
        snprintf(path, sizeof path, "%.3900s/%s/link", folder, lab_at(i)->name);
        if (chosen[i] && access(path, R_OK) != 0) {
            return error_set(error, STATUS_NOT_FOUND,
                             "%s cannot be graded with what was built here; --labs leaves it out",
                             lab_at(i)->name);
        }
    }
    return STATUS_OK;
}

static enum status copy_lines(char *text, const char *runfiles, const char *folder,
                              const bool chosen[LAB_COUNT], struct error *error) {
    char *rest, program[TASK_PATH];
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        TRY(copy_line(line, runfiles, folder, chosen, error));
    }
    TRY(check_labs(folder, chosen, error));
    /* A program finds its libraries from where it lies, which a link does not change. */
    snprintf(program, sizeof program, "%.3900s/bin/grade_submission", folder);
    unlink(program);
    return symlink("../run/grader/class/grade_submission", program) == 0
               ? folder_write(folder, "whole", "", 0, "kit", error)
               : error_set(error, STATUS_IO, "%.400s: %s", program, strerror(errno));
}

enum status kit_copy(const char *manifest, const char *runfiles, const char *output,
                     const bool chosen[LAB_COUNT], struct error *error) {
    char folder[TASK_PATH], whole[TASK_PATH + 16], *text;
    size_t size;
    snprintf(folder, sizeof folder, "%.3900s/kit", output);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    if (path_exists(whole)) {
        return STATUS_OK;
    }
    TRY(file_read(manifest, MOST_MANIFEST, &text, &size, error));
    enum status status = copy_lines(text, runfiles, folder, chosen, error);
    free(text);
    return status;
}

bool kit_needs_gpu(const char *output) {
    char path[TASK_PATH], *text;
    size_t size;
    snprintf(path, sizeof path, "%.3900s/kit/device", output);
    if (file_read(path, 100, &text, &size, NULL) != STATUS_OK) {
        return false;
    }
    bool needs = strncmp(text, "gpu", 3) == 0;
    free(text);
    return needs;
}
