/**
 * @file run.c
 * @brief Runs a CUDA program on the emulator: bazel run //common/simt:run -- PROGRAM ARGUMENTS
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "common/simt/runtime/program/program.h"

static const char EPILOGUE[] =
    "Flags come before PROGRAM and need the form --name=VALUE; what follows PROGRAM is its own.\n"
    "They stand for the variables SIMT_GPU, SIMT_CHECK, SIMT_REPORT, SIMT_XRAY, SIMT_THREADS and\n"
    "SIMT_INSTRUCTION_LIMIT, which work without this program, too:\n"
    "\n"
    "  LD_PRELOAD=.../libcudart.so.13 SIMT_REPORT=text ./saxpy\n"
    "\n"
    "PROGRAM is built with: nvcc -cudart shared --compress-mode=none -lineinfo\n"
    "  -gencode arch=compute_75,code=compute_75\n";

/** Values of the flags; NULL: leave the variable as it is. */
struct options {
    const char *gpu, *check, *report, *xray, *threads, *limit;
};

/** @return how many arguments, the program's name counted, come before PROGRAM. */
static int own_arguments(int argc, char **argv) {
    int count = 1;
    while (count < argc && argv[count][0] == '-') {
        count++;
        if (strcmp(argv[count - 1], "--") == 0) {
            break;
        }
    }
    return count;
}

/** Finds the library beside this program. @return false when it is not there */
static bool find_library(char *path, size_t size) {
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) {
        return false;
    }
    own[length] = '\0';
    int used = snprintf(path, size, "%s/libcudart.so.13", dirname(own));
    return used > 0 && (size_t)used < size && access(path, R_OK) == 0;
}

static void set_variable(const char *name, const char *value) {
    if (value != NULL) {
        setenv(name, value, 1);
    }
}

/** Puts the library before all others, those that the caller preloads included. */
static void preload(const char *library) {
    const char *before = getenv("LD_PRELOAD");
    char all[2 * PATH_MAX];
    snprintf(all, sizeof all, "%s%s%s", library, before != NULL ? ":" : "",
             before != NULL ? before : "");
    setenv("LD_PRELOAD", all, 1);
}

/** Becomes the program. @return only on failure, the exit status */
static int start(const struct options *options, char **argv) {
    char library[PATH_MAX];
    struct error error = {0};
    if (!find_library(library, sizeof library)) {
        fprintf(stderr,
                "run: libcudart.so.13 is not beside this program: start it with bazel run\n");
        return 1;
    }
    enum status status = program_check(argv[0], &error);
    if (status != STATUS_OK) {
        return report_failure("run", &error, status);
    }
    set_variable("SIMT_GPU", options->gpu);
    set_variable("SIMT_CHECK", options->check);
    set_variable("SIMT_REPORT", options->report);
    set_variable("SIMT_XRAY", options->xray);
    set_variable("SIMT_THREADS", options->threads);
    set_variable("SIMT_INSTRUCTION_LIMIT", options->limit);
    preload(library);
    execv(argv[0], argv);
    fprintf(stderr, "run: %s: %s\n", argv[0], strerror(errno));
    return 1;
}

int main(int argc, char **argv) {
    struct options options = {0};
    const struct flag table[] = {
        {"gpu", 'g', FLAG_STRING, &options.gpu, "NAME",
         "t4, l4, rtx3060, rtx3090, rtx4090, rtx5090, a100, h100, h200 or b200 (h200)"},
        {"check", 'c', FLAG_STRING, &options.check, "CHECKS",
         "off, bounds, full, or some of them, as bounds,races (full)"},
        {"report", 'r', FLAG_STRING, &options.report, "FORMAT",
         "text, json or sarif, at the end (none)"},
        {"xray", 'x', FLAG_STRING, &options.xray, "FILE",
         "HTML page that shows each kernel line by line, written at the end (none)"},
        {"threads", 't', FLAG_STRING, &options.threads, "N", "CPU threads to use (all)"},
        {"instruction-limit", 'i', FLAG_STRING, &options.limit, "N",
         "warp instructions a block may take (100000000)"},
    };
    const struct flags flags = {.program = "run",
                                .positional = "PROGRAM [ARGUMENTS]",
                                .summary = "Runs a CUDA program on the CPU, checked and counted.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = EPILOGUE};
    int own = own_arguments(argc, argv);
    struct arguments arguments;
    struct error error = {0};
    enum status status = flags_read(&flags, own, argv, &arguments, &error);
    free(arguments.values);
    if (status != STATUS_OK) {
        return report_failure("run", &error, status);
    }
    if (arguments.help) {
        return 0;
    }
    if (own == argc) {
        fprintf(stderr, "run: which program? run --help tells more\n");
        return 1;
    }
    file_enter_working_directory();
    return start(&options, argv + own);
}
