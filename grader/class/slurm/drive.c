/* drive FOLDER COUNT [OPTIONS [JOBS]]: gives tasks 1 to COUNT to the Slurm back end and waits until
   each has its result.json or was tried three times, as grade_class does; resumes when started
   again. Ctrl-C cancels. Prints one line an event. For tests. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grader/class/backend/backend.h"
#include "grader/class/slurm/slurm.h"

enum { MOST = 2000, TRIES = 3, ENDS = 100, PATH = 4096 };

struct drive {
    const char *folder;
    void *slurm;
    unsigned count;
    struct {
        bool done, started;
        unsigned tries;
    } tasks[MOST + 1];
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static bool has_result(const struct drive *d, unsigned id) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/tasks/%06u/result.json", d->folder, id);
    return access(path, F_OK) == 0;
}

static void look_for_results(struct drive *d) {
    for (unsigned id = 1; id <= d->count; id++) {
        if (!d->tasks[id].done && has_result(d, id)) {
            d->tasks[id].done = true;
            printf("result %u\n", id);
        }
    }
}

static bool all_done(const struct drive *d) {
    for (unsigned id = 1; id <= d->count; id++) {
        if (!d->tasks[id].done) {
            return false;
        }
    }
    return true;
}

/* Starts what is not with Slurm, as much as there is room for. */
static void start(struct drive *d) {
    static unsigned ids[MOST];
    struct error error = {0};
    size_t count = 0, room = backend_slurm.room(d->slurm);
    for (unsigned id = 1; id <= d->count && count < room; id++) {
        if (!d->tasks[id].done && !d->tasks[id].started) {
            ids[count++] = id;
        }
    }
    if (count == 0) {
        return;
    }
    enum status status = backend_slurm.start(d->slurm, ids, count, &error);
    if (status != STATUS_OK) {
        printf("start: %s\n", error_text(&error, status));
        sleep(1);
        return;
    }
    printf("started %zu\n", count);
    for (size_t i = 0; i < count; i++) {
        d->tasks[ids[i]].started = true;
        d->tasks[ids[i]].tries++;
    }
}

static void take_end(struct drive *d, const struct backend_end *end) {
    bool result = has_result(d, end->id);
    printf("end %u: %s %d %s%s\n", end->id,
           end->how == BACKEND_EXITED      ? "exit"
           : end->how == BACKEND_SIGNALLED ? "signal"
                                           : "lost",
           end->code, end->why, result ? "" : " (no result)");
    bool busy = end->how == BACKEND_EXITED && end->code == 76;
    d->tasks[end->id].tries -= busy; /* another one works on it */
    d->tasks[end->id].started = d->tasks[end->id].tries >= TRIES;
    if (!result && d->tasks[end->id].tries >= TRIES) {
        printf("given up %u\n", end->id);
        d->tasks[end->id].done = true;
    }
}

static void poll_once(struct drive *d, char *trouble, size_t size) {
    struct backend_end ends[ENDS];
    struct error error = {0};
    size_t count = 0;
    enum status status = backend_slurm.poll(d->slurm, ends, ENDS, &count, &error);
    for (size_t i = 0; i < count; i++) {
        take_end(d, &ends[i]);
    }
    const char *text = status == STATUS_OK ? "" : error_text(&error, status);
    if (strcmp(text, trouble) != 0) {
        printf("%s\n", text[0] != '\0' ? text : "Slurm answers again");
        snprintf(trouble, size, "%s", text);
    }
}

static int drive(struct drive *d) {
    char text[300], last[300] = "", trouble[600] = "";
    for (unsigned id = 1; id <= d->count; id++) {
        d->tasks[id].started = backend_slurm.has(d->slurm, id);
        d->tasks[id].tries = d->tasks[id].started;
        if (d->tasks[id].started && !has_result(d, id)) {
            printf("still with Slurm: %u\n", id);
        }
    }
    for (look_for_results(d); !all_done(d) && interrupted == 0; look_for_results(d)) {
        start(d);
        poll_once(d, trouble, sizeof trouble);
        backend_slurm.describe(d->slurm, text, sizeof text);
        if (strcmp(text, last) != 0) {
            printf("-- %s\n", text);
            snprintf(last, sizeof last, "%s", text);
        }
        usleep(100000);
    }
    if (interrupted != 0) {
        backend_slurm.cancel(d->slurm);
    }
    backend_slurm.close(d->slurm);
    return interrupted != 0 ? 130 : 0;
}

int main(int argc, char **argv) {
    static struct drive d;
    struct error error = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3 || strtoul(argv[2], NULL, 10) > MOST) {
        fprintf(stderr, "usage: drive FOLDER COUNT [OPTIONS [JOBS]]\n");
        return 2;
    }
    d.folder = argv[1];
    d.count = (unsigned)strtoul(argv[2], NULL, 10);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    struct backend_options options = {.folder = argv[1],
                                      .text = argc > 3 ? argv[3] : NULL,
                                      .jobs = argc > 4 ? strtoul(argv[4], NULL, 10) : 0,
                                      .needs_gpu = true,
                                      .limit_s = 600};
    enum status status = backend_slurm.open(&d.slurm, &options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "drive: %s\n", error_text(&error, status));
        return 1;
    }
    return drive(&d);
}
