/*
 * Compiles a submission's file in the sandbox: see README.md in grader/sandbox.
 *
 *   compile --output=OBJECT [--unlinked] [--read=FILE]... [--toolkit=FILE] [--host=GCC] --
 *       COMPILER ARGUMENTS
 *
 * The compiler's output, "-o OBJECT", is added here. With --unlinked it is no object file, but,
 * say, code for a GPU alone. `@FILE` stands for the lines of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "grader/isolation/plain_text.h"
#include "grader/sandbox/compile/compile.h"
#include "grader/sandbox/sandbox.h"
#include "grader/sandbox/temporary_folder.h"

enum {
    MOST_FILE = 256 << 20,   /* bytes of the object file, and of each temporary one */
    MOST_TEXT = 1 << 20,     /* of diagnostics */
    MOST_OPTIONS = 16 << 20, /* of a file of options */
    HOURS = 4 * 3600         /* wall time, against what sleeps */
};

#define ONLY_HEADERS                                                                        \
    "a file is compiled with the headers of the lab, the compiler and the system; nothing " \
    "else can be included, nor embedded"

/* `toolkit` is a file: CUDA's folder, and in the second line that of what stands in for ptxas. */
static enum status read_toolkit(struct compile *c, const char *path, struct error *error) {
    char *text, *rest;
    size_t size;
    TRY(file_read(path, PATH_MAX * 2, &text, &size, error));
    c->toolkit = strtok_r(text, "\n", &rest); /* the text stays */
    c->without_ptxas = strtok_r(NULL, "\n", &rest);
    return c->toolkit != NULL
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%s names no CUDA toolkit", path);
}

static bool is(const char *option, const char *name, const char **value) {
    size_t length = strlen(name);
    bool same = strncmp(option, name, length) == 0 && option[length] == '=';
    *value = same ? option + length + 1 : *value;
    return same;
}

static enum status read_option(struct compile *c, const char *option, struct error *error);

static enum status read_options(struct compile *c, const char *path, struct error *error) {
    char *text, *rest;
    size_t size;
    enum status status = STATUS_OK;
    TRY(file_read(path, MOST_OPTIONS, &text, &size, error));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && status == STATUS_OK;
         line = strtok_r(NULL, "\n", &rest)) {
        status = read_option(c, line, error);
    }
    free(text);
    return status;
}

static enum status read_option(struct compile *c, const char *option, struct error *error) {
    const char *value = NULL;
    if (option[0] == '@') {
        return read_options(c, option + 1, error);
    }
    if (is(option, "--read", &value)) {
        compile_add(&c->read, value);
    } else if (is(option, "--output", &value)) {
        c->output = value;
    } else if (strcmp(option, "--unlinked") == 0) {
        c->unlinked = true;
    } else if (is(option, "--toolkit", &value)) {
        TRY(read_toolkit(c, value, error));
        compile_find_nvcc(c);
    } else if (is(option, "--host", &value)) {
        compile_find_gcc(c, value);
    } else if (is(option, "--cpu", &value)) {
        c->cpu_s = strtod(value, NULL);
    } else if (is(option, "--memory", &value)) {
        c->memory_mib = strtoul(value, NULL, 10);
    } else {
        return error_set(error, STATUS_INVALID_ARGUMENT, "'%s' is no option", option);
    }
    return STATUS_OK;
}

static enum status parse(struct compile *c, int argc, const char *const *argv,
                         struct error *error) {
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        TRY(read_option(c, argv[i], error));
    }
    if (i + 1 >= argc || c->output == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "usage: compile --output=OBJECT [OPTION]... -- COMPILER ARGUMENTS");
    }
    c->command = argv + i + 1;
    c->words = (size_t)(argc - i - 1);
    return STATUS_OK;
}

/* The compiler's own words, for `argv`: with "-o OBJECT", and nvcc's path where that is known here.
 */
static const char **complete(const struct compile *c, const char *object) {
    static char nvcc[PATH_MAX];
    const char **words = calloc(c->words + 3, sizeof *words);
    if (words == NULL) {
        return NULL;
    }
    memcpy(words, c->command, c->words * sizeof *words);
    if (c->toolkit != NULL) {
        snprintf(nvcc, sizeof nvcc, "%.4000s/bin/nvcc", c->toolkit);
        words[0] = nvcc;
    }
    words[c->words] = "-o";
    words[c->words + 1] = object;
    return words;
}

static struct sandbox_limits limits_of(const struct compile *c) {
    struct sandbox_limits l = sandbox_default_limits();
    l.wall_s = HOURS;
    l.cpu_s = c->cpu_s;
    l.memory_bytes = c->memory_mib << 20;
    l.resident = true;
    l.file_bytes = MOST_FILE;
    l.output_bytes = MOST_TEXT;
    l.stack_bytes = (size_t)64 << 20; /* gcc takes that much for what is deeply nested */
    return l;
}

static enum status run(const struct compile *c, const char *const *argv, const char *folder,
                       struct sandbox_result *result, struct error *error) {
    char temporary[PATH_MAX], path[PATH_MAX], here[PATH_MAX];
    const char *const environment[] = {temporary, path, "LC_ALL=C", NULL};
    const char *const writable[] = {folder, NULL};
    const char *from = getenv("PATH");
    bool substitute = c->without_ptxas != NULL;
    if (getcwd(here, sizeof here) == NULL) {
        return error_set(error, STATUS_IO, "no working directory: %s", strerror(errno));
    }
    snprintf(temporary, sizeof temporary, "TMPDIR=%.4000s", folder);
    snprintf(path, sizeof path, "PATH=%.1000s%s%.3000s", substitute ? c->without_ptxas : "",
             substitute ? ":" : "", from != NULL ? from : "/usr/bin:/bin");
    const struct sandbox_command command = {.argv = argv,
                                            .environment = environment,
                                            .readable = c->read.items,
                                            .writable = writable,
                                            .programs = c->programs.items,
                                            .start_in = here,
                                            .limits = limits_of(c)};
    return sandbox_run(&command, result, error);
}

/* What compilers and assemblers say of what the sandbox keeps from them, and what that means. */
static const struct {
    const char *said, *meaning;
} refusals[] = {
    {"ermission denied", ONLY_HEADERS},
    {"file not found", ONLY_HEADERS},
    {"File size limit", "what it is compiled to is larger than 256 MiB"},
};

/* Diagnostics repeat what the file says, and they go to a terminal. */
static void show(FILE *to, const char *text, size_t size) {
    for (size_t i = 0; i < size;) {
        bool plain;
        size_t length = plain_text_first(text + i, size - i, &plain);
        fwrite(plain ? text + i : "?", 1, plain ? length : 1, to);
        i += length;
    }
    fflush(to);
}

/* What it said, and one line more where it was stopped, or asked for what it does not get. */
static enum status judge(const struct compile *c, const struct sandbox_result *result,
                         struct error *error) {
    char text[300];
    const struct sandbox_limits limits = limits_of(c);
    show(stdout, result->out.text, result->out.size);
    show(stderr, result->error.text, result->error.size);
    if (result->end != SANDBOX_EXITED) {
        sandbox_describe(result, &limits, text, sizeof text);
        return error_set(error, STATUS_INTERRUPTED, "the compiler %s", text);
    }
    for (size_t i = 0; result->exit_code != 0 && i < sizeof refusals / sizeof *refusals; i++) {
        if (strstr(result->error.text, refusals[i].said) != NULL) {
            return error_set(error, STATUS_NOT_FOUND, "%s", refusals[i].meaning);
        }
    }
    return result->exit_code == 0 ? STATUS_OK : STATUS_INVALID_ARGUMENT;
}

static enum status compile_in(const struct compile *c, const char *folder, struct error *error) {
    char object[PATH_MAX], *bytes;
    size_t size;
    snprintf(object, sizeof object, "%.4000s/object.o", folder);
    const char **argv = complete(c, object);
    struct sandbox_result *result = calloc(1, sizeof *result);
    enum status status = STATUS_OUT_OF_MEMORY;
    if (argv != NULL && result != NULL) {
        status = run(c, argv, folder, result, error);
        status = status == STATUS_OK ? judge(c, result, error) : status;
    }
    free(argv);
    free(result);
    TRY(status);
    TRY(file_read(object, MOST_FILE, &bytes, &size, error));
    status = c->unlinked ? STATUS_OK : object_check(bytes, size, error);
    if (status == STATUS_OK) {
        status = file_write(c->output, bytes, size, error);
    }
    free(bytes);
    return status;
}

static enum status compile_file(struct compile *c, int argc, const char *const *argv,
                                struct error *error) {
    char folder[PATH_MAX];
    TRY(parse(c, argc, argv, error));
    TRY(folder_create(NULL, folder, sizeof folder, error));
    enum status status = compile_in(c, folder, error);
    folder_remove(folder);
    return status;
}

#ifdef __SANITIZE_ADDRESS__
/* Paths stay until the program ends (compile.h): no leak. */
const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
#endif

int main(int argc, char **argv) {
    struct error error = {0};
    struct compile *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return 1;
    }
    c->cpu_s = 600.0;
    c->memory_mib = 6 << 10;
    enum status status = compile_file(c, argc, (const char *const *)argv, &error);
    if (error.message[0] != '\0') {
        /* The compiler's last word is the file. */
        fprintf(stderr, "%s: %s\n", c->words > 0 ? c->command[c->words - 1] : "compile",
                error.message);
    }
    free(c);
    return status == STATUS_OK ? 0 : 1;
}
