#include "common/bench/bench_program.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "common/simt/nsight/nsight.h"
#include "common/simt/simt.h"

enum { MOST_FLAGS = 48 };

/* Reads the flags; *help: it was printed, nothing else is wanted. */
static enum status read_flags(const struct flags *flags, int argc, char **argv, bool *help,
                              struct error *error) {
    struct arguments arguments;
    enum status status = flags_read(flags, argc, argv, &arguments, error);
    *help = status == STATUS_OK && arguments.help;
    if (status == STATUS_OK && !*help && arguments.count > 0) {
        status = error_set(error, STATUS_INVALID_ARGUMENT, "unexpected argument '%s'; --help helps",
                           arguments.values[0]);
    }
    free(arguments.values);
    return status;
}

/*
 * simt reads the variable when the first call reaches it, and writes the page at the end. Elsewhere
 * profile() makes it.
 */
static enum status begin_xray(const char *path, struct error *error) {
    struct simt_api simt;
    char ncu[4096];
    if (path == NULL) {
        return STATUS_OK;
    }
    TRY(file_check_writable(path, error));
    if (simt_find(&simt)) {
        setenv("SIMT_XRAY", path, 1);
        return STATUS_OK;
    }
    enum status status = nsight_find(ncu, sizeof ncu, error);
    return status == STATUS_OK ? status : error_prefix(error, status, "--xray");
}

/* The program's arguments without --xray and its file, behind the program's own path. */
static void leave_out_xray(int argc, char **argv, char *self, char **arguments) {
    size_t count = 0;
    arguments[count++] = self;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--xray") == 0) {
            i++;
        } else if (strncmp(argv[i], "--xray=", strlen("--xray=")) != 0) {
            arguments[count++] = argv[i];
        }
    }
    arguments[count] = NULL;
}

/*
 * On a GPU: the same run under Nsight Compute, whose times are neither printed nor recorded. It
 * comes first, so that files which both runs write are those of the run that is measured.
 */
static enum status profile(const char *path, int argc, char **argv, struct error *error) {
    struct simt_api simt;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (path == NULL || simt_find(&simt)) {
        return STATUS_OK;
    }
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    if (length <= 0 || arguments == NULL) {
        free(arguments);
        return error_set(error, STATUS_IO, "--xray: the program's own path is not known");
    }
    self[length] = '\0';
    leave_out_xray(argc, argv, self, arguments);
    fprintf(stderr, "x-ray: running under Nsight Compute first, for %s\n", path);
    enum status status = nsight_profile(arguments, path, error);
    free(arguments);
    return status == STATUS_OK ? status : error_prefix(error, status, "--xray");
}

/* The program's own flags, then those that every bench has. */
static enum status run_program(const struct bench_program *program, int argc, char **argv,
                               void *setup, struct error *error) {
    bool help;
    const char *xray = NULL;
    struct flag table[MOST_FLAGS];
    struct flags flags = *program->flags;
    if (flags.count >= MOST_FLAGS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "more than %d flags", MOST_FLAGS - 1);
    }
    if (flags.count > 0) {
        memcpy(table, flags.table, flags.count * sizeof *table);
    }
    table[flags.count++] = (struct flag){
        "xray",
        0,
        FLAG_STRING,
        &xray,
        "FILE",
        "HTML page of each kernel: source lines, stalls, waves, roofline; on a GPU by `ncu`"};
    flags.table = table;
    TRY(read_flags(&flags, argc, argv, &help, error));
    if (help) {
        return STATUS_OK;
    }
    TRY(begin_xray(xray, error));
    TRY(program->check(setup, error));
    TRY(profile(xray, argc, argv, error));
    return program->run(setup, error);
}

int bench_program_main(const struct bench_program *program, int argc, char **argv, void *setup) {
    struct error error = {0};
    file_enter_working_directory();
    setenv("SIMT_CHECK", "bounds", 0);
    enum status status = run_program(program, argc, argv, setup, &error);
    return status == STATUS_OK ? 0 : report_failure(program->flags->program, &error, status);
}

/* Reads one size and moves on; false unless it is a number from 1 on with no sign before it. */
static bool parse_size(const char **text, size_t *size) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(*text, &end, 10);
    bool good = (*text)[0] >= '0' && (*text)[0] <= '9' && value >= 1 && errno == 0;
    *size = (size_t)value;
    *text = end;
    return good;
}

bool bench_parse_sizes(const char *text, size_t *const *sizes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!parse_size(&text, sizes[i]) || *text != (i + 1 < count ? ',' : '\0')) {
            return false;
        }
        text++;
    }
    return true;
}

enum status bench_program_check_step(const char *name, bench_step_name *steps,
                                     struct error *error) {
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; steps(i) != NULL; i++) {
        if (strcmp(steps(i), name) == 0) {
            return STATUS_OK;
        }
        used += (size_t)snprintf(names + used, used < sizeof names ? sizeof names - used : 0, " %s",
                                 steps(i));
        used = used < sizeof names ? used : sizeof names;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "--step '%s': unknown step; choose one of%s",
                     name, names);
}

enum status bench_program_check_threads(int threads, struct error *error) {
    return threads >= 1 && threads <= 1024
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: from 1 to 1024", threads);
}

void bench_print_number(const char *format, int width, double value, const char *unit) {
    putchar(' ');
    if (isnan(value)) {
        printf("%*s%*s", width, "-", (int)strlen(unit), "");
    } else {
        printf(format, width, value);
        fputs(unit, stdout);
    }
}

void bench_print_recorded(void) {
    char path[1024];
    printf("\nrecorded in %s\n", bench_results_path("bench.jsonl", path, sizeof path));
}
