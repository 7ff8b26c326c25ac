#include "grader/watch/loop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "grader/report/run_grader.h"
#include "grader/watch/events.h"
#include "grader/watch/next_hint.h"
#include "grader/watch/page.h"
#include "grader/watch/view.h"

/* Seconds: of a step, and from a polite request to end to SIGKILL. */
static const double LIMIT = 600.0, BENCH_LIMIT = 60.0, POLITE = 3.0;
/* Seconds between two looks at the clock while something runs, and while nothing does. */
static const double TICK = 0.2, REST = 10.0;

static const char footer[] = "h hint   r run again   j/k scroll   q quit";

struct watch {
    const struct watch_options *options;
    struct events events;
    struct page page;
    struct round round;
    struct bench_tables tables[LAB_COUNT]; /* of the latest benches */
    struct watch_command command;          /* of the child */
    pid_t child;                           /* 0: there is none */
    enum watch_step step;                  /* of the child */
    double limit;                          /* when the child is killed; 0: never */
    bool late;                             /* it was */
    const struct lab *wanted;              /* of the next round, which waits for the child's end */
    struct lines hint, lines;
    bool quit;
    int code;
};

static bool is_build(enum watch_step step) {
    return step == WATCH_BUILD || step == WATCH_LINK;
}

/* ---- Showing ---- */

static void draw(struct watch *w) {
    if (w->page.full) {
        w->lines.count = 0;
        view_round(&w->round, &w->lines);
        if (w->hint.count > 0) {
            lines_add(&w->lines, LINE_PLAIN, "%s", "");
            lines_append(&w->lines, &w->hint);
        }
        page_scroll(&w->page, &w->lines, 0);
        page_draw(&w->page, &w->lines, footer);
    }
}

/* Without a page each part is printed when it is there. */
static void print_step(struct watch *w) {
    if (!w->page.full) {
        w->lines.count = 0;
        view_step(&w->round, w->step, &w->lines);
        page_print(&w->lines);
    }
}

static void print_title(struct watch *w) {
    if (!w->page.full) {
        w->lines.count = 0;
        lines_add(&w->lines, LINE_PLAIN, "%s", "");
        view_title(&w->round, &w->lines);
        page_print(&w->lines);
    }
}

/* ---- The child ---- */

static enum status start(struct watch *w, struct error *error) {
    const struct watch_setup *setup = &w->options->setup;
    if (!watch_command(&w->command, setup, w->round.lab, w->step)) {
        return error_set(error, STATUS_TOO_LONG, "the command line of %s is too long",
                         watch_step_name(w->step));
    }
    bool graded = w->command.grades[0] != '\0';
    if (graded) {
        unlink(w->command.grades);
    }
    const struct grader_command command = {.program = w->command.arguments[0],
                                           .arguments = w->command.arguments,
                                           .folder = setup->workspace,
                                           .grades = graded ? w->command.grades : NULL,
                                           .tool = !graded,
                                           .log = w->command.log};
    return grader_start(&command, &w->child, error);
}

/* Starts the next step of the round, if there is one. */
static void go_on(struct watch *w) {
    struct error error = {0};
    w->step = round_next(&w->round);
    if (w->step == WATCH_STEPS) {
        return;
    }
    round_started(&w->round, w->step);
    enum status status = start(w, &error);
    w->late = false;
    w->limit =
        is_build(w->step) ? 0.0 : events_now() + (w->step == WATCH_BENCH ? BENCH_LIMIT : LIMIT);
    if (status != STATUS_OK) {
        w->child = 0;
        round_failed(&w->round, w->step, error_text(&error, status));
        print_step(w);
    }
}

static void begin_round(struct watch *w, const struct lab *lab) {
    w->wanted = NULL;
    w->hint.count = 0;
    w->page.top = 0;
    round_begin(&w->round, &w->options->setup, lab, w->options->bench);
    print_title(w);
    go_on(w);
}

/* Bazel's client tells its server to stop; other programs hold nothing. */
static void stop_child(struct watch *w) {
    kill(-w->child, is_build(w->step) ? SIGINT : SIGKILL);
    w->limit = events_now() + POLITE;
}

/* A round of the lab, as soon as the child of this one has ended. */
static void want_round(struct watch *w, const struct lab *lab) {
    if (w->child == 0) {
        begin_round(w, lab);
        return;
    }
    if (w->wanted == NULL) {
        stop_child(w);
    }
    w->wanted = lab;
}

static void look_after_child(struct watch *w) {
    int state = 0;
    if (w->child == 0 || waitpid(w->child, &state, WNOHANG) != w->child) {
        return;
    }
    kill(-w->child, SIGKILL); /* whatever it left behind */
    w->child = 0;
    if (w->wanted != NULL) {
        begin_round(w, w->wanted);
        return;
    }
    size_t lab = (size_t)(w->round.lab - lab_at(0));
    round_ended(&w->round, w->step, state, w->late, &w->command, &w->tables[lab]);
    print_step(w);
    go_on(w);
}

static void kill_if_late(struct watch *w) {
    if (w->child != 0 && w->limit > 0.0 && events_now() > w->limit) {
        w->late = true;
        kill(-w->child, SIGKILL);
        w->limit = 0.0;
    }
}

/* ---- Events ---- */

static void show_hint(struct watch *w) {
    next_hint(w->round.lab, w->options->setup.workspace, &w->hint);
    if (!w->page.full) {
        page_print(&w->hint);
        return;
    }
    /* The hint stands at the end: as much of it as there is room for. */
    draw(w);
    page_scroll(&w->page, &w->lines, (int)w->hint.count + 1);
}

static void on_key(struct watch *w, int key) {
    switch (key) {
    case 'h':
        show_hint(w);
        break;
    case 'r':
        want_round(w, w->round.lab);
        break;
    case 'q':
        w->quit = true;
        break;
    case 'j':
    case KEY_DOWN:
        page_scroll(&w->page, &w->lines, 1);
        break;
    case 'k':
    case KEY_UP:
        page_scroll(&w->page, &w->lines, -1);
        break;
    default:
        break;
    }
}

static void on_event(struct watch *w, const struct event *event) {
    switch (event->kind) {
    case EVENT_SAVED:
        want_round(w, lab_at(event->lab));
        break;
    case EVENT_KEY:
        on_key(w, event->key);
        break;
    case EVENT_RESIZED:
        page_resize(&w->page);
        break;
    case EVENT_QUIT:
        w->quit = true;
        w->code = 128 + event->signal;
        break;
    default: /* the clock, and the child, are looked at each time */
        break;
    }
    look_after_child(w);
    kill_if_late(w);
}

/* Nothing may be left running. */
static void end_child(struct watch *w) {
    const struct timespec pause = {.tv_nsec = 20000000};
    if (w->child == 0) {
        return;
    }
    stop_child(w);
    while (waitpid(w->child, NULL, WNOHANG) == 0) {
        if (events_now() > w->limit) {
            kill(-w->child, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
    kill(-w->child, SIGKILL);
    w->child = 0;
}

static enum status open_events(struct watch *w, struct error *error) {
    TRY(events_open(&w->events, isatty(STDIN_FILENO), error));
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (w->options->labs[i]) {
            TRY(events_watch(&w->events, w->options->setup.workspace, w->options->setup.subject, i,
                             error));
        }
    }
    return STATUS_OK;
}

static void run(struct watch *w) {
    begin_round(w, lab_at(w->options->first));
    while (!w->quit) {
        struct event event;
        draw(w);
        events_wait(&w->events, w->child != 0 ? TICK : REST, &event);
        on_event(w, &event);
    }
    end_child(w);
}

enum status watch_loop(const struct watch_options *options, int *code, struct error *error) {
    struct watch *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    w->options = options;
    enum status status = open_events(w, error);
    if (status == STATUS_OK) {
        page_open(&w->page, options->plain);
        run(w);
        page_close(&w->page);
        events_close(&w->events);
    }
    *code = w->code;
    round_free(&w->round);
    free(w);
    return status;
}
