/*
 * Grades exactly one submission of an output folder of grade_class: builds its labs, runs their
 * graded programs, and leaves result.json. Back ends start it, on any machine that sees the folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/flags.h"
#include "common/base/terminal.h"
#include "grader/class/build.h"
#include "grader/class/copy_file.h"
#include "grader/class/result.h"
#include "grader/report/grade_labs.h"
#include "grader/report/run_grader.h"
#include "grader/sandbox/temporary_folder.h"

enum { PATH_SIZE = 4300 };

static const double BUILD_LIMIT_S = 1800.0; /* the compiler has limits of its own */

/* One call. */
struct work {
    const char *output;
    struct class_settings settings;
    struct task task;
    char kit[TASK_PATH], folder[TASK_PATH]; /* the task's scratch folder */
    struct result *result;
    double begin;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One process a task: two would write each other's scratch folder. */
static enum status lock_task(const struct work *w, bool *busy, struct error *error) {
    char path[TASK_PATH];
    TRY(task_path(path, w->output, w->task.id, "lock", error));
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0) {
        return error_set(error, STATUS_IO, "%.400s: cannot write: %s", path, strerror(errno));
    }
    *busy = flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return STATUS_OK; /* held until the process ends */
}

/* A line for each begin, so that it can be seen that nothing was graded twice. */
static void note_begin(const struct work *w) {
    char path[TASK_PATH], line[200];
    if (task_path(path, w->output, w->task.id, "attempts", NULL) != STATUS_OK) {
        return;
    }
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int length = snprintf(line, sizeof line, "%lld %s %d\n", (long long)time(NULL), w->result->host,
                          (int)getpid());
    if (file >= 0) {
        (void)!write(file, line, (size_t)length);
        close(file);
    }
}

static enum status make_folder(const char *path, struct error *error) {
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%.400s: cannot make it: %s", path, strerror(errno));
}

/* What lies beside the graded programs: the shared libraries' folders. */
static enum status link_libraries(const struct work *w, struct error *error) {
    char from[PATH_SIZE], to[PATH_SIZE];
    snprintf(from, sizeof from, "%s/run", w->kit);
    DIR *dir = opendir(from);
    if (dir == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%.400s: %s", from, strerror(errno));
    }
    enum status status = STATUS_OK;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL && status == STATUS_OK;) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "grader") == 0) {
            continue;
        }
        snprintf(from, sizeof from, "%.3900s/run/%s", w->kit, entry->d_name);
        snprintf(to, sizeof to, "%.3900s/run/%s", w->folder, entry->d_name);
        if (symlink(from, to) != 0) {
            status = error_set(error, STATUS_IO, "%.400s: %s", to, strerror(errno));
        }
    }
    closedir(dir);
    return status;
}

/* The graded programs look for workers in their own folder, which links do not change: so each task
 * has them under names of its own. */
static enum status place_programs(const struct work *w, const struct lab *lab,
                                  struct error *error) {
    static const char *const names[] = {"parity", "speedup", "baseline", "baseline_times"};
    char from[PATH_SIZE], to[PATH_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(from, sizeof from, "%.3900s/run/grader/%s_%s", w->kit, lab->name, names[i]);
        snprintf(to, sizeof to, "%.3900s/run/grader/%s_%s", w->folder, lab->name, names[i]);
        if (link(from, to) != 0 && errno != ENOENT) {
            TRY(copy_file(from, to, error));
        }
    }
    return STATUS_OK;
}

/* The workbook's folder, as the report expects it: the learner's file and the starter. */
static enum status place_sources(const struct work *w, const struct lab *lab, const char *source,
                                 struct error *error) {
    char from[PATH_SIZE], to[PATH_SIZE];
    snprintf(to, sizeof to, "%.3900s/labs/%s", w->folder, lab->name);
    TRY(make_folder(to, error));
    snprintf(to, sizeof to, "%.3900s/labs/%s/given", w->folder, lab->name);
    TRY(make_folder(to, error));
    snprintf(to, sizeof to, "%.3900s/labs/%s/%s", w->folder, lab->name, lab->file);
    TRY(copy_file(source, to, error));
    snprintf(from, sizeof from, "%.3900s/%s/starter", w->kit, lab->name);
    lab_starter_path(lab, w->folder, to, sizeof to);
    return access(from, R_OK) == 0 ? copy_file(from, to, error) : STATUS_OK;
}

static enum status build_one(struct work *w, size_t index, struct error *error) {
    char name[200], source[TASK_PATH];
    const struct lab *lab = lab_at(index);
    task_file(name, sizeof name, lab);
    TRY(task_path(source, w->output, w->task.id, name, error));
    TRY(place_programs(w, lab, error));
    TRY(place_sources(w, lab, source, error));
    const struct build_place place = {
        .kit = w->kit, .source = source, .work = w->folder, .limit_s = BUILD_LIMIT_S};
    return build_lab(&w->result->built[index], lab, &place, error);
}

static enum status prepare(struct work *w, struct error *error) {
    char path[PATH_SIZE];
    static const char *const folders[] = {"", "/run", "/run/grader", "/labs", "/results"};
    folder_remove(w->folder); /* of an earlier begin */
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s%s", w->folder, folders[i]);
        TRY(make_folder(path, error));
    }
    return link_libraries(w, error);
}

static enum status run_labs(struct work *w, struct error *error) {
    char graders[PATH_SIZE], results[PATH_SIZE];
    struct grade_options options = {.graders = graders,
                                    .results = results,
                                    .workspace = w->folder,
                                    .subject = "labs",
                                    .again = true,
                                    .isolated = w->settings.isolated,
                                    .limit = w->settings.limit_s};
    snprintf(graders, sizeof graders, "%s/run/grader", w->folder);
    snprintf(results, sizeof results, "%s/results", w->folder);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        options.chosen[i] = w->task.has[i] ? lab_at(i) : NULL;
    }
    double begin = now();
    TRY(grade_labs(&w->result->run, &options, error));
    w->result->graded_s = now() - begin;
    return STATUS_OK;
}

/* The report knows only that there was no worker. */
static void say_what_did_not_build(struct result *r) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct built *b = &r->built[i];
        for (int part = 0; part < PARTS && b->tried && !b->good; part++) {
            struct program *p = &r->run.labs[i].programs[part];
            char line[sizeof p->said];
            const char *error = strstr(b->said, "error");
            while (error != NULL && error > b->said && error[-1] != '\n') {
                error--;
            }
            const char *from = error != NULL ? error : b->said;
            snprintf(line, sizeof line, "%.*s", (int)strcspn(from, "\n"), from);
            text_clean(p->said, sizeof p->said, line, false);
        }
    }
}

static enum status grade(struct work *w, struct error *error) {
    TRY(prepare(w, error));
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (w->task.has[i]) {
            TRY(build_one(w, i, error));
        }
    }
    TRY(run_labs(w, error));
    if (grader_interrupted()) {
        return error_set(error, STATUS_INTERRUPTED, "interrupted");
    }
    say_what_did_not_build(w->result);
    w->result->seconds = now() - w->begin;
    return result_save(w->result, w->output, w->task.id, error);
}

static enum status open_task(struct work *w, const char *id, struct error *error) {
    char *end = NULL;
    unsigned long number = strtoul(id, &end, 10);
    if (number == 0 || number > MOST_TASKS || *end != '\0') {
        return error_set(error, STATUS_INVALID_ARGUMENT, "'%.40s' is no task's number", id);
    }
    if (snprintf(w->kit, sizeof w->kit, "%s/kit", w->output) >= 2000) {
        return error_set(error, STATUS_TOO_LONG, "the path of the output folder is too long");
    }
    TRY(settings_load(&w->settings, w->output, error));
    TRY(task_load(&w->task, w->output, (unsigned)number, error));
    return task_path(w->folder, w->output, w->task.id, "work", error);
}

/* @return the exit status */
static int work_on(struct work *w, const char *id, struct error *error) {
    bool busy = false;
    if (open_task(w, id, error) != STATUS_OK) {
        return TASK_BROKEN;
    }
    if (lock_task(w, &busy, error) != STATUS_OK) {
        return TASK_RETRY;
    }
    if (busy) {
        (void)error_set(error, STATUS_IO, "task %s is being graded by another process", id);
        return TASK_BUSY;
    }
    if (result_exists(w->output, w->task.id)) {
        return TASK_DONE;
    }
    note_begin(w);
    enum status status = grade(w, error);
    run_free(&w->result->run);
    folder_remove(w->folder);
    return status == STATUS_OK ? TASK_DONE : TASK_RETRY;
}

static enum status parse(int argc, char **argv, struct arguments *arguments, struct error *error) {
    const struct flags flags = {
        .program = "grade_submission",
        .positional = "OUTPUT ID",
        .summary = "Grades one submission of an output folder of grade_class.",
        .epilogue = "OUTPUT is the folder of grade_class --output, ID a task's number: 000001.\n"
                    "The exit status is 0 when OUTPUT/tasks/ID/result.json is there, 75 when this "
                    "machine could not grade it,\n76 when another process is grading it, 64 when "
                    "OUTPUT is not whole.\n"};
    TRY(flags_read(&flags, argc, argv, arguments, error));
    if (!arguments->help && arguments->count != 2) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "OUTPUT and ID are wanted; see --help");
    }
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct error error = {0};
    struct arguments arguments = {0};
    struct work *w = calloc(1, sizeof *w);
    struct result *result = calloc(1, sizeof *result);
    int code = TASK_BROKEN;
    if (w != NULL && result != NULL && parse(argc, argv, &arguments, &error) == STATUS_OK) {
        code = TASK_DONE;
        if (!arguments.help) {
            *w = (struct work){.output = arguments.values[0], .result = result, .begin = now()};
            gethostname(result->host, sizeof result->host - 1);
            grader_catch_interrupts();
            code = work_on(w, arguments.values[1], &error);
        }
    }
    if (error.message[0] != '\0') {
        fprintf(stderr, "grade_submission: %s\n", error.message);
    }
    free(arguments.values);
    free(result);
    free(w);
    return code;
}
