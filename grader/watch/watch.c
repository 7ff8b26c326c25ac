/*
 * Grades a lab at each save of its files, and shows what came of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "grader/watch/loop.h"

enum { PATH_SIZE = 1000 };

static const char epilogue[] =
    "examples:\n"
    "  bazel run //grader:watch                 the lab whose file changed last\n"
    "  bazel run //grader:watch -- 04\n"
    "  bazel run //grader:watch -- 04 05        whichever of them is saved\n"
    "\n"
    "Keys: h shows the next hint of the handout, r runs again, j and k scroll, q quits.\n"
    "What the programs print is in results/watch/.\n";

struct command_line {
    bool plain, no_bench;
    const char *config, *bazel;
};

static enum status parse(struct command_line *line, struct arguments *arguments, int argc,
                         char **argv, struct error *error) {
    const struct flag table[] = {
        {"plain", 0, FLAG_SWITCH, &line->plain, NULL, "lines instead of a page"},
        {"no-bench", 0, FLAG_SWITCH, &line->no_bench, NULL, "leave out the bench"},
        {"config", 0, FLAG_STRING, &line->config, "NAME", "--config of the builds: simt, gpu"},
        {"bazel", 0, FLAG_STRING, &line->bazel, "COMMAND", "Bazel, with its startup options"},
    };
    const struct flags flags = {.program = "watch",
                                .positional = "[LAB]...",
                                .summary = "Grades a lab at each save, and shows what came of it.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = epilogue};
    return flags_read(&flags, argc, argv, arguments, error);
}

/* When the lab's file changed; 0 for the starter and for one that is not there. */
static double changed(const struct watch_setup *setup, const struct lab *lab) {
    char file[PATH_SIZE], starter[PATH_SIZE];
    struct stat about;
    snprintf(file, sizeof file, "%.800s/%s/%s/%s", setup->workspace, setup->subject, lab->name,
             lab->file);
    lab_starter_path(lab, setup->workspace, starter, sizeof starter);
    return stat(file, &about) == 0 && !lab_file_is(file, starter)
               ? (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec
               : 0.0;
}

/* The lab that was worked on last; of a fresh clone the first. */
static size_t newest_lab(const struct watch_setup *setup) {
    size_t newest = 0;
    double when = 0.0;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        double then = changed(setup, lab_at(i));
        if (then > when) {
            when = then;
            newest = i;
        }
    }
    return newest;
}

static enum status choose_labs(struct watch_options *o, const struct arguments *arguments,
                               struct error *error) {
    o->first = arguments->count > 0 ? LAB_COUNT : newest_lab(&o->setup);
    for (size_t i = 0; i < arguments->count; i++) {
        const struct lab *lab;
        TRY(lab_find(arguments->values[i], &lab, error));
        size_t index = (size_t)(lab - lab_at(0));
        o->labs[index] = true;
        o->first = o->first == LAB_COUNT ? index : o->first;
    }
    o->labs[o->first] = true;
    return STATUS_OK;
}

/* results/watch, for one watch at a time: two would read each other's logs. */
static enum status open_folder(const char *workspace, char *folder, struct error *error) {
    char path[PATH_SIZE + 16];
    snprintf(folder, PATH_SIZE, "%.900s/results", workspace);
    (void)mkdir(folder, 0777); /* what is wrong shows below */
    snprintf(folder, PATH_SIZE, "%.900s/results/watch", workspace);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
    }
    snprintf(path, sizeof path, "%s/lock", folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(lock);
        return error_set(error, STATUS_IO,
                         "another watch is running in this workspace; quit it first (key q)");
    }
    return STATUS_OK; /* held until the process ends; where there are no locks, without */
}

static enum status watch_in(const char *workspace, const struct command_line *line,
                            const struct arguments *arguments, int *code, struct error *error) {
    char folder[PATH_SIZE];
    struct watch_options o = {.setup = {.workspace = workspace,
                                        .folder = folder,
                                        .subject = WATCH_SUBJECT,
                                        .bazel = line->bazel,
                                        .config = line->config},
                              .plain = line->plain,
                              .bench = !line->no_bench};
    TRY(choose_labs(&o, arguments, error));
    TRY(open_folder(workspace, folder, error));
    return watch_loop(&o, code, error);
}

static enum status watch(const struct command_line *line, const struct arguments *arguments,
                         int *code, struct error *error) {
    char *workspace = realpath(lab_workspace(), NULL);
    if (workspace == NULL || strlen(workspace) >= 800) {
        free(workspace);
        return error_set(error, STATUS_IO, "%.200s: no folder of the workbook", lab_workspace());
    }
    enum status status = watch_in(workspace, line, arguments, code, error);
    free(workspace);
    return status;
}

int main(int argc, char **argv) {
    struct command_line line = {.bazel = "bazel"};
    struct arguments arguments = {.values = NULL};
    struct error error = {0};
    int code = 0;
    enum status status = parse(&line, &arguments, argc, argv, &error);
    if (status == STATUS_OK && !arguments.help) {
        status = watch(&line, &arguments, &code, &error);
    }
    free(arguments.values);
    return status == STATUS_OK ? code : report_failure("watch", &error, status);
}
