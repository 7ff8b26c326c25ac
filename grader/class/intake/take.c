/* One submission becomes a task. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "grader/class/intake/intake.h"
#include "grader/report/run.h"

static enum status read_single(void *source, char **text, size_t *size, struct error *error) {
    return file_read(source, MOST_SOURCE, text, size, error);
}

/* A file alone: the lab's that it is named after, or the only lab's with that ending. */
static enum status intake_file(struct found *found, const char *path, const char *entry,
                               uint64_t bytes, struct error *error) {
    size_t match = LAB_COUNT, matches = 0;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const char *file = lab_at(i)->file;
        size_t length = strlen(entry), tail = strlen(file);
        const char *ending = strrchr(entry, '.');
        if (!found->chosen[i]) {
            continue;
        }
        if (length >= tail && strcmp(entry + length - tail, file) == 0) {
            return found_add(found, file, FOUND_PLAIN, bytes, read_single, (void *)path, error);
        }
        if (ending != NULL && strcmp(ending, strrchr(file, '.')) == 0) {
            match = i;
            matches++;
        }
    }
    if (matches == 1) {
        return found_add(found, lab_at(match)->file, FOUND_PLAIN, bytes, read_single, (void *)path,
                         error);
    }
    found_almost(found, entry);
    return STATUS_OK;
}

static enum status find(struct found *found, const struct submission *s, const char *path,
                        const char *scratch, struct error *error) {
    char git[TASK_PATH];
    struct stat seen;
    const char *ending = strrchr(s->entry, '.');
    if (lstat(path, &seen) != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "cannot read: %s", strerror(errno));
    }
    if (S_ISDIR(seen.st_mode)) {
        return intake_is_git(path, git, sizeof git) ? intake_git(found, git, scratch, error)
                                                    : intake_folder(found, path, error);
    }
    if (!S_ISREG(seen.st_mode)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "it is a link or a device: a folder, a file, a .zip or a git repository "
                         "is wanted");
    }
    if (access(path, R_OK) != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "cannot read: %s", strerror(errno));
    }
    return ending != NULL && strcasecmp(ending, ".zip") == 0
               ? intake_zip(found, path, error)
               : intake_file(found, path, s->entry, (uint64_t)seen.st_size, error);
}

static enum status make(const char *output, unsigned id, const char *name, struct error *error) {
    char path[TASK_PATH];
    TRY(task_path(path, output, id, name, error));
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%.400s: %s", path, strerror(errno));
}

static enum status save_files(struct task *task, const struct found *found, const char *output,
                              struct error *error) {
    char name[300], path[TASK_PATH];
    TRY(make(output, task->id, "files", error));
    TRY(make(output, task->id, "files/labs", error));
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (found->labs[i].text == NULL) {
            continue;
        }
        snprintf(name, sizeof name, "files/labs/%s", lab_at(i)->name);
        TRY(make(output, task->id, name, error));
        task_file(name, sizeof name, lab_at(i));
        TRY(task_path(path, output, task->id, name, error));
        TRY(file_write(path, found->labs[i].text, found->labs[i].size, error));
        task->has[i] = true;
    }
    return STATUS_OK;
}

static void refuse_without_file(struct task *task, const struct found *found) {
    const char *wanted = "the file that a lab's handout names";
    size_t labs = 0;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (task->has[i]) {
            return;
        }
        labs += found->chosen[i];
    }
    for (size_t i = 0; i < LAB_COUNT && labs == 1; i++) {
        wanted = found->chosen[i] ? lab_at(i)->file : wanted;
    }
    char line[sizeof task->refused];
    snprintf(line, sizeof line, "no file of a lab is in it: %s is wanted%s%s", wanted,
             found->almost[0] != '\0' ? "; " : "", found->almost);
    text_clean(task->refused, sizeof task->refused, line, false);
}

static enum status take(struct task *task, struct found *found, const struct submission *s,
                        const char *folder, const char *output, struct error *error) {
    char path[TASK_PATH], scratch[TASK_PATH];
    struct error why = {0};
    if (s->refused[0] != '\0') {
        snprintf(task->refused, sizeof task->refused, "%s", s->refused);
        return STATUS_OK;
    }
    snprintf(path, sizeof path, "%.3700s/%s", folder, s->entry);
    TRY(task_path(scratch, output, task->id, "git", error));
    enum status status = find(found, s, path, scratch, &why);
    if (status != STATUS_OK) {
        text_clean(task->refused, sizeof task->refused, error_text(&why, status), false);
        return STATUS_OK;
    }
    TRY(save_files(task, found, output, error));
    refuse_without_file(task, found);
    return STATUS_OK;
}

enum status intake_take(struct task *task, const struct submission *s, const char *folder,
                        const char *output, const bool chosen[LAB_COUNT], struct error *error) {
    struct found found = {.chosen = chosen};
    unsigned id = task->id;
    *task = (struct task){.id = id};
    snprintf(task->name, sizeof task->name, "%s", s->name);
    TRY(make(output, id, "", error));
    enum status status = take(task, &found, s, folder, output, error);
    found_free(&found);
    TRY(status);
    return task_save(task, output, error);
}
