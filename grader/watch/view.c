#include "grader/watch/view.h"

#include <stdio.h>
#include <string.h>

#include "grader/watch/events.h"

void view_title(const struct round *round, struct lines *lines) {
    lines_add(lines, LINE_STRONG, "%s  %s/%s/%s  %s", round->lab->name, round->setup->subject,
              round->lab->name, round->lab->file, round->clock);
}

/* The bench's two steps are shown as one. */
static enum watch_step shown_step(const struct round *round, enum watch_step step) {
    bool linking = step == WATCH_BENCH && round->steps[WATCH_BENCH].state == ROUND_WAITING &&
                   round->steps[WATCH_LINK].state != ROUND_GOOD;
    return linking ? WATCH_LINK : step;
}

static const char *word_of(enum step_state state) {
    static const char *const words[] = {"waits", "...", "ok", "red", "left out"};
    return words[state];
}

static enum line_style style_of(enum step_state state) {
    static const enum line_style styles[] = {LINE_PLAIN, LINE_BUSY, LINE_GOOD, LINE_BAD,
                                             LINE_PLAIN};
    return styles[state];
}

static void add_step(const struct round *round, enum watch_step at, struct lines *lines) {
    const struct round_step *step = &round->steps[at];
    double seconds = step->state == ROUND_RUNNING ? events_now() - step->begun : step->seconds;
    if (step->state == ROUND_WAITING) {
        lines_add(lines, LINE_PLAIN, "  %-8s %s", watch_step_name(at), word_of(step->state));
        return;
    }
    lines_add(lines, style_of(step->state), "  %-8s %-8s %5.1f s  %s", watch_step_name(at),
              word_of(step->state), seconds, step->note);
}

void view_points(const struct round *round, struct lines *lines) {
    const struct lab_score *score = &round->score;
    if (!round->scored) {
        return;
    }
    bool all = round->run.programs[PART_SPEEDUP].ending != ENDING_NOT_RUN;
    lines_add(lines, LINE_STRONG, "  points   %d of %d%s", score->points, LAB_POINTS,
              all ? "" : " so far");
    if (all && score->state != STATE_BROKEN && score->state != STATE_WRONG) {
        lines_add(lines, LINE_PLAIN, "  next     %s", score->next);
    }
}

/* Of a right kernel that is not at its best. */
static void add_bottleneck(const struct round *round, struct lines *lines) {
    if (round->scored && round->failure.count == 0 && round->score.bottleneck[0] != '\0') {
        lines_add(lines, LINE_PLAIN, "  why      %s", round->score.bottleneck);
    }
}

static void add_block(const struct lines *block, struct lines *lines) {
    if (block->count > 0) {
        lines_add(lines, LINE_PLAIN, "%s", "");
        lines_append(lines, block);
    }
}

void view_round(const struct round *round, struct lines *lines) {
    view_title(round, lines);
    lines_add(lines, LINE_PLAIN, "%s", "");
    add_step(round, WATCH_BUILD, lines);
    add_step(round, WATCH_PARITY, lines);
    if (round->has_bench) {
        add_step(round, shown_step(round, WATCH_BENCH), lines);
    }
    add_step(round, WATCH_SPEEDUP, lines);
    view_points(round, lines);
    add_bottleneck(round, lines);
    add_block(&round->failure, lines);
    add_block(&round->bench, lines);
}

void view_step(const struct round *round, enum watch_step step, struct lines *lines) {
    bool failed = round->steps[step].state == ROUND_RED;
    if (step == WATCH_LINK && !failed) {
        return; /* its bench follows */
    }
    add_step(round, step, lines);
    if (failed) {
        lines_append(lines, &round->failure);
    }
    if (step == WATCH_SPEEDUP || (step == WATCH_PARITY && failed)) {
        view_points(round, lines);
        add_bottleneck(round, lines);
    }
    if (step == WATCH_BENCH) {
        lines_append(lines, &round->bench);
    }
}
