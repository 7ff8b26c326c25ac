/* Runs `ncu`: to profile a program, and to print what a report holds. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/grow.h"
#include "common/simt/nsight/nsight.h"

extern char **environ;

/* Text that ncu may print: a page of a large report. */
static const size_t MOST_TEXT = (size_t)256 << 20;

enum { MOST_ARGUMENTS = 256 };

static bool is_program(const char *folder, size_t length, char *path, size_t size) {
    return length > 0 && snprintf(path, size, "%.*s/ncu", (int)length, folder) < (int)size &&
           access(path, X_OK) == 0;
}

static bool find_in(const char *folders, char *path, size_t size) {
    for (const char *at = folders; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ":");
        if (is_program(at, length, path, size)) {
            return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

enum status nsight_find(char *path, size_t size, struct error *error) {
    const char *home = getenv("CUDA_HOME");
    char folder[FOLDER_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s/bin", home != NULL ? home : "/usr/local/cuda");
    if (find_in(getenv("PATH"), path, size) || find_in(folder, path, size)) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_NOT_FOUND,
        "on a GPU the x-ray page is made of what Nsight Compute measures, and `ncu` is "
        "not on PATH: install it (package cuda-nsight-compute-13-0, or NVIDIA's "
        "website); simt's page needs --config=simt and no GPU");
}

/* Reads a pipe to its end; the text ends with NUL. */
static enum status read_all(int from, char **text, size_t *size, struct error *error) {
    size_t capacity = 0;
    *text = NULL;
    *size = 0;
    for (;;) {
        if (*size > MOST_TEXT || !array_grow(text, &capacity, *size + (1 << 16), 1)) {
            return error_set(error, STATUS_TOO_LONG, "ncu prints more than %zu bytes", MOST_TEXT);
        }
        ssize_t got = read(from, *text + *size, capacity - *size - 1);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            (*text)[*size] = '\0';
            return got == 0 ? STATUS_OK : error_set(error, STATUS_IO, "ncu: %s", strerror(errno));
        }
        *size += (size_t)got;
    }
}

/* Starts a program whose output, and errors if both, goes into a pipe. */
static enum status start(char *const *arguments, char *const *variables, bool both, int *from,
                         pid_t *child, struct error *error) {
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0 || posix_spawn_file_actions_init(&actions) != 0) {
        return error_set(error, STATUS_IO, "%s: %s", arguments[0], strerror(errno));
    }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (both) {
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    }
    int failed = posix_spawn(child, arguments[0], &actions, NULL, arguments, variables);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *from = ends[0];
    if (failed != 0) {
        close(ends[0]);
        return error_set(error, STATUS_IO, "%s: %s", arguments[0], strerror(failed));
    }
    return STATUS_OK;
}

/* Runs a program to its end. *text receives what it printed; the caller frees it. */
static enum status run(char *const *arguments, char *const *variables, bool both, char **text,
                       size_t *size, int *code, struct error *error) {
    int from, ended = 0;
    pid_t child;
    TRY(start(arguments, variables, both, &from, &child, error));
    enum status status = read_all(from, text, size, error);
    close(from);
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
    *code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    return status;
}

/* ---- A report as text ---- */

/* The first line with "==ERROR==" of what ncu printed, without that word; else its first line. */
static const char *first_error(char *text) {
    static const char word[] = "==ERROR== ";
    char *line = strstr(text, word);
    line = line != NULL ? line + sizeof word - 1 : text;
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static enum status export_page(const char *ncu, const char *report, bool source, char **text,
                               size_t *size, struct error *error) {
    char *raw[] = {(char *)ncu, "--import",      (char *)report, "--page", "raw",
                   "--csv",     "--print-units", "base",         NULL};
    char *lines[] = {(char *)ncu, "--import",       (char *)report, "--page", "source",
                     "--csv",     "--print-source", "cuda,sass",    NULL};
    int code;
    TRY(run(source ? lines : raw, environ, false, text, size, &code, error));
    return code == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%s: ncu: %s", report, first_error(*text));
}

/* Both pages, one behind the other. */
static enum status export_report(const char *report, char **text, size_t *size,
                                 struct error *error) {
    char ncu[FOLDER_PATH_BYTES], *lines = NULL;
    size_t raw_size = 0, lines_size = 0;
    struct error no_lines = {0};
    TRY(nsight_find(ncu, sizeof ncu, error));
    TRY(export_page(ncu, report, false, text, &raw_size, error));
    /* A program without a line table has no source page: its launches are shown as a whole. */
    if (export_page(ncu, report, true, &lines, &lines_size, &no_lines) != STATUS_OK) {
        lines_size = 0;
    }
    char *both = realloc(*text, raw_size + 1 + lines_size + 1);
    if (both != NULL) {
        *text = both;
        both[raw_size] = '\n';
        memcpy(both + raw_size + 1, lines_size > 0 ? lines : "", lines_size);
        both[raw_size + 1 + lines_size] = '\0';
        *size = raw_size + 1 + lines_size;
    }
    free(lines);
    return both != NULL ? STATUS_OK
                        : error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", report);
}

static bool is_report(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".ncu-rep") == 0;
}

enum status nsight_convert(const char *from, const char *to, struct error *error) {
    struct nsight_report report = {0};
    char *text = NULL;
    size_t size = 0;
    enum status status = is_report(from) ? export_report(from, &text, &size, error)
                                         : file_read(from, MOST_TEXT, &text, &size, error);
    if (status == STATUS_OK) {
        status = nsight_read(&report, text, size, from, error);
    }
    if (status == STATUS_OK) {
        status = nsight_write(&report, to, error);
    }
    nsight_free(&report);
    free(text);
    return status;
}

/* ---- Profiling ---- */

/* All metrics of the table, by commas. */
static const char METRICS[] = ""
#define NSIGHT_LIST(name, metric, kind) metric ","
    NSIGHT_METRICS(NSIGHT_LIST)
#undef NSIGHT_LIST
        "smsp__pcsamp_sample_count";

static enum status profile_failed(char *printed, int code, struct error *error) {
    if (strstr(printed, "ERR_NVGPUCTRPERM") != NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the driver lets only root read the GPU's counters: run this as root, or "
                         "load the module nvidia with NVreg_RestrictProfilingToAdminUsers=0");
    }
    if (strstr(printed, "No kernels were profiled") != NULL) {
        return error_set(error, STATUS_DEVICE, "ncu profiled no kernel: none was launched");
    }
    return error_set(error, STATUS_DEVICE, "ncu ended with %d: %s", code, first_error(printed));
}

static enum status run_profiler(const char *ncu, const char *report, char *const *arguments,
                                struct error *error) {
    char *const options[] = {(char *)ncu,
                             "--clock-control",
                             "none",
                             "--filter-mode",
                             "per-launch-config",
                             "--launch-count",
                             "1",
                             "--import-source",
                             "yes",
                             "--section",
                             "SourceCounters",
                             "--section",
                             "LaunchStats",
                             "--section",
                             "Occupancy",
                             "--metrics",
                             (char *)METRICS,
                             "--force-overwrite",
                             "--export",
                             (char *)report};
    char *all[MOST_ARGUMENTS], *text = NULL;
    size_t count = sizeof options / sizeof *options, size = 0;
    int code = 0;
    memcpy(all, options, sizeof options);
    for (size_t i = 0; arguments[i] != NULL && count + 1 < MOST_ARGUMENTS; i++) {
        all[count++] = arguments[i];
    }
    all[count] = NULL;
    setenv("WARPBOOK_PROFILED", "1", 1);
    enum status status = run(all, environ, true, &text, &size, &code, error);
    unsetenv("WARPBOOK_PROFILED");
    if (status == STATUS_OK && !path_exists(report)) {
        status = profile_failed(text, code, error);
    }
    free(text);
    return status;
}

enum status nsight_profile(char *const *arguments, const char *to, struct error *error) {
    char ncu[FOLDER_PATH_BYTES], folder[] = "/tmp/xray_XXXXXX", report[sizeof folder + 32];
    TRY(nsight_find(ncu, sizeof ncu, error));
    if (mkdtemp(folder) == NULL) {
        return error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
    }
    snprintf(report, sizeof report, "%s/report.ncu-rep", folder);
    enum status status = run_profiler(ncu, report, arguments, error);
    if (status == STATUS_OK) {
        status = nsight_convert(report, to, error);
    }
    unlink(report);
    rmdir(folder);
    return status;
}
