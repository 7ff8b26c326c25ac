/*
 * Puts a lab's starter back and keeps a copy of what was there.
 *
 * The starter comes out of git's store of contents by its name, the hash in labs.c: it is found
 * there whatever was committed since, and it cannot be another one.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "grader/report/labs.h"
#include "grader/report/sha1.h"

extern char **environ;

enum { PATH_SIZE = 1200, MOST_BYTES = 4 << 20 };

/* Starts git in the workspace with its output in a pipe; its own messages go nowhere. */
static enum status start_git(const char *blob, pid_t *child, int *out, struct error *error) {
    int pipe[2];
    posix_spawn_file_actions_t actions;
    const char *const arguments[] = {"git", "-C", lab_workspace(), "cat-file", "blob", blob, NULL};
    if (pipe2(pipe, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_IO, "no pipe for git: %s", strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int code = posix_spawnp(child, "git", &actions, NULL, (char **)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe[1]);
    *out = pipe[0];
    if (code != 0) {
        close(pipe[0]);
        return error_set(error, STATUS_NOT_FOUND, "git cannot be started: %s", strerror(code));
    }
    return STATUS_OK;
}

/* All of a pipe, up to MOST_BYTES; what is longer is no starter and fails by its hash. */
static size_t read_pipe(int descriptor, char *text) {
    size_t size = 0;
    ssize_t got;
    while (size < MOST_BYTES && ((got = read(descriptor, text + size, MOST_BYTES - size)) > 0 ||
                                 (got < 0 && errno == EINTR))) {
        size += got > 0 ? (size_t)got : 0;
    }
    return size;
}

/* Reads the starter; the caller frees it. */
static enum status read_starter(const struct lab *lab, char **text, size_t *size,
                                struct error *error) {
    char blob[SHA1_TEXT];
    pid_t child;
    int out, state;
    *text = malloc(MOST_BYTES);
    if (*text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the starter");
    }
    enum status status = start_git(lab->starter, &child, &out, error);
    if (status == STATUS_OK) {
        *size = read_pipe(out, *text);
        close(out);
        waitpid(child, &state, 0);
        sha1_git_blob(*text, *size, blob);
        if (strcmp(blob, lab->starter) != 0) {
            status = error_set(error, STATUS_NOT_FOUND,
                               "the starter of %s is not in this clone's history (git object %s): "
                               "a clone with all of its history has it",
                               lab->name, lab->starter);
        }
    }
    if (status != STATUS_OK) {
        free(*text);
    }
    return status;
}

/* Keeps what is there beside it, under a name that nothing has: FILE.20260101-120000.bak. */
static enum status keep_copy(const char *path, char *copy, struct error *error) {
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    char *text;
    size_t size;
    TRY(file_read(path, MOST_BYTES, &text, &size, error));
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", gmtime_r(&now, &utc));
    snprintf(copy, PATH_SIZE, "%.1100s.%s.bak", path, date);
    enum status status = access(copy, F_OK) == 0
                             ? error_set(error, STATUS_IO, "%s is there already: try again", copy)
                             : file_write(copy, text, size, error);
    free(text);
    return status;
}

static bool agrees(const char *path) {
    char answer[16] = "";
    printf("Put the starter back to %s? A copy of your file stays beside it. [y/N] ", path);
    fflush(stdout);
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum status put_back(const struct lab *lab, const char *path, bool yes,
                            struct error *error) {
    char copy[PATH_SIZE] = "", blob[SHA1_TEXT], *starter;
    size_t size = 0;
    bool there = access(path, F_OK) == 0;
    if (there) {
        TRY(sha1_git_blob_of(path, blob, error));
        if (strcmp(blob, lab->starter) == 0) {
            printf("%s is the starter already\n", path);
            return STATUS_OK;
        }
    }
    TRY(read_starter(lab, &starter, &size, error));
    enum status status = STATUS_OK;
    if (!yes && !isatty(STDIN_FILENO)) {
        status = error_set(error, STATUS_INVALID_ARGUMENT, "nobody to ask: --yes puts it back");
    } else if (!yes && !agrees(path)) {
        printf("nothing was changed\n");
        free(starter);
        return STATUS_OK;
    }
    if (status == STATUS_OK && there) {
        status = keep_copy(path, copy, error);
    }
    if (status == STATUS_OK) {
        status = file_write(path, starter, size, error);
    }
    free(starter);
    if (status == STATUS_OK) {
        printf("%s is the starter again%s%s\n", path, there ? "; your file is " : "", copy);
    }
    return status;
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
        .epilogue = "example:\n  bazel run //grader:reset -- 04_sgemm\n",
    };
    TRY(flags_parse(&flags, argc, argv, arguments, error));
    if (arguments->help) {
        flags_help(&flags, stdout);
    } else if (arguments->count != 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "wants one lab");
    }
    return STATUS_OK;
}

static enum status reset(const char *name, bool yes, struct error *error) {
    char path[PATH_SIZE];
    const struct lab *lab;
    TRY(lab_find(name, &lab, error));
    snprintf(path, sizeof path, "%s/labs/%s/%s", lab_workspace(), lab->name, lab->file);
    return put_back(lab, path, yes, error);
}

int main(int argc, char **argv) {
    bool yes = false;
    struct error error = {0};
    const char **values = calloc((size_t)argc, sizeof *values);
    struct arguments arguments = {.values = values};
    enum status status =
        values == NULL ? STATUS_OUT_OF_MEMORY : parse(&yes, &arguments, argc, argv, &error);
    if (status == STATUS_OK && !arguments.help) {
        status = reset(values[0], yes, &error);
    }
    free(values);
    return status == STATUS_OK ? 0 : report_failure("reset", &error, status);
}
