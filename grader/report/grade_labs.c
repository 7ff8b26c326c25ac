#include "grader/report/grade_labs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/bench/bench.h"
#include "grader/report/memory.h"
#include "grader/report/run_grader.h"
#include "grader/report/warmups.h"
#include "grader/sandbox/sandbox.h"

enum { PATH_SIZE = 1200, MOST_RECORD = 16 << 20, TAIL = 16384 };

/* What one call of grade_labs() works with. */
struct work {
    const struct grade_options *options;
    struct run *run;
    struct run memory;
    struct signature_key key;
    char folder[1024]; /* of results, or a temporary one */
    bool writable;     /* it is the one that was asked for */
    struct progress progress;
    size_t done; /* programs */
};

static void say(const char *text) {
    fprintf(stderr, "report: %s\n", text);
}

/* Makes FOLDER and FOLDER/report; true when both can be written to. */
static bool make_folder(const char *folder) {
    char inner[PATH_SIZE];
    snprintf(inner, sizeof inner, "%s/report", folder);
    bool made = mkdir(folder, 0777) == 0 || errno == EEXIST;
    made = made && (mkdir(inner, 0777) == 0 || errno == EEXIST);
    return made && access(folder, W_OK) == 0 && access(inner, W_OK) == 0;
}

static enum status open_folder(struct work *w, struct error *error) {
    const char *asked = w->options->results;
    if (strlen(asked) >= sizeof w->folder) {
        return error_set(error, STATUS_TOO_LONG, "the path of the results is too long");
    }
    snprintf(w->folder, sizeof w->folder, "%s", asked);
    w->writable = make_folder(asked);
    if (w->writable) {
        return STATUS_OK;
    }
    char why[100];
    snprintf(why, sizeof why, "%s", strerror(errno));
    const char *scratch = getenv("TMPDIR");
    snprintf(w->folder, sizeof w->folder, "%.900s/warpbook-report-XXXXXX",
             scratch != NULL ? scratch : "/tmp");
    if (mkdtemp(w->folder) == NULL || !make_folder(w->folder)) {
        return error_set(error, STATUS_IO, "%s: cannot make a folder: %s", w->folder,
                         strerror(errno));
    }
    fprintf(stderr,
            "report: %s: cannot write there: %s; nothing is remembered, what programs print is in "
            "%s/report\n",
            asked, why, w->folder);
    return STATUS_OK;
}

/* One report at a time: two would read each other's results, and time each other's programs. */
static enum status lock_folder(const struct work *w, struct error *error) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/report/lock", w->folder);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(lock);
        return error_set(error, STATUS_IO,
                         "another report is grading with %s; wait for its end, or give --results "
                         "another folder",
                         w->folder);
    }
    return STATUS_OK; /* held until the process ends; where there are no locks, without */
}

static void memory_path(const struct work *w, char *path) {
    snprintf(path, PATH_SIZE, "%s/report-%s.json", w->folder, w->options->subject);
}

/* Without a memory, or with a damaged one, all labs are graded again. */
static void load_memory(struct work *w) {
    char path[PATH_SIZE];
    struct error error = {0};
    memory_path(w, path);
    enum status status = signature_key_open(&w->key, &error);
    if (status == STATUS_OK) {
        status = memory_load(&w->memory, path, &w->key, &error);
    }
    if (error.message[0] != '\0') {
        say(error_text(&error, status));
    }
    snprintf(w->memory.subject, sizeof w->memory.subject, "%s", w->options->subject);
    w->writable = w->writable && status == STATUS_OK; /* never over what was not read */
}

static void save_memory(struct work *w) {
    char path[PATH_SIZE];
    struct error error = {0};
    memory_path(w, path);
    if (w->writable && memory_save(&w->memory, path, &w->key, &error) != STATUS_OK) {
        say(error.message);
        w->writable = false;
    }
}

static void program_path(const struct work *w, const struct lab *lab, enum part part, char *path) {
    snprintf(path, PATH_SIZE, "%s/%s_%s", w->options->graders, lab->name, part_name(part));
}

/* The program with the learner's code. The graded ones link none of it, so they may exist without
 * this one. */
static void worker_path(const struct work *w, const struct lab *lab, char *path) {
    snprintf(path, PATH_SIZE, "%s/%s_worker", w->options->graders, lab->name);
}

static void on_tick(void *argument) {
    struct work *w = argument;
    progress_update(&w->progress, w->done);
}

/* The last telling line of a program that did not come to its end. */
static void read_last_line(struct program *p, const char *log) {
    char tail[TAIL + 1];
    int descriptor = open(log, O_RDONLY | O_CLOEXEC);
    off_t size = descriptor >= 0 ? lseek(descriptor, 0, SEEK_END) : -1;
    if (size < 0) {
        close(descriptor);
        return;
    }
    ssize_t got = pread(descriptor, tail, TAIL, size > TAIL ? size - TAIL : 0);
    close(descriptor);
    tail[got > 0 ? got : 0] = '\0';
    for (ssize_t i = 0; i < got; i++) {
        tail[i] = tail[i] == '\0' ? '?' : tail[i];
    }
    char *rest;
    for (char *line = strtok_r(tail, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        /* GoogleTest's own lines say where, not what. */
        if (line[0] != '[' && line[strspn(line, " \r")] != '\0') {
            text_clean(p->said, sizeof p->said, line, false);
        }
    }
}

/* Appends the program's records, unchanged, to the results' grade.jsonl. */
static void append_record(struct work *w, const char *text, size_t size) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/grade.jsonl", w->folder);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0 || write(descriptor, text, size) != (ssize_t)size) {
        fprintf(stderr, "report: %s: cannot append: %s\n", path, strerror(errno));
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
}

static void read_record(struct work *w, struct program *p, const struct lab *lab, enum part part,
                        const char *path) {
    char *text;
    size_t size;
    struct error error = {0};
    if (access(path, F_OK) != 0) {
        return; /* it left before its first test was over */
    }
    if (file_read(path, MOST_RECORD, &text, &size, &error) != STATUS_OK) {
        say(error.message);
        p->strange++;
        return;
    }
    char *copy = malloc(size + 1);
    if (copy != NULL) {
        memcpy(copy, text, size + 1);
        /* A NUL in the middle would hide what comes behind it. */
        p->strange += strlen(text) != size;
        if (program_read(p, lab, part, text, &error) != STATUS_OK) {
            say(error.message);
        }
        if (p->strange == 0) {
            append_record(w, copy, size);
        }
        free(copy);
    }
    free(text);
}

static enum ending ending_of(const struct grader_end *end) {
    switch (end->how) {
    case GRADER_EXITED:
        return ENDING_EXIT;
    case GRADER_SIGNALLED:
        return ENDING_SIGNAL;
    case GRADER_TIMED_OUT:
        return ENDING_TIMEOUT;
    default:
        return ENDING_NOT_RUN;
    }
}

/* A lab without a worker did not compile. */
static bool has_worker(const struct work *w, const struct lab *lab, struct program *p) {
    char worker[PATH_SIZE], why[PATH_SIZE + 100];
    worker_path(w, lab, worker);
    if (access(worker, X_OK) == 0) {
        return true;
    }
    snprintf(why, sizeof why, "%s: %s", worker, strerror(errno));
    p->ending = ENDING_NOT_BUILT;
    text_clean(p->said, sizeof p->said, why, false);
    return false;
}

static void run_program(struct work *w, struct lab_run *lab, enum part part) {
    char program[PATH_SIZE], record[PATH_SIZE], log[PATH_SIZE];
    struct program *p = &lab->programs[part];
    struct grader_end end;
    struct error error = {0};
    if (!has_worker(w, lab->lab, p)) {
        return;
    }
    program_path(w, lab->lab, part, program);
    snprintf(record, sizeof record, "%s/report/%s_%s.jsonl", w->folder, lab->lab->name,
             part_name(part));
    snprintf(log, sizeof log, "%s/report/%s_%s.log", w->folder, lab->lab->name, part_name(part));
    unlink(record);
    const struct grader_command command = {
        .program = program,
        .grades = record,
        .log = log,
        .commit = w->run->commit[0] != '\0' ? w->run->commit : NULL,
        .limit = w->options->limit,
        .tick = on_tick,
        .argument = w,
    };
    enum status status = run_grader(&command, &end, &error);
    if (status != STATUS_OK) {
        p->ending = ENDING_NOT_BUILT;
        text_clean(p->said, sizeof p->said, error_text(&error, status), false);
        return;
    }
    p->ending = ending_of(&end);
    p->code = end.code;
    p->seconds = end.seconds;
    read_record(w, p, lab->lab, part, record);
    if (!program_is_sound(p)) {
        read_last_line(p, log);
    }
    unlink(record);
}

/* The file that the learner edits. */
static void find_learner(const struct work *w, const struct lab *lab, char *path) {
    snprintf(path, PATH_SIZE, "%s/%s/%s/%s", w->options->workspace, w->options->subject, lab->name,
             lab->file);
}

/* Without the learner's file nothing tells whether it has changed: said once, for all labs. */
static void warn_of_missing(const struct work *w) {
    char file[PATH_SIZE], first[PATH_SIZE + 64] = "";
    size_t missing = 0;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab *lab = w->options->chosen[i];
        if (lab != NULL) {
            find_learner(w, lab, file);
            if (access(file, R_OK) != 0 && missing++ == 0) {
                snprintf(first, sizeof first, "%s: %s", file, strerror(errno));
            }
        }
    }
    if (missing > 0) {
        fprintf(stderr,
                "report: %.1000s%s; what was built is graded, but not remembered: start the report "
                "in the workbook's folder or in one below it\n",
                first, missing > 1 ? ", nor other labs' files" : "");
    }
}

/* The digest, and whether the file is the starter; both stay empty where something is missing. */
static void look_at(struct work *w, struct lab_run *lab) {
    char file[PATH_SIZE], starter[PATH_SIZE], programs[PARTS][PATH_SIZE], worker[PATH_SIZE];
    find_learner(w, lab->lab, file);
    lab_starter_path(lab->lab, w->options->workspace, starter, sizeof starter);
    worker_path(w, lab->lab, worker);
    program_path(w, lab->lab, PART_PARITY, programs[PART_PARITY]);
    program_path(w, lab->lab, PART_SPEEDUP, programs[PART_SPEEDUP]);
    const char *const all[] = {programs[PART_PARITY], programs[PART_SPEEDUP], worker, file};
    if (lab_digest(all, sizeof all / sizeof *all, lab->digest, NULL) != STATUS_OK) {
        lab->digest[0] = '\0';
    }
    lab->starter = lab_file_is(file, starter);
}

static void grade(struct work *w, struct lab_run *lab) {
    const struct lab_run *kept =
        w->options->again ? NULL : memory_find(&w->memory, lab->lab, lab->digest);
    if (kept != NULL) {
        *lab = *kept; /* the memory owns its grades */
        lab->kept = true;
        w->done += PARTS;
        return;
    }
    time_t now = time(NULL);
    struct tm utc;
    strftime(lab->time, sizeof lab->time, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    for (int part = 0; part < PARTS && !grader_interrupted(); part++) {
        char what[96];
        snprintf(what, sizeof what, "%s %s", lab->lab->name, part_name((enum part)part));
        w->progress.what = what;
        run_program(w, lab, (enum part)part);
        w->done++;
    }
    if (memory_wants(lab)) {
        memory_keep(&w->memory, lab);
        save_memory(w);
    }
}

static void find_commit(struct run *run) {
    char hash[256];
    const char *commit = bench_commit(hash, sizeof hash);
    text_clean(run->commit, sizeof run->commit, commit != NULL ? commit : "", false);
}

/* The memory's labs that are not part of the run are not needed any more. */
static void forget_rest(struct work *w) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        for (int part = 0; part < PARTS; part++) {
            struct program *p = &w->memory.labs[i].programs[part];
            if (p->grades != w->run->labs[i].programs[part].grades) {
                program_free(p);
            }
        }
    }
}

/* Notes what the sandbox lacks on this machine; refuses for it where that is asked for. */
static enum status look_at_isolation(const struct grade_options *options, struct run *run,
                                     struct error *error) {
    struct sandbox_result seen = {.holds = 0};
    TRY(sandbox_find_holds(0, &seen.holds, error));
    sandbox_lacks(&seen, SANDBOX_HOLDS_ISOLATION, run->not_held, sizeof run->not_held);
    if (!options->isolated) {
        return STATUS_OK;
    }
    if (run->not_held[0] != '\0') {
        return error_set(error, STATUS_UNSUPPORTED,
                         "--require-isolation: nothing is graded here, as this machine lacks: %s",
                         run->not_held);
    }
    setenv("WARPBOOK_REQUIRE_ISOLATION", "1", 1); /* for the graded programs */
    return STATUS_OK;
}

enum status grade_labs(struct run *run, const struct grade_options *options, struct error *error) {
    struct work w = {.options = options, .run = run};
    size_t labs = 0;
    *run = (struct run){0};
    snprintf(run->subject, sizeof run->subject, "%s", options->subject);
    find_commit(run);
    TRY(look_at_isolation(options, run, error));
    TRY(open_folder(&w, error));
    TRY(lock_folder(&w, error));
    load_memory(&w);
    warn_of_missing(&w);
    if (options->warmups) {
        run->warmups = w.memory.warmups = warmups_try(options, &w.memory, w.folder);
        save_memory(&w);
    }
    for (size_t i = 0; i < LAB_COUNT; i++) {
        labs += options->chosen[i] != NULL;
    }
    w.progress = progress_create("grading", PARTS * labs);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        struct lab_run *lab = &run->labs[i];
        lab->lab = options->chosen[i];
        if (lab->lab != NULL && !grader_interrupted()) {
            look_at(&w, lab);
            grade(&w, lab);
        }
    }
    progress_finish(&w.progress);
    forget_rest(&w);
    return STATUS_OK;
}
