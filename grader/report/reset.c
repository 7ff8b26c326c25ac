/* Puts a lab's starter back, labs/LAB/given/starter.*, and keeps a copy of the learner's file. */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "grader/report/labs.h"

enum { PATH_SIZE = 1200, MOST_BYTES = 4 << 20 };

static enum status copy_file(const char *to, const char *from, struct error *error) {
    char *text;
    size_t size;
    TRY(file_read(from, MOST_BYTES, &text, &size, error));
    enum status status = file_write(to, text, size, error);
    free(text);
    return status;
}

/* Keeps a copy of the file beside it, under an unused name: FILE.20260101-120000.bak. */
static enum status keep_copy(const char *path, char *copy, struct error *error) {
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", gmtime_r(&now, &utc));
    snprintf(copy, PATH_SIZE, "%.1100s.%s.bak", path, date);
    if (access(copy, F_OK) == 0) {
        return error_set(error, STATUS_IO, "%s is there already: try again", copy);
    }
    return copy_file(copy, path, error);
}

static bool agrees(const char *path) {
    char answer[16] = "";
    printf("Put the starter back to %s? A copy of your file stays beside it. [y/N] ", path);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum status put_back(const char *path, const char *starter, bool yes, struct error *error) {
    char copy[PATH_SIZE] = "";
    bool there = access(path, F_OK) == 0;
    if (lab_file_is(path, starter)) {
        printf("%s is the starter already\n", path);
        return STATUS_OK;
    }
    if (access(starter, R_OK) != 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "the starter %s: %s; `git checkout` brings it back", starter,
                         strerror(errno));
    }
    if (!yes && !isatty(STDIN_FILENO)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "nobody to ask: --yes puts it back");
    }
    if (!yes && !agrees(path)) {
        printf("nothing was changed\n");
        return STATUS_OK;
    }
    if (there) {
        TRY(keep_copy(path, copy, error));
    }
    TRY(copy_file(path, starter, error));
    printf("%s is the starter again%s%s\n", path, there ? "; your file is " : "", copy);
    return STATUS_OK;
}

static enum status parse(bool *yes, struct arguments *arguments, int argc, char **argv,
                         struct error *error) {
    const struct flag table[] = {
        {"yes", 'y', FLAG_SWITCH, yes, NULL, "do not ask"},
    };
    const struct flags flags = {
        .program = "reset",
        .positional = "LAB",
        .summary = "Puts a lab's starter back and keeps a copy of your file.",
        .table = table,
        .count = sizeof table / sizeof *table,
        .epilogue = "examples:\n"
                    "  bazel run //grader:reset -- 04_sgemm\n"
                    "  bazel run //grader:reset -- w07        # one warm-up\n",
    };
    TRY(flags_read(&flags, argc, argv, arguments, error));
    if (!arguments->help && arguments->count != 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "wants one lab");
    }
    return STATUS_OK;
}

/* "w07", "f3", "w07_shared_tile". */
static bool is_warmup(const char *name) {
    return (name[0] == 'w' || name[0] == 'f') && isdigit((unsigned char)name[1]);
}

/* A warm-up is one file of many: the one whose name begins so. */
static enum status reset_warmup(const char *name, bool yes, struct error *error) {
    char path[PATH_SIZE], pattern[PATH_SIZE];
    glob_t found;
    int number = atoi(name + 1);
    snprintf(pattern, sizeof pattern, "%s/labs/00_warmups/given/starters/%c%02d_*.cu",
             lab_workspace(), name[0], number % 100);
    if (glob(pattern, 0, NULL, &found) != 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "no warm-up '%.40s': they are w01 to w28 and f01 "
                         "to f08",
                         name);
    }
    snprintf(path, sizeof path, "%s/labs/00_warmups%s", lab_workspace(),
             strrchr(found.gl_pathv[0], '/'));
    enum status status = put_back(path, found.gl_pathv[0], yes, error);
    globfree(&found);
    return status;
}

static enum status reset(const char *name, bool yes, struct error *error) {
    char path[PATH_SIZE], starter[PATH_SIZE];
    size_t index;
    if (is_warmup(name)) {
        return reset_warmup(name, yes, error);
    }
    TRY(handout_find(name, &index, error));
    const struct lab *lab = handout_at(index);
    if (lab->file == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s has a file for each exercise: name one, as in "
                         "`bazel run //grader:reset -- w07`",
                         lab->name);
    }
    snprintf(path, sizeof path, "%s/labs/%s/%s", lab_workspace(), lab->name, lab->file);
    lab_starter_path(lab, lab_workspace(), starter, sizeof starter);
    return put_back(path, starter, yes, error);
}

int main(int argc, char **argv) {
    bool yes = false;
    struct error error = {0};
    struct arguments arguments = {0};
    enum status status = parse(&yes, &arguments, argc, argv, &error);
    if (status == STATUS_OK && !arguments.help) {
        status = reset(arguments.values[0], yes, &error);
    }
    free(arguments.values);
    return status == STATUS_OK ? 0 : report_failure("reset", &error, status);
}
