/*
 * Shows the next hint of a lab's handout, and remembers how many were shown.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "grader/report/hints.h"

enum { PATH_SIZE = 1200, MOST_BYTES = 4 << 20 };

struct options {
    bool next, all;
    int number;
};

static const char epilogue[] = "examples:\n"
                               "  bazel run //grader:hint -- 04_sgemm\n"
                               "  bazel run //grader:hint -- 04 --number 2\n"
                               "  bazel run //grader:hint -- 00 --number 7   # of the warm-up 07\n"
                               "\n"
                               "How many were shown is remembered in results/hints.json.\n";

static enum status parse(struct options *o, struct arguments *arguments, int argc, char **argv,
                         struct error *error) {
    const struct flag table[] = {
        {"next", 0, FLAG_SWITCH, &o->next, NULL, "the first hint not shown yet; so without flags"},
        {"all", 0, FLAG_SWITCH, &o->all, NULL, "all hints"},
        {"number", 'n', FLAG_INT, &o->number, "N", "hint N"},
    };
    const struct flags flags = {.program = "hint",
                                .positional = "LAB",
                                .summary = "Shows the next hint of a lab's handout.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = epilogue};
    TRY(flags_read(&flags, argc, argv, arguments, error));
    if (arguments->help) {
        return STATUS_OK;
    }
    if (arguments->count != 1 || o->next + o->all + (o->number != 0) > 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "wants one lab, and at most one of --next, --all and --number");
    }
    return STATUS_OK;
}

static void print_hint(const struct hint *hint) {
    printf("%s%.*s%s\n\n%.*s\n\n", terminal_colour(stdout, COLOUR_BOLD), (int)hint->title_length,
           hint->title, terminal_plain(stdout), (int)hint->body_length, hint->body);
}

/* Which hints to show: from first on, up to end. */
static enum status choose(const struct options *o, const struct lab *lab, int count, int shown,
                          int *first, int *end, struct error *error) {
    if (o->number < 0 || o->number > count) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s has hints 1 to %d, not %d", lab->name,
                         count, o->number);
    }
    *first = o->all ? 0 : o->number > 0 ? o->number - 1 : shown;
    *end = o->all ? count : *first + 1;
    if (*first >= count) {
        return error_set(error, STATUS_NOT_FOUND,
                         "all %d hints of %s were shown; --all shows them again, and "
                         "solutions/%s has the answer",
                         count, lab->name, lab->name);
    }
    return STATUS_OK;
}

/* Reads how many hints were shown; false where the file can be neither read nor replaced. */
static bool recall(struct hints_shown *shown, const char *path) {
    struct error error = {0};
    enum status status = hints_load(shown, path, &error);
    if (error.message[0] != '\0') {
        fprintf(stderr, "hint: %s%s\n", error_text(&error, status),
                status == STATUS_OK ? "" : "; not remembered");
    }
    return status == STATUS_OK;
}

/* A hint is shown even where nothing can be remembered. */
static void remember(struct hints_shown *shown, size_t lab, int end, const char *folder) {
    struct error error = {0};
    enum status status = hints_remember(shown, lab, end, folder, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "hint: %s: not remembered\n", error_text(&error, status));
    }
}

static enum status show(const struct options *o, size_t index, const char *handout,
                        struct error *error) {
    char folder[PATH_SIZE], path[PATH_SIZE + 16];
    struct hint hints[MOST_HINTS];
    struct hints_shown shown;
    int first = 0, end = 0;
    const struct lab *lab = handout_at(index);
    int count = (int)hints_find(handout, hints);
    snprintf(folder, sizeof folder, "%s/results", lab_workspace());
    bool writable = recall(&shown, hints_path(folder, path, sizeof path));
    TRY(choose(o, lab, count, shown.count[index], &first, &end, error));
    for (int i = first; i < end; i++) {
        print_hint(&hints[i]);
    }
    int left = count - end;
    printf("(%d of %d", end, count);
    if (left > 0) {
        printf("; the next one: bazel run //grader:hint -- %s", lab->name);
    }
    printf(")\n");
    if (writable) {
        remember(&shown, index, end, folder);
    }
    return STATUS_OK;
}

static enum status hint(const struct options *o, const char *name, struct error *error) {
    char path[PATH_SIZE];
    char *handout;
    size_t size;
    size_t index;
    TRY(handout_find(name, &index, error));
    snprintf(path, sizeof path, "%s/labs/%s/README.md", lab_workspace(), handout_at(index)->name);
    TRY(file_read(path, MOST_BYTES, &handout, &size, error));
    enum status status = show(o, index, handout, error);
    free(handout);
    return status;
}

static enum status run(int argc, char **argv, struct arguments *arguments, struct error *error) {
    struct options o = {0};
    TRY(parse(&o, arguments, argc, argv, error));
    return arguments->help ? STATUS_OK : hint(&o, arguments->values[0], error);
}

int main(int argc, char **argv) {
    struct error error = {0};
    struct arguments arguments = {0};
    enum status status = run(argc, argv, &arguments, &error);
    free(arguments.values);
    return status == STATUS_OK ? 0 : report_failure("hint", &error, status);
}
