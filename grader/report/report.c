/*
 * Grades every lab and prints the scoreboard, or writes it for other programs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "grader/report/format/format.h"
#include "grader/report/grade_labs.h"
#include "grader/report/run_grader.h"

enum { PATH_SIZE = 1024 };

struct options {
    const char *labs, *format, *output, *subject, *graders, *results, *from;
    bool again, isolated, strict, compare;
    uint64_t limit;
};

static const char epilogue[] =
    "examples:\n"
    "  bazel run //grader:report\n"
    "  bazel run //grader:report -- --labs 04,05 --again\n"
    "  bazel run //grader:report -- --format=html --output report.html\n"
    "  bazel run //grader:report -- --format=json --output before.json\n"
    "  bazel run //grader:report -- --from before.json --format=markdown\n"
    "  bazel run //grader:report -- --compare before.json after.json\n"
    "  bazel run --config=solutions //grader:report\n"
    "\n"
    "A lab is graded again only if its file or the grader has changed. results/report/ has the\n"
    "programs' output, results/grade.jsonl one line per test. The exit status is 0 whatever the\n"
    "points are; with --strict it is 1 when a lab is not passed.\n";

static enum status parse(struct options *o, struct arguments *arguments, int argc, char **argv,
                         struct error *error) {
    const struct flag table[] = {
        {"labs", 0, FLAG_STRING, &o->labs, "LIST",
         "only these, by name or number: 04,05; 00: warm-ups"},
        {"again", 0, FLAG_SWITCH, &o->again, NULL, "run labs that have not changed, too"},
        {"require-isolation", 0, FLAG_SWITCH, &o->isolated, NULL,
         "grade only where a submission can be kept from all that it must not reach"},
        {"format", 0, FLAG_STRING, &o->format, "NAME",
         "text, json, gradescope, junit, markdown or html"},
        {"output", 'o', FLAG_STRING, &o->output, "FILE", "write there; - is standard output"},
        {"from", 0, FLAG_STRING, &o->from, "FILE",
         "run nothing: show a run written with --format=json"},
        {"compare", 0, FLAG_SWITCH, &o->compare, NULL,
         "run nothing: compare two runs written with --format=json"},
        {"strict", 0, FLAG_SWITCH, &o->strict, NULL, "exit with 1 when a lab is not passed"},
        {"subject", 0, FLAG_STRING, &o->subject, "WHOSE",
         "labs or solutions; must be what was built, see the last example"},
        {"timeout", 0, FLAG_U64, &o->limit, "SECONDS", "longest time of one graded program"},
        {"graders", 0, FLAG_STRING, &o->graders, "DIR", "where the graded programs are"},
        {"results", 0, FLAG_STRING, &o->results, "DIR", "where results are left"},
    };
    const struct flags flags = {.program = "report",
                                .positional = "[--compare A.json B.json]",
                                .summary = "Grades all labs and prints the scoreboard.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = epilogue};
    TRY(flags_read(&flags, argc, argv, arguments, error));
    if (o->output != NULL && strcmp(o->output, "-") == 0) {
        o->output = NULL;
    }
    return STATUS_OK;
}

/* A recorded run is shown as a whole, and a comparison goes to the terminal. */
static enum status check_together(const struct options *o, struct error *error) {
    const char *shows = o->compare ? "--compare" : o->from != NULL ? "--from" : NULL;
    const char *other = o->labs != NULL                                ? "--labs"
                        : o->again                                     ? "--again"
                        : o->isolated                                  ? "--require-isolation"
                        : o->compare && o->from                        ? "--from"
                        : o->compare && o->output                      ? "--output"
                        : o->compare && strcmp(o->format, "text") != 0 ? "--format"
                                                                       : NULL;
    if (shows != NULL && other != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s does not go with %s", shows, other);
    }
    if (o->labs != NULL && o->labs[0] == '\0') {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--labs names none; without it all are graded");
    }
    return STATUS_OK;
}

static enum status check(const struct options *o, const struct arguments *arguments,
                         struct error *error) {
    TRY(check_together(o, error));
    size_t wanted = o->compare ? 2 : 0;
    if (arguments->count != wanted) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         o->compare ? "--compare wants two files of --format=json"
                                    : "'%s' is no flag; --help lists them",
                         arguments->count > 0 ? arguments->values[0] : "");
    }
    if (strcmp(o->subject, REPORT_SUBJECT) != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--subject %s: this was built for %s; bazel run%s //grader:report",
                         o->subject, REPORT_SUBJECT,
                         strcmp(o->subject, "solutions") == 0 ? " --config=solutions" : "");
    }
    if (o->limit < 1 || o->limit > 86400) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--timeout is 1 to 86400 seconds");
    }
    return STATUS_OK;
}

/* The graded programs lie among this program's runfiles; `bazel run` starts it there, too. */
static const char *find_graders(const char *program, const char *folder, char *path) {
    snprintf(path, PATH_SIZE, "%s.runfiles/warpbook/grader", program);
    if (access(path, F_OK) != 0) {
        snprintf(path, PATH_SIZE, "%s/grader", folder);
    } else if (path[0] != '/') { /* the folder changes, the place must not */
        snprintf(path, PATH_SIZE, "%.500s/%.400s.runfiles/warpbook/grader", folder, program);
    }
    return path;
}

static enum status write_out(const struct options *o, const char *text, size_t size,
                             struct error *error) {
    return file_write(o->output != NULL ? o->output : "/dev/stdout", text, size, error);
}

/* On a terminal the scoreboard has colours; all else is made in memory, to appear whole. */
static enum status show(const struct options *o, format_function *format, const struct run *run,
                        const struct run_score *score, struct error *error) {
    char *text = NULL;
    size_t size = 0;
    if (format == format_text && o->output == NULL && isatty(STDOUT_FILENO)) {
        format(stdout, run, score);
        return STATUS_OK;
    }
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the report");
    }
    format(out, run, score);
    enum status status = fclose(out) == 0 ? write_out(o, text, size, error)
                                          : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    free(text);
    return status;
}

static enum status compare_with(const struct run *a, const char *path, struct error *error) {
    struct run b;
    TRY(run_load(&b, path, error));
    format_comparison(stdout, a, &b);
    run_free(&b);
    if (fflush(stdout) != 0) {
        return error_set(error, STATUS_IO, "standard output: %s", strerror(errno));
    }
    return STATUS_OK;
}

static enum status compare(const char *const paths[2], struct error *error) {
    struct run a;
    TRY(run_load(&a, paths[0], error));
    enum status status = compare_with(&a, paths[1], error);
    run_free(&a);
    return status;
}

/* Grades the chosen labs. */
static enum status grade(const struct options *o, const char *workspace, struct run *run,
                         struct error *error) {
    char results[PATH_SIZE];
    struct grade_options options = {.graders = o->graders,
                                    .results = o->results,
                                    .workspace = workspace,
                                    .subject = REPORT_SUBJECT,
                                    .again = o->again,
                                    .isolated = o->isolated,
                                    .limit = (double)o->limit};
    TRY(lab_choose(o->labs, options.chosen, &options.warmups, error));
    if (options.results == NULL) {
        snprintf(results, sizeof results, "%s/results", workspace);
        options.results = results;
    }
    return grade_labs(run, &options, error);
}

static enum status report(const struct options *o, int *red, struct error *error) {
    struct run run;
    format_function *format = format_find(o->format, error);
    if (format == NULL) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (o->output != NULL) {
        TRY(file_check_writable(o->output, error));
    }
    TRY(o->from != NULL ? run_load(&run, o->from, error) : grade(o, lab_workspace(), &run, error));
    struct run_score *score = malloc(sizeof *score);
    enum status status = STATUS_OUT_OF_MEMORY;
    if (score != NULL) {
        score_run(score, &run);
        *red = score->red;
        status = STATUS_OK;
        if (grader_interrupted() && o->output != NULL) {
            fprintf(stderr, "report: interrupted; %s is as it was\n", o->output);
        } else {
            status = show(o, format, &run, score, error);
        }
    }
    free(score);
    run_free(&run);
    return status;
}

/* Reads the command line and does what it asks for. */
static enum status run(int argc, char **argv, struct arguments *arguments, int *code,
                       struct error *error) {
    char graders[PATH_SIZE], folder[PATH_SIZE] = ".";
    struct options o = {.format = "text", .subject = REPORT_SUBJECT, .limit = 600};
    int red = 0;
    TRY(parse(&o, arguments, argc, argv, error));
    if (arguments->help) {
        return STATUS_OK;
    }
    TRY(check(&o, arguments, error));
    if (getcwd(folder, sizeof folder) == NULL) {
        folder[0] = '\0';
    }
    if (o.graders == NULL) {
        o.graders = find_graders(argv[0], folder, graders);
    }
    file_enter_working_directory();
    grader_catch_interrupts();
    TRY(o.compare ? compare(arguments->values, error) : report(&o, &red, error));
    *code = grader_interrupted() ? 130 : o.strict && red > 0;
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct error error = {0};
    int code = 0;
    struct arguments arguments = {0};
    enum status status = run(argc, argv, &arguments, &code, &error);
    free(arguments.values);
    return status == STATUS_OK ? code : report_failure("report", &error, status);
}
