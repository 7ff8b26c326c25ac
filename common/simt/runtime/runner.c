#include "common/simt/runtime/runner.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/runtime/library_path.h"
#include "common/simt/runtime/program/program.h"
#include "common/simt/runtime/settings.h"

static const char EPILOGUE[] =
    "Flags come before PROGRAM; what follows PROGRAM is its own. They stand for the variables\n"
    "SIMT_GPU, SIMT_CHECK, SIMT_REPORT, SIMT_REPORT_FILE, SIMT_XRAY, SIMT_DEVICES,\n"
    "SIMT_THREADS, SIMT_INSTRUCTION_LIMIT and SIMT_ERROR_EXITCODE, which work without this "
    "program, too:\n"
    "\n"
    "  LD_PRELOAD=.../libcudart.so.13 SIMT_REPORT=text ./saxpy\n"
    "\n"
    "PROGRAM is built with: nvcc -cudart shared --compress-mode=none -lineinfo\n"
    "  -gencode arch=compute_75,code=compute_75\n";

enum { OPTIONS = 9 };

/** A flag, and the variable that it stands for. */
struct option {
    const char *name;
    char letter;
    const char *variable, *argument, *help;
};

static const struct option options[OPTIONS] = {
    {"gpu", 'g', "SIMT_GPU", "NAME",
     "t4, l4, rtx3060, rtx3090, rtx4090, rtx5090, a100, h100, h200 or b200 (h200)"},
    {"check", 'c', "SIMT_CHECK", "CHECKS",
     "off, bounds, full, or some of them, as bounds,races (full)"},
    {"report", 'r', "SIMT_REPORT", "FORMAT", "text, json or sarif, at the end"},
    {"output", 'o', "SIMT_REPORT_FILE", "FILE", "where the report is written (stderr)"},
    {"xray", 'x', "SIMT_XRAY", "FILE",
     "HTML page that shows each kernel line by line, written at the end (none)"},
    {"devices", 'd', "SIMT_DEVICES", "N", "emulated GPUs, 1 to 8 (1)"},
    {"threads", 't', "SIMT_THREADS", "N", "CPU threads to use (all)"},
    {"instruction-limit", 'i', "SIMT_INSTRUCTION_LIMIT", "N",
     "warp instructions a block may take (100000000)"},
    {"error-exitcode", 'e', "SIMT_ERROR_EXITCODE", "N",
     "exit status where something was found; 0: the program's own"},
};

/** @return whether the value of this flag is the next argument. */
static bool takes_next(const char *argument) {
    if (argument[1] != '-') {
        return argument[1] != 'h' && argument[2] == '\0';
    }
    return strchr(argument, '=') == NULL && strcmp(argument, "--help") != 0 &&
           strcmp(argument, "--version") != 0;
}

/** @return how many arguments, the program's name counted, come before PROGRAM. */
static int own_arguments(int argc, char **argv) {
    int count = 1;
    while (count < argc && argv[count][0] == '-' && argv[count][1] != '\0') {
        const char *argument = argv[count++];
        if (strcmp(argument, "--") == 0) {
            break;
        }
        count += count < argc && takes_next(argument);
    }
    return count;
}

/** Looks for a program without a slash in $PATH, as a shell does, where the folder has none.
 *  @return a path, in @p found or as it was */
static char *find_program(char *name, char *found, size_t size) {
    const char *path = getenv("PATH");
    if (strchr(name, '/') != NULL || access(name, F_OK) == 0 || path == NULL) {
        return name;
    }
    while (*path != '\0') {
        size_t length = strcspn(path, ":");
        int used = snprintf(found, size, "%.*s/%s", (int)length, path, name);
        if (length > 0 && used > 0 && (size_t)used < size && access(found, X_OK) == 0) {
            return found;
        }
        path += length + (path[length] == ':');
    }
    return name;
}

/** Sets what the program reads, and looks whether it will like it. */
static enum status set_variables(const struct runner *runner, const char *const values[OPTIONS],
                                 struct error *error) {
    struct simt_settings settings;
    int code;
    for (size_t n = 0; n < OPTIONS; n++) {
        if (values[n] != NULL) {
            setenv(options[n].variable, values[n], 1);
        }
    }
    if (runner->report != NULL) {
        setenv("SIMT_REPORT", runner->report, 0);
    }
    if (runner->error_exit != NULL) {
        setenv("SIMT_ERROR_EXITCODE", runner->error_exit, 0);
    }
    TRY(simt_error_exitcode(&code, error));
    TRY(simt_settings_read(&settings, error));
    if (settings.report_file[0] != '\0' && settings.report == SIMT_REPORT_NONE) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--output is the file of a report: --report says which");
    }
    return STATUS_OK;
}

/** Becomes the program. @return only on failure, why */
static enum status start(char *program, char **argv, struct error *error) {
    char library[PATH_MAX];
    char nccl[PATH_MAX];
    TRY(library_path_find(library, sizeof library, error));
    if (library_path_find_nccl(library, nccl, sizeof nccl)) {
        TRY(library_path_preload(nccl, error));
    }
    TRY(library_path_preload(library, error));
    execv(program, argv);
    return error_set(error, STATUS_IO, "%s: %s", argv[0], strerror(errno));
}

static enum status read_flags(const struct runner *runner, int own, char **argv,
                              const char *values[OPTIONS], bool *help, struct error *error) {
    struct flag table[OPTIONS];
    struct arguments arguments;
    for (size_t n = 0; n < OPTIONS; n++) {
        const struct option *o = &options[n];
        table[n] = (struct flag){o->name, o->letter, FLAG_STRING, &values[n], o->argument, o->help};
    }
    const struct flags flags = {.program = runner->program,
                                .positional = "PROGRAM [ARGUMENTS]",
                                .summary = runner->summary,
                                .table = table,
                                .count = OPTIONS,
                                .epilogue = EPILOGUE};
    enum status status = flags_read(&flags, own, argv, &arguments, error);
    free(arguments.values);
    *help = arguments.help;
    return status;
}

int runner_main(const struct runner *runner, int argc, char **argv) {
    const char *values[OPTIONS] = {NULL};
    struct error error = {0};
    bool help = false;
    int own = own_arguments(argc, argv);
    enum status status = read_flags(runner, own, argv, values, &help, &error);
    if (status == STATUS_OK && help) {
        return 0;
    }
    if (status == STATUS_OK && own == argc) {
        status = error_set(&error, STATUS_INVALID_ARGUMENT, "which program? %s --help tells more",
                           runner->program);
    }
    const char *speaker = runner->program;
    if (status == STATUS_OK) {
        char found[PATH_MAX];
        char *program = find_program(argv[own], found, sizeof found);
        status = program_check(program, &error);
        if (status == STATUS_OK) {
            status = set_variables(runner, values, &error);
            speaker = status == STATUS_OK ? speaker : "simt"; /* as the library says it */
        }
        status = status == STATUS_OK ? start(program, argv + own, &error) : status;
    }
    (void)report_failure(speaker, &error, status);
    return runner->failed;
}
