#include "grader/class/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/terminal.h"
#include "grader/class/result.h"
#include "grader/report/run.h"
#include "grader/report/run_grader.h"

enum { MOST_ENDS = 64, TAIL = 600 };

static const double LOOK_S = 1.0, SHOW_S = 2.0, AGAIN_S = 5.0;

/* What collect() remembers between its rounds. */
struct rounds {
    struct collection *c;
    struct progress progress;
    char what[160];
    double looked, shown, refused; /* when: for results, at pages, that start() failed */
    bool fresh;                    /* results that no page shows */
    bool full;                     /* the output folder's disk */
    size_t before;                 /* done before this call */
    char trouble[512];             /* of the back end, said once */
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

size_t collection_count(const struct collection *c, enum task_state state) {
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        count += c->tasks[i].state == state;
    }
    return count;
}

static size_t count_done(const struct collection *c) {
    return c->count - collection_count(c, TASK_WAITS) - collection_count(c, TASK_RUNS);
}

static void say(struct rounds *r, const char *name, const char *text) {
    progress_finish(&r->progress);
    fprintf(stderr, "grade_class: %s%s%s\n", name, name[0] != '\0' ? ": " : "", text);
}

/* On a terminal the progress line tells; else a line a submission does. */
static void note_graded(struct rounds *r, struct progress_of *p) {
    p->state = TASK_GRADED;
    r->fresh = true;
    if (!r->progress.visible) {
        fprintf(stderr, "grade_class: graded %zu of %zu: %s\n", count_done(r->c), r->c->count,
                p->task.name);
    }
}

static void look_for_results(struct rounds *r) {
    if (now() - r->looked < LOOK_S) {
        return;
    }
    for (size_t i = 0; i < r->c->count; i++) {
        struct progress_of *p = &r->c->tasks[i];
        if (p->state == TASK_RUNS && result_exists(r->c->output, p->task.id)) {
            note_graded(r, p);
        }
    }
    r->looked = now();
}

/* The last line that grade_submission printed. */
static void last_said(const struct rounds *r, unsigned id, char *text, size_t size) {
    char path[TASK_PATH], tail[TAIL + 1] = "";
    if (task_path(path, r->c->output, id, "said", NULL) != STATUS_OK) {
        return;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    off_t end = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
    ssize_t got = end > 0 ? pread(file, tail, TAIL, end > TAIL ? end - TAIL : 0) : 0;
    if (file >= 0) {
        close(file);
    }
    while (got > 0 && tail[got - 1] == '\n') {
        got--;
    }
    tail[got > 0 ? got : 0] = '\0';
    const char *line = strrchr(tail, '\n');
    text_clean(text, size, line != NULL ? line + 1 : tail, false);
}

static void describe_end(const struct rounds *r, const struct backend_end *end, char *text,
                         size_t size) {
    char said[200] = "";
    last_said(r, end->id, said, sizeof said);
    if (end->how == BACKEND_SIGNALLED) {
        snprintf(text, size, "its program was killed by signal %d", end->code);
    } else if (end->how == BACKEND_LOST) {
        snprintf(text, size, "%s", end->why[0] != '\0' ? end->why : "its node was lost");
    } else {
        snprintf(text, size, "%s", said[0] != '\0' ? said : "its program left without a result");
    }
}

/* Without a result: again, or not. */
static void take_back(struct rounds *r, struct progress_of *p, const struct backend_end *end) {
    char why[sizeof p->why], line[sizeof p->why + 60];
    if (end->how == BACKEND_EXITED && end->code == TASK_BUSY) {
        p->state = TASK_WAITS; /* another process works on it: that one's result will be there */
        r->refused = now();
        return;
    }
    describe_end(r, end, why, sizeof why);
    if (strstr(why, strerror(ENOSPC)) != NULL) {
        r->full = true;
        p->state = TASK_WAITS;
        return;
    }
    p->tries++;
    bool again = p->tries < MOST_TRIES && !(end->how == BACKEND_EXITED && end->code == TASK_BROKEN);
    p->state = again ? TASK_WAITS : TASK_GIVEN_UP;
    snprintf(p->why, sizeof p->why, "%s", again ? "" : why);
    snprintf(line, sizeof line, "%s; %s", why, again ? "it is tried again" : "not graded");
    say(r, p->task.name, line);
    r->fresh |= !again;
}

static struct progress_of *find(struct collection *c, unsigned id) {
    for (size_t i = 0; i < c->count; i++) {
        if (c->tasks[i].task.id == id) {
            return &c->tasks[i];
        }
    }
    return NULL;
}

/* Says a back end's trouble when it begins. */
static void note_trouble(struct rounds *r, enum status status, const struct error *error) {
    const char *text = status == STATUS_OK ? "" : error_text(error, status);
    if (strcmp(r->trouble, text) != 0) {
        snprintf(r->trouble, sizeof r->trouble, "%s", text);
        if (text[0] != '\0') {
            say(r, "", text);
        }
    }
}

static void take_ends(struct rounds *r) {
    struct backend_end ends[MOST_ENDS];
    struct error error = {0};
    size_t count = 0;
    enum status status = r->c->backend->poll(r->c->self, ends, MOST_ENDS, &count, &error);
    note_trouble(r, status, &error);
    for (size_t i = 0; i < count; i++) {
        struct progress_of *p = find(r->c, ends[i].id);
        if (p == NULL || p->state != TASK_RUNS) {
            continue;
        }
        if (result_exists(r->c->output, p->task.id)) {
            note_graded(r, p);
        } else {
            take_back(r, p, &ends[i]);
        }
    }
}

/* As many as the back end takes now. @return how many */
static size_t choose(const struct collection *c, unsigned *ids, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < c->count && count < most; i++) {
        if (c->tasks[i].state == TASK_WAITS) {
            ids[count++] = c->tasks[i].task.id;
        }
    }
    return count;
}

static void start_tasks(struct rounds *r) {
    static const size_t MOST = 1000; /* of one call */
    unsigned ids[1000];
    struct collection *c = r->c;
    while (now() - r->refused > AGAIN_S) {
        size_t room = c->backend->room(c->self);
        size_t count = choose(c, ids, room < MOST ? room : MOST);
        struct error error = {0};
        if (count == 0) {
            return;
        }
        enum status status = c->backend->start(c->self, ids, count, &error);
        note_trouble(r, status, &error);
        if (status != STATUS_OK) {
            r->refused = now();
            return;
        }
        for (size_t i = 0; i < count; i++) {
            find(c, ids[i])->state = TASK_RUNS;
        }
    }
}

static enum status show(struct rounds *r, bool last, struct error *error) {
    if ((r->fresh && now() - r->shown > SHOW_S) || last) {
        TRY(r->c->show(r->c, error));
        r->fresh = false;
        r->shown = now();
    }
    return STATUS_OK;
}

static void show_progress(struct rounds *r) {
    char queue[100] = "";
    r->c->backend->describe(r->c->self, queue, sizeof queue);
    snprintf(r->what, sizeof r->what, "grading (%s)", queue);
    progress_update(&r->progress, count_done(r->c) - r->before);
}

static void find_started(struct collection *c) {
    for (size_t i = 0; i < c->count; i++) {
        struct progress_of *p = &c->tasks[i];
        if (p->state == TASK_WAITS && result_exists(c->output, p->task.id)) {
            p->state = TASK_GRADED;
        } else if (p->state == TASK_WAITS && c->backend->has(c->self, p->task.id)) {
            p->state = TASK_RUNS;
        }
    }
}

static enum status stop(struct rounds *r, struct error *error) {
    r->c->backend->cancel(r->c->self);
    progress_finish(&r->progress);
    if (r->full) {
        return error_set(error, STATUS_IO,
                         "the disk of %.300s is full; with room on it, --resume goes on",
                         r->c->output);
    }
    TRY(r->c->show(r->c, error));
    return error_set(error, STATUS_INTERRUPTED, "interrupted; --resume goes on where it stopped");
}

static enum status go_on(struct rounds *r, struct error *error) {
    take_ends(r);
    start_tasks(r);
    look_for_results(r);
    TRY(show(r, false, error));
    show_progress(r);
    return STATUS_OK;
}

enum status collect(struct collection *c, struct error *error) {
    const struct timespec pause = {.tv_nsec = 20000000};
    struct rounds r = {.c = c, .refused = now() - AGAIN_S - 1.0};
    find_started(c);
    r.before = count_done(c);
    r.progress = progress_create(r.what, c->count - r.before);
    while (collection_count(c, TASK_WAITS) + collection_count(c, TASK_RUNS) > 0) {
        if (grader_interrupted() || r.full) {
            return stop(&r, error);
        }
        enum status status = go_on(&r, error);
        if (status != STATUS_OK) {
            c->backend->cancel(c->self);
            progress_finish(&r.progress);
            return status;
        }
        nanosleep(&pause, NULL);
    }
    progress_finish(&r.progress);
    return show(&r, true, error);
}
