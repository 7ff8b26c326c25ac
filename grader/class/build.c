#include "grader/class/build.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "grader/report/run_grader.h"

enum { MOST_WORDS = 8000, MOST_COMMAND = 4 << 20, MOST_PARTS = 9, PATH_SIZE = 4200 };

/* A command with words of its own, and texts that it points into. */
struct command {
    char *words[MOST_WORDS + 1];
    size_t count;
    char *texts[MOST_WORDS + MOST_PARTS];
    size_t text_count;
};

/* The kit's record of a lab: paths that the commands have. */
struct names {
    char *text;
    const char *source, *object, *program;
};

static void command_free(struct command *c) {
    for (size_t i = 0; c != NULL && i < c->text_count; i++) {
        free(c->texts[i]);
    }
    free(c);
}

static enum status add(struct command *c, char *word, struct error *error) {
    if (c->count >= MOST_WORDS) {
        return error_set(error, STATUS_TOO_LONG, "the kit's command is too long");
    }
    c->words[c->count++] = word;
    return STATUS_OK;
}

/* Adds a copy that command_free() frees. */
static enum status add_text(struct command *c, char *copy, struct error *error) {
    if (copy == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    c->texts[c->text_count++] = copy;
    return add(c, copy, error);
}

/* Bazel writes what a shell would take apart in quotes. */
static char *unquoted(char *line) {
    size_t length = strlen(line);
    if (length >= 2 && line[0] == '\'' && line[length - 1] == '\'') {
        line[length - 1] = '\0';
        return line + 1;
    }
    return line;
}

static enum status add_lines(struct command *c, const char *path, struct error *error) {
    char *text, *rest;
    size_t size;
    TRY(file_read(path, MOST_COMMAND, &text, &size, error));
    c->texts[c->text_count++] = text;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        TRY(add(c, unquoted(line), error));
    }
    return STATUS_OK;
}

static enum status read_names(struct names *n, const struct build_place *place,
                              const struct lab *lab, struct error *error) {
    char path[PATH_SIZE], *rest;
    size_t size;
    snprintf(path, sizeof path, "%.4000s/%s/files", place->kit, lab->name);
    TRY(file_read(path, PATH_MAX * 3, &n->text, &size, error));
    n->source = strtok_r(n->text, "\n", &rest);
    n->object = strtok_r(NULL, "\n", &rest);
    n->program = strtok_r(NULL, "\n", &rest);
    return n->program != NULL
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%.400s: three paths are wanted", path);
}

/* Puts `with` in the place of each word that is `word`, or that ends with it after `before`. */
static enum status replace(struct command *c, const char *before, const char *word,
                           const char *with, struct error *error) {
    size_t length = strlen(before);
    for (size_t i = 0; i < c->count; i++) {
        if (strncmp(c->words[i], before, length) == 0 && strcmp(c->words[i] + length, word) == 0) {
            char *fresh = NULL;
            if (asprintf(&fresh, "%s%s", before, with) < 0) {
                return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
            }
            c->texts[c->text_count++] = fresh;
            c->words[i] = fresh;
        }
    }
    return STATUS_OK;
}

/* The compiler's folder is looked for where the kit was made, then as the build looks for it. */
static enum status write_toolkit(const struct build_place *place, char *path, struct error *error) {
    char kit[PATH_SIZE], nvcc[PATH_SIZE], line[PATH_SIZE], *text;
    const char *home = getenv("CUDA_HOME");
    size_t size;
    snprintf(kit, sizeof kit, "%.4000s/toolkit.txt", place->kit);
    snprintf(path, PATH_SIZE, "%s", kit);
    if (file_read(kit, PATH_MAX * 2, &text, &size, error) != STATUS_OK) {
        return STATUS_NOT_FOUND;
    }
    text[strcspn(text, "\n")] = '\0';
    snprintf(nvcc, sizeof nvcc, "%.4000s/bin/nvcc", text);
    free(text);
    if (access(nvcc, X_OK) == 0) {
        return STATUS_OK;
    }
    const char *folder = home != NULL && home[0] != '\0' ? home : "/usr/local/cuda";
    snprintf(nvcc, sizeof nvcc, "%.4000s/bin/nvcc", folder);
    if (access(nvcc, X_OK) != 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "no nvcc on this machine: $CUDA_HOME names the toolkit's folder");
    }
    snprintf(path, PATH_SIZE, "%.4000s/toolkit.txt", place->work);
    int length = snprintf(line, sizeof line, "%.4000s\n", folder);
    return file_write(path, line, (size_t)length, error);
}

/* Runs it in the kit's copy of the build's folder; what it says is in WORK/said. */
static enum status run(const struct command *c, const struct build_place *place, double *seconds,
                       struct grader_end *end, struct error *error) {
    char folder[PATH_SIZE], log[PATH_SIZE];
    snprintf(folder, sizeof folder, "%.4000s/exec", place->kit);
    snprintf(log, sizeof log, "%.4000s/said", place->work);
    const struct grader_command command = {.program = c->words[0],
                                           .arguments = c->words,
                                           .log = log,
                                           .limit = place->limit_s,
                                           .folder = folder,
                                           .tool = true};
    TRY(run_grader(&command, end, error));
    *seconds = end->seconds;
    if (end->how == GRADER_INTERRUPTED) {
        return error_set(error, STATUS_INTERRUPTED, "interrupted");
    }
    if (end->how == GRADER_EXITED && end->code == 127) {
        return error_set(error, STATUS_NOT_FOUND, "%.300s cannot be started on this machine",
                         c->words[0]);
    }
    return STATUS_OK;
}

/* Leaves `folder` and a slash out wherever they stand: pages show a file's place in the lab. */
static void forget_folder(char *text, const char *folder) {
    size_t length = strlen(folder);
    for (char *at = strstr(text, folder); at != NULL; at = strstr(at, folder)) {
        size_t cut = length + (at[length] == '/');
        memmove(at, at + cut, strlen(at + cut) + 1);
    }
}

static void keep_said(struct built *b, const struct build_place *place) {
    char path[PATH_SIZE], root[PATH_SIZE];
    char *text;
    size_t size;
    struct error error = {0};
    snprintf(path, sizeof path, "%.4000s/said", place->work);
    if (file_read(path, MOST_COMMAND, &text, &size, &error) != STATUS_OK) {
        return;
    }
    snprintf(root, sizeof root, "%s", place->source);
    char *labs = strstr(root, "/files/labs/");
    if (labs != NULL) {
        labs[strlen("/files")] = '\0';
        forget_folder(text, root);
    }
    forget_folder(text, place->work);
    forget_folder(text, place->kit);
    text_clean(b->said, sizeof b->said, text, true);
    free(text);
}

/* The last line that a tool of the kit printed. */
static const char *said_last(const struct build_place *place, char *line, size_t size) {
    char path[PATH_SIZE], *text, *rest;
    size_t length;
    snprintf(path, sizeof path, "%.4000s/said", place->work);
    line[0] = '\0';
    if (file_read(path, MOST_COMMAND, &text, &length, NULL) != STATUS_OK) {
        return line;
    }
    for (char *at = strtok_r(text, "\n", &rest); at != NULL; at = strtok_r(NULL, "\n", &rest)) {
        text_clean(line, size, at, false);
    }
    free(text);
    return line;
}

static enum status compile(struct built *b, const struct lab *lab, const struct names *n,
                           struct command *c, const struct build_place *place,
                           struct error *error) {
    char path[PATH_SIZE], object[PATH_SIZE], toolkit[PATH_SIZE] = "";
    struct grader_end end;
    snprintf(object, sizeof object, "%.4000s/object.o", place->work);
    for (int part = 0; part < MOST_PARTS; part++) {
        snprintf(path, sizeof path, "%.4000s/%s/compile.%d", place->kit, lab->name, part);
        if (part == 0 || access(path, F_OK) == 0) {
            TRY(add_lines(c, path, error));
        }
    }
    snprintf(path, sizeof path, "%.4000s/bin/compile", place->kit);
    TRY(replace(c, "", c->words[0], path, error));
    TRY(replace(c, "", n->source, place->source, error));
    TRY(replace(c, "--read=", n->source, place->source, error));
    TRY(replace(c, "--output=", n->object, object, error));
    if (strstr(lab->file, ".cu") != NULL) {
        TRY(write_toolkit(place, toolkit, error));
        TRY(replace(c, "--toolkit=", "external/local_config_cuda/toolkit.txt", toolkit, error));
    }
    TRY(run(c, place, &b->compile_s, &end, error));
    b->good = end.how == GRADER_EXITED && end.code == 0;
    keep_said(b, place);
    return STATUS_OK;
}

static enum status link_worker(struct built *b, const struct lab *lab, const struct names *n,
                               struct command *c, const struct build_place *place,
                               struct error *error) {
    char path[PATH_SIZE], object[PATH_SIZE];
    struct grader_end end;
    snprintf(path, sizeof path, "%.4000s/%s/link", place->kit, lab->name);
    TRY(add_lines(c, path, error));
    snprintf(object, sizeof object, "%.4000s/object.o", place->work);
    snprintf(path, sizeof path, "%.4000s/run/grader/%s_worker", place->work, lab->name);
    TRY(replace(c, "", n->object, object, error));
    TRY(replace(c, "", n->program, path, error));
    TRY(run(c, place, &b->link_s, &end, error));
    b->good = end.how == GRADER_EXITED && end.code == 0;
    if (!b->good) {
        keep_said(b, place);
    }
    return STATUS_OK;
}

/* The kit's list of files with their roles, with the learner's object file in its place. */
static enum status list_symbols(const struct lab *lab, const struct names *n, struct command *c,
                                const struct build_place *place, struct error *error) {
    char path[PATH_SIZE], parts[PATH_SIZE], out[PATH_SIZE], program[PATH_SIZE];
    char *text, *fresh = NULL;
    size_t size;
    char line[300];
    struct grader_end end;
    double seconds;
    snprintf(path, sizeof path, "%.4000s/%s/parts", place->kit, lab->name);
    TRY(file_read(path, MOST_COMMAND, &text, &size, error));
    char *at = strstr(text, n->object);
    if (at == NULL || asprintf(&fresh, "%.*s%s/object.o%s", (int)(at - text), text, place->work,
                               at + strlen(n->object)) < 0) {
        free(text);
        return error_set(error, STATUS_BAD_FORMAT, "%.400s does not name the learner's file", path);
    }
    free(text);
    snprintf(parts, sizeof parts, "%.4000s/parts", place->work);
    enum status status = file_write(parts, fresh, strlen(fresh), error);
    free(fresh);
    TRY(status);
    snprintf(out, sizeof out, "%.4000s/run/grader/%s_symbols.txt", place->work, lab->name);
    snprintf(program, sizeof program, "%.4000s/bin/list_symbols", place->kit);
    const char *const words[] = {program, "nm", parts, out};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        TRY(add_text(c, strdup(words[i]), error));
    }
    TRY(run(c, place, &seconds, &end, error));
    return end.how == GRADER_EXITED && end.code == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: list_symbols failed: %.200s", lab->name,
                           said_last(place, line, sizeof line));
}

typedef enum status step_function(struct built *b, const struct lab *lab, const struct names *n,
                                  struct command *c, const struct build_place *place,
                                  struct error *error);

static enum status step(step_function *function, struct built *b, const struct lab *lab,
                        const struct names *n, const struct build_place *place,
                        struct error *error) {
    struct command *c = calloc(1, sizeof *c);
    enum status status = c != NULL ? function(b, lab, n, c, place, error)
                                   : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    command_free(c);
    return status;
}

static enum status symbols_step(struct built *b, const struct lab *lab, const struct names *n,
                                struct command *c, const struct build_place *place,
                                struct error *error) {
    (void)b;
    return list_symbols(lab, n, c, place, error);
}

static enum status build(struct built *b, const struct lab *lab, struct names *n,
                         const struct build_place *place, struct error *error) {
    TRY(read_names(n, place, lab, error));
    TRY(step(compile, b, lab, n, place, error));
    if (b->good) {
        TRY(step(link_worker, b, lab, n, place, error));
    }
    return b->good ? step(symbols_step, b, lab, n, place, error) : STATUS_OK;
}

enum status build_lab(struct built *b, const struct lab *lab, const struct build_place *place,
                      struct error *error) {
    struct names n = {0};
    *b = (struct built){.tried = true};
    enum status status = build(b, lab, &n, place, error);
    free(n.text);
    return status;
}
