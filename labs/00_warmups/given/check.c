/*
 * Tries the exercises: all in their order up to the first that is not done, or those asked for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "labs/00_warmups/given/trial.h"

struct options {
    bool all, list, count;
};

struct tally {
    int passed, not_here, tried;
};

static const char epilogue[] =
    "examples:\n"
    "  bazel run //labs/00_warmups:check          # up to the first not done\n"
    "  bazel run //labs/00_warmups:check -- 7     # w07_shared_tile\n"
    "  bazel run //labs/00_warmups:check -- f3    # f03_rounds\n"
    "  bazel run //labs/00_warmups:check -- --all\n"
    "\n"
    "The exit status is 0 when all that was tried is done.\n";

static enum status parse(struct options *o, struct arguments *arguments, int argc, char **argv,
                         struct error *error) {
    const struct flag table[] = {
        {"all", 'a', FLAG_SWITCH, &o->all, NULL, "do not stop at the first that is not done"},
        {"list", 'l', FLAG_SWITCH, &o->list, NULL, "run nothing: list the exercises"},
        {"count", 0, FLAG_SWITCH, &o->count, NULL, "print only how many are done: \"12 of 32\""},
    };
    const struct flags flags = {.program = "check",
                                .positional = "[EXERCISE]...",
                                .summary = "Tries the warm-ups, each in a process of its own.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = epilogue};
    TRY(flags_read(&flags, argc, argv, arguments, error));
    if (!arguments->help && arguments->count > 0 && o->all + o->list + o->count > 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "exercises do not go with --all, --list or --count");
    }
    return STATUS_OK;
}

static void list(void) {
    for (int i = 0; i < EXERCISE_COUNT; i++) {
        const struct exercise *e = exercise_at((enum exercise_number)i);
        printf("%-22s %-48s labs %s\n", e->name, e->idea, e->labs);
    }
}

/* What simt and the learner's code printed, each line marked. */
static void show_printed(const char *printed) {
    while (*printed != '\0') {
        size_t length = strcspn(printed, "\n");
        printf("    | %.*s\n", (int)length, printed);
        printed += length + (printed[length] == '\n');
    }
}

static void show(const struct exercise *exercise, const struct verdict *verdict) {
    static const char *const words[] = {"passed", "not yet", "not on this GPU"};
    static const enum colour colours[] = {COLOUR_GREEN, COLOUR_RED, COLOUR_YELLOW};
    printf("%-22s %s%s%s\n", exercise->name, terminal_colour(stdout, colours[verdict->state]),
           words[verdict->state], terminal_plain(stdout));
    if (verdict->message[0] != '\0') {
        printf("    %s\n", verdict->message);
    }
    if (verdict->state == TRIAL_NOT_YET) {
        show_printed(verdict->printed);
        printf("    look at: %s\n", exercise->look);
    }
}

static enum status try_one(enum exercise_number number, bool quiet, struct tally *tally,
                           struct error *error) {
    struct verdict verdict;
    const struct exercise *exercise = exercise_at(number);
    TRY(trial_run(exercise, &verdict, error));
    tally->tried++;
    tally->passed += verdict.state == TRIAL_PASSED;
    tally->not_here += verdict.state == TRIAL_NOT_HERE;
    if (!quiet) {
        show(exercise, &verdict);
    }
    if (!quiet && verdict.state == TRIAL_NOT_YET) {
        printf(
            "    edit %s/00_warmups/%s.cu; for a hint: bazel run //grader:hint -- 00 --number %d\n",
            WARMUPS_SUBJECT, exercise->name, number + 1);
    }
    return STATUS_OK;
}

static bool all_done(const struct tally *tally) {
    return tally->passed + tally->not_here == tally->tried;
}

static enum status try_all(const struct options *o, struct tally *tally, struct error *error) {
    struct progress progress = progress_create("trying", EXERCISE_COUNT);
    bool to_the_end = o->all || o->count;
    for (int i = 0; i < EXERCISE_COUNT && (to_the_end || all_done(tally)); i++) {
        if (o->count) {
            progress_update(&progress, (size_t)i);
        }
        TRY(try_one((enum exercise_number)i, o->count, tally, error));
    }
    progress_finish(&progress);
    printf("%s%d of %d%s", o->count ? "" : "\n", tally->passed, EXERCISE_COUNT,
           o->count ? "" : " done");
    if (tally->not_here > 0) {
        printf(", %d not on this GPU", tally->not_here);
    }
    printf("\n");
    return STATUS_OK;
}

static enum status try_chosen(const struct arguments *arguments, struct tally *tally,
                              struct error *error) {
    enum exercise_number number;
    for (size_t i = 0; i < arguments->count; i++) { /* a wrong name is told before anything runs */
        TRY(exercise_find(arguments->values[i], &number, error));
    }
    for (size_t i = 0; i < arguments->count; i++) {
        TRY(exercise_find(arguments->values[i], &number, error));
        TRY(try_one(number, false, tally, error));
    }
    return STATUS_OK;
}

static enum status run(const struct options *o, const struct arguments *arguments,
                       struct tally *tally, struct error *error) {
    if (arguments->help) {
        return STATUS_OK;
    }
    if (o->list) {
        list();
        return STATUS_OK;
    }
    return arguments->count > 0 ? try_chosen(arguments, tally, error) : try_all(o, tally, error);
}

int main(int argc, char **argv) {
    struct options o = {0};
    struct arguments arguments = {0};
    struct tally tally = {0};
    struct error error = {0};
    enum status status = parse(&o, &arguments, argc, argv, &error);
    if (status == STATUS_OK) {
        status = run(&o, &arguments, &tally, &error);
    }
    free(arguments.values);
    if (status != STATUS_OK) {
        return report_failure("check", &error, status);
    }
    return o.count || all_done(&tally) ? 0 : 1;
}
