/*
 * Grades a folder of submissions, on this machine or on a cluster: takes them in, gives them to a
 * back end, and writes tables, a page for each and a leaderboard as results come.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/flags.h"
#include "common/base/folder.h"
#include "common/base/terminal.h"
#include "grader/class/collect.h"
#include "grader/class/intake/intake.h"
#include "grader/class/kit.h"
#include "grader/class/pages/board.h"
#include "grader/report/run_grader.h"
#include "grader/sandbox/temporary_folder.h"

struct options {
    const char *submissions, *output, *labs, *backend, *text, *gpu, *aliases, *kit;
    uint64_t jobs, limit;
    bool resume, hide, isolated;
};

/* One run. */
struct run_of_class {
    const struct options *o;
    char folder[PATH_MAX], output[PATH_MAX], manifest[PATH_MAX], runfiles[PATH_MAX];
    struct class_settings settings;
    struct collection collection;
    struct board board;
};

static const char epilogue[] =
    "examples:\n"
    "  bazel run //grader:grade_class -- handed_in --output graded --labs 04\n"
    "  bazel run //grader:grade_class -- handed_in --output graded --labs 04 --resume\n"
    "  bazel run //grader:grade_class -- handed_in --output graded --hide-names\n"
    "\n"
    "An entry of SUBMISSIONS is a submission: a folder, a file (anna_sgemm.cu), a .zip or a git\n"
    "repository; its name says whose. Of each the files to edit are taken, by their names. The\n"
    "output folder has results.csv, results.json, leaderboard.html and submissions/.\n"
    "The exit status is 0 when all that could be graded are, 3 when some were not.\n";

static enum status parse(struct options *o, int argc, char **argv, struct arguments *arguments,
                         struct error *error) {
    const struct flag table[] = {
        {"output", 'o', FLAG_STRING, &o->output, "DIR", "folder for all that is written"},
        {"labs", 0, FLAG_STRING, &o->labs, "LIST", "only these, by name or number: 04,05"},
        {"resume", 0, FLAG_SWITCH, &o->resume, NULL, "go on with the run in --output"},
        {"backend", 0, FLAG_STRING, &o->backend, "NAME", "where it is graded"},
        {"backend-options", 0, FLAG_STRING, &o->text, "TEXT", "in the back end's own words"},
        {"jobs", 0, FLAG_U64, &o->jobs, "N", "most submissions at a time; 0: as the back end does"},
        {"gpu", 0, FLAG_STRING, &o->gpu, "NAME", "kind of GPU to ask a cluster for"},
        {"aliases", 0, FLAG_STRING, &o->aliases, "FILE",
         "pages show these names: a line NAME,ALIAS each"},
        {"hide-names", 0, FLAG_SWITCH, &o->hide, NULL, "pages show numbers in place of names"},
        {"require-isolation", 0, FLAG_SWITCH, &o->isolated, NULL,
         "grade only where a submission can be kept from all that it must not reach"},
        {"timeout", 0, FLAG_U64, &o->limit, "SECONDS", "longest time of one graded program"},
        {"kit", 0, FLAG_STRING, &o->kit, "FILE", "manifest of another kit"},
    };
    const struct flags flags = {.program = "grade_class",
                                .positional = "SUBMISSIONS",
                                .summary = "Grades a folder of submissions.",
                                .table = table,
                                .count = sizeof table / sizeof *table,
                                .epilogue = epilogue};
    TRY(flags_read(&flags, argc, argv, arguments, error));
    if (arguments->help) {
        return STATUS_OK;
    }
    if (arguments->count != 1 || o->output == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "one folder of submissions and --output are wanted; see --help");
    }
    o->submissions = arguments->values[0];
    if (o->limit < 1 || o->limit > 86400) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--timeout is 1 to 86400 seconds");
    }
    return STATUS_OK;
}

static enum status make_folder(const char *output, const char *name, struct error *error) {
    char path[TASK_PATH];
    TRY(folder_join(path, output, name, "output", error));
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%.400s: cannot make it: %s", path, strerror(errno));
}

static enum status open_folders(struct run_of_class *r, struct error *error) {
    static const char *const names[] = {"tasks", "backend"};
    if (realpath(r->o->submissions, r->folder) == NULL || !folder_exists(r->folder)) {
        return error_set(error, STATUS_NOT_FOUND, "%.400s: no such folder", r->o->submissions);
    }
    if ((mkdir(r->o->output, 0777) != 0 && errno != EEXIST) ||
        realpath(r->o->output, r->output) == NULL) {
        return error_set(error, STATUS_IO, "%.400s: cannot make it: %s", r->o->output,
                         strerror(errno));
    }
    if (strlen(r->output) > 1500) {
        return error_set(error, STATUS_TOO_LONG, "the path of --output is too long");
    }
    size_t inside = strlen(r->folder);
    if (strncmp(r->output, r->folder, inside) == 0 &&
        (r->output[inside] == '/' || r->output[inside] == '\0')) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--output lies in the folder of submissions, and would be one of them");
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TRY(make_folder(r->output, names[i], error));
    }
    return STATUS_OK;
}

static enum status lock_output(const struct run_of_class *r, struct error *error) {
    char path[TASK_PATH];
    TRY(folder_join(path, r->output, "lock", "output", error));
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0) {
        return error_set(error, STATUS_IO, "%.400s: cannot write: %s", path, strerror(errno));
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return error_set(error, STATUS_IO, "another grade_class works in %.400s", r->output);
    }
    return STATUS_OK; /* held until the process ends */
}

/* Pages of an earlier call may show names that this one hides; all are made again. */
static enum status clear_pages(const struct run_of_class *r, struct error *error) {
    char path[TASK_PATH];
    TRY(folder_join(path, r->output, "submissions", "output", error));
    if (path_exists(path) && !folder_remove(path)) {
        return error_set(error, STATUS_IO, "%.400s: cannot remove it", path);
    }
    return make_folder(r->output, "submissions", error);
}

static enum status choose_labs(struct run_of_class *r, struct error *error) {
    const struct lab *chosen[LAB_COUNT];
    bool warmups = false;
    TRY(lab_choose(r->o->labs, chosen, &warmups, error));
    for (size_t i = 0; i < LAB_COUNT; i++) {
        r->settings.chosen[i] = chosen[i] != NULL;
    }
    if (warmups && r->o->labs != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "the warm-ups give no points");
    }
    if (r->settings.chosen[0] && r->o->jobs > 1 && r->collection.backend == &backend_local) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "lab 01 measures time on the CPU: --jobs 1, or --labs without it");
    }
    return STATUS_OK;
}

static enum status same_labs(const struct run_of_class *r, const struct class_settings *before,
                             struct error *error) {
    return r->o->labs == NULL ||
                   memcmp(before->chosen, r->settings.chosen, sizeof before->chosen) == 0
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--labs are others than those of the run in %.400s", r->output);
}

/* A run that is there is gone on with; else one begins. */
static enum status open_settings(struct run_of_class *r, struct error *error) {
    char path[TASK_PATH];
    unsigned char chance[(RUN_NAME - 1) / 2];
    TRY(folder_join(path, r->output, "class.json", "output", error));
    if (path_exists(path)) {
        struct class_settings before;
        if (!r->o->resume) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "%.400s has a run already: --resume goes on with it; else name "
                             "another folder",
                             r->output);
        }
        TRY(settings_load(&before, r->output, error));
        TRY(same_labs(r, &before, error));
        r->settings = before;
        return STATUS_OK;
    }
    if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance) {
        return error_set(error, STATUS_IO, "no random number: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof chance; i++) {
        snprintf(r->settings.run + 2 * i, 3, "%02x", chance[i]);
    }
    r->settings.isolated = r->o->isolated;
    r->settings.limit_s = (double)r->o->limit;
    return settings_save(&r->settings, r->output, error);
}

static enum status find_kit(struct run_of_class *r, const char *program, struct error *error) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.3900s.runfiles", program);
    if (realpath(path, r->runfiles) == NULL) {
        /* `bazel run` starts it inside them: .../grade_class.runfiles/warpbook */
        const char *runfiles = getenv("RUNFILES_DIR");
        if (realpath(runfiles != NULL ? runfiles : "..", r->runfiles) == NULL) {
            r->runfiles[0] = '\0';
        }
    }
    if (r->o->kit != NULL) {
        snprintf(r->manifest, sizeof r->manifest, "%s", r->o->kit);
        return STATUS_OK;
    }
    return snprintf(r->manifest, sizeof r->manifest, "%.3900s/warpbook/grader/class/kit.manifest",
                    r->runfiles) < PATH_MAX
               ? STATUS_OK
               : error_set(error, STATUS_TOO_LONG, "the path of the kit is too long");
}

static struct progress_of *add_task(struct collection *c) {
    struct progress_of *grown = realloc(c->tasks, (c->count + 1) * sizeof *grown);
    if (grown == NULL) {
        return NULL;
    }
    c->tasks = grown;
    grown[c->count] = (struct progress_of){.state = TASK_WAITS};
    return &grown[c->count++];
}

/* Tasks of an earlier call: their numbers go from 1 on without a gap. */
static enum status load_tasks(struct run_of_class *r, struct error *error) {
    char path[TASK_PATH];
    for (unsigned id = 1; id <= MOST_TASKS; id++) {
        TRY(task_path(path, r->output, id, "task.json", error));
        if (!path_exists(path)) {
            return STATUS_OK;
        }
        struct progress_of *p = add_task(&r->collection);
        if (p == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
        }
        TRY(task_load(&p->task, r->output, id, error));
    }
    return STATUS_OK;
}

/* Of the first @p count tasks, the one that is number @p which of that name; NULL: there is none.
 */
static struct progress_of *find_of_name(const struct collection *c, size_t count, const char *name,
                                        size_t which) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(c->tasks[i].task.name, name) == 0 && which-- == 0) {
            return &c->tasks[i];
        }
    }
    return NULL;
}

static size_t count_of_name(const struct submissions *all, size_t count, const char *name) {
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        same += strcmp(all->all[i].name, name) == 0;
    }
    return same;
}

/* The task of an entry: that of an earlier call, or a new one, which has no number yet. @return
   NULL: out of memory */
static struct task *task_of(struct run_of_class *r, const struct submissions *all, size_t entry,
                            size_t before) {
    const char *name = all->all[entry].name;
    struct progress_of *p =
        find_of_name(&r->collection, before, name, count_of_name(all, entry, name));
    p = p != NULL ? p : add_task(&r->collection);
    return p != NULL ? &p->task : NULL;
}

/* What was taken in by an earlier call stays; the rest is taken in. What was refused is looked at
   again, as it may be mended. */
static enum status take_rest(struct run_of_class *r, const struct submissions *all,
                             struct error *error) {
    const size_t before = r->collection.count;
    struct progress progress = progress_create("taking submissions in", all->count);
    for (size_t i = 0; i < all->count; i++) {
        struct task *task = task_of(r, all, i, before);
        progress_update(&progress, i);
        if (task == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
        }
        if (task->id == 0 || task->refused[0] != '\0') {
            task->id = task->id == 0 ? (unsigned)r->collection.count : task->id;
            TRY(intake_take(task, &all->all[i], r->folder, r->output, r->settings.chosen, error));
        }
    }
    progress_finish(&progress);
    return STATUS_OK;
}

/* Entries that were refused and taken away since: their reason may be mended. */
static void note_gone(struct run_of_class *r, const struct submissions *all) {
    struct collection *c = &r->collection;
    for (size_t i = 0; i < c->count; i++) {
        struct task *task = &c->tasks[i].task;
        size_t which = 0;
        for (size_t j = 0; j < i; j++) {
            which += strcmp(c->tasks[j].task.name, task->name) == 0;
        }
        if (task->refused[0] != '\0' && which >= count_of_name(all, all->count, task->name)) {
            snprintf(task->refused, sizeof task->refused, "it is not in the folder any more");
        }
    }
}

static enum status take_in(struct run_of_class *r, struct error *error) {
    struct submissions all;
    TRY(load_tasks(r, error));
    enum status status = submissions_list(&all, r->folder, r->settings.chosen, error);
    status = status == STATUS_OK ? take_rest(r, &all, error) : status;
    if (status == STATUS_OK) {
        note_gone(r, &all);
    }
    submissions_free(&all);
    TRY(status);
    for (size_t i = 0; i < r->collection.count; i++) {
        struct progress_of *p = &r->collection.tasks[i];
        if (p->task.refused[0] != '\0') {
            p->state = TASK_REFUSED;
            fprintf(stderr, "grade_class: %s: %s\n", p->task.name, p->task.refused);
        }
    }
    return STATUS_OK;
}

static enum status show(const struct collection *c, struct error *error) {
    return board_show((struct board *)c->argument, c, error);
}

static enum status grade(struct run_of_class *r, struct error *error) {
    struct collection *c = &r->collection;
    const struct board_names names = {
        .hidden = r->o->hide, .aliases = r->o->aliases, .run = r->settings.run};
    const struct backend_options options = {.folder = r->output,
                                            .jobs = r->o->jobs,
                                            .gpu = r->o->gpu,
                                            .text = r->o->text,
                                            .needs_gpu = kit_needs_gpu(r->output),
                                            .limit_s = 2.0 * LAB_COUNT * r->settings.limit_s};
    TRY(board_create(&r->board, c, r->settings.chosen, &names, error));
    TRY(c->backend->open(&c->self, &options, error));
    c->output = r->output;
    c->show = show;
    c->argument = &r->board;
    r->board.output = r->output;
    enum status status = collect(c, error);
    c->backend->close(c->self);
    return status;
}

static enum status run(struct run_of_class *r, const char *program, struct error *error) {
    r->collection.backend = backend_find(r->o->backend, error);
    if (r->collection.backend == NULL) {
        return STATUS_INVALID_ARGUMENT;
    }
    TRY(choose_labs(r, error));
    TRY(find_kit(r, program, error));
    file_enter_working_directory();
    TRY(open_folders(r, error));
    TRY(lock_output(r, error));
    TRY(open_settings(r, error));
    TRY(clear_pages(r, error));
    TRY(kit_copy(r->manifest, r->runfiles, r->output, r->settings.chosen, error));
    TRY(take_in(r, error));
    return grade(r, error);
}

/* What to look at. @return the exit status */
static int tell(const struct run_of_class *r) {
    const struct collection *c = &r->collection;
    size_t graded = collection_count(c, TASK_GRADED);
    printf("%zu of %zu submissions graded, %zu refused, %zu not graded: %s/leaderboard.html\n",
           graded, c->count, collection_count(c, TASK_REFUSED), collection_count(c, TASK_GIVEN_UP),
           r->output);
    return graded == c->count ? 0 : 3;
}

static enum status call(int argc, char **argv, struct arguments *arguments, int *code,
                        struct error *error) {
    struct options o = {.backend = "local", .limit = 600};
    TRY(parse(&o, argc, argv, arguments, error));
    if (arguments->help) {
        return STATUS_OK;
    }
    struct run_of_class *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    r->o = &o;
    grader_catch_interrupts();
    enum status status = run(r, argv[0], error);
    if (status == STATUS_OK) {
        *code = tell(r);
    }
    board_free(&r->board);
    free(r->collection.tasks);
    free(r);
    return status;
}

int main(int argc, char **argv) {
    struct error error = {0};
    struct arguments arguments = {0};
    int code = 0;
    enum status status = call(argc, argv, &arguments, &code, &error);
    free(arguments.values);
    if (status == STATUS_OK) {
        return code;
    }
    report_failure("grade_class", &error, status);
    return status == STATUS_INTERRUPTED ? 130 : 1;
}
