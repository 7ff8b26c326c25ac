#include "grader/watch/round.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "grader/watch/events.h"
#include "grader/watch/log.h"

void round_begin(struct round *round, const struct watch_setup *setup, const struct lab *lab,
                 bool bench) {
    char file[WATCH_PATH], starter[WATCH_PATH];
    time_t now = time(NULL);
    struct tm local;
    round_free(round);
    *round = (struct round){.setup = setup, .lab = lab, .saved = events_now()};
    round->has_bench = bench && watch_has_bench(lab);
    round->run.lab = lab;
    strftime(round->clock, sizeof round->clock, "%H:%M:%S", localtime_r(&now, &local));
    snprintf(file, sizeof file, "%s/%s/%s/%s", setup->workspace, setup->subject, lab->name,
             lab->file);
    lab_starter_path(lab, setup->workspace, starter, sizeof starter);
    round->run.starter = lab_file_is(file, starter);
}

void round_free(struct round *round) {
    for (int part = 0; part < PARTS; part++) {
        program_free(&round->run.programs[part]);
    }
}

/* What does not compile or is wrong need not be fast. */
static bool is_over(const struct round *round) {
    return round->steps[WATCH_BUILD].state == ROUND_RED ||
           round->steps[WATCH_PARITY].state == ROUND_RED;
}

static bool is_wanted(const struct round *round, enum watch_step step) {
    bool linked = round->steps[WATCH_LINK].state == ROUND_GOOD;
    return step == WATCH_LINK ? round->has_bench : step != WATCH_BENCH || linked;
}

enum watch_step round_next(const struct round *round) {
    if (round->lab == NULL || is_over(round)) {
        return WATCH_STEPS;
    }
    for (int step = 0; step < WATCH_STEPS; step++) {
        if (round->steps[step].state == ROUND_WAITING && is_wanted(round, (enum watch_step)step)) {
            return (enum watch_step)step;
        }
    }
    return WATCH_STEPS;
}

void round_started(struct round *round, enum watch_step step) {
    round->steps[step].state = ROUND_RUNNING;
    round->steps[step].begun = events_now();
}

/* ---- Graded programs ---- */

static void read_grades(struct program *p, const struct lab *lab, enum part part,
                        const char *path) {
    struct error error = {0};
    char *text = log_read(path);
    if (text == NULL || program_read(p, lab, part, text, &error) != STATUS_OK) {
        p->strange++;
    }
    free(text);
}

static void say_tests(struct round_step *step, const struct program *p) {
    size_t passed = 0;
    for (size_t i = 0; i < p->count; i++) {
        passed += p->grades[i].verdict == VERDICT_PASS || p->grades[i].verdict == VERDICT_SKIP;
    }
    snprintf(step->note, sizeof step->note, "%zu of %zu tests passed", passed, p->count);
}

/* "kernel 5.0x of 13.8x, end_to_end 1.2x of 2.2x": reached and required. */
static void say_speedups(struct round_step *step, const struct program *p) {
    size_t used = 0;
    for (size_t i = 0; i < p->count && used < sizeof step->note; i++) {
        const struct grade *g = &p->grades[i];
        if (g->timed) {
            used +=
                (size_t)snprintf(step->note + used, sizeof step->note - used, "%s%s %.3gx of %.3gx",
                                 used > 0 ? ", " : "", g->test, g->speedup, g->required);
        }
    }
    if (used == 0) {
        say_tests(step, p);
    }
}

static bool is_green(const struct program *p) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->grades[i].verdict == VERDICT_FAIL || p->grades[i].verdict == VERDICT_SLOW) {
            return false;
        }
    }
    return program_is_sound(p);
}

/* Speed that is not enough is no failure: what the kernel waits for is more to the point. */
static bool is_only_slow(const struct program *p) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->grades[i].verdict == VERDICT_FAIL) {
            return false;
        }
    }
    return program_is_sound(p);
}

static void end_program(struct round *round, enum watch_step at, enum part part, int state,
                        bool late, const struct watch_command *command) {
    struct round_step *step = &round->steps[at];
    struct program *p = &round->run.programs[part];
    p->ending = late ? ENDING_TIMEOUT : WIFSIGNALED(state) ? ENDING_SIGNAL : ENDING_EXIT;
    p->code = WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state);
    p->seconds = step->seconds;
    read_grades(p, round->lab, part, command->grades);
    step->state = is_green(p) ? ROUND_GOOD : ROUND_RED;
    (part == PART_PARITY ? say_tests : say_speedups)(step, p);
    size_t used = strlen(step->note);
    snprintf(step->note + used, sizeof step->note - used, ", %.1f s after the save",
             events_now() - round->saved);
    score_lab(&round->score, &round->run, round->setup->subject);
    round->scored = true;
    char *text = log_read(command->log);
    if (step->state == ROUND_RED && text != NULL && !(part == PART_SPEEDUP && is_only_slow(p))) {
        log_failure(text, p, &round->failure);
    }
    free(text);
}

/* ---- The other steps ---- */

static void end_build(struct round *round, enum watch_step at, int state,
                      const struct watch_command *command) {
    struct round_step *step = &round->steps[at];
    bool good = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    step->state = good ? ROUND_GOOD : ROUND_RED;
    if (good) {
        return;
    }
    char *text = log_read(command->log);
    log_build_errors(text != NULL ? text : "", &round->failure);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127 && round->failure.count == 0) {
        lines_add(&round->failure, LINE_BAD,
                  "%s cannot be started: install it (./setup.sh), or name another with --bazel",
                  command->arguments[0]);
    } else if (round->failure.count == 0) {
        lines_add(&round->failure, LINE_BAD, "%s ended with status %d and no message",
                  command->arguments[0], WIFEXITED(state) ? WEXITSTATUS(state) : -1);
    }
    lines_add(&round->failure, LINE_PLAIN, "all of it: %s", command->log);
    free(text);
}

static void end_bench(struct round *round, int state, bool late,
                      const struct watch_command *command, struct bench_tables *last) {
    struct round_step *step = &round->steps[WATCH_BENCH];
    struct bench_tables *tables = calloc(1, sizeof *tables);
    char *text = log_read(command->log);
    if (text != NULL && tables != NULL) {
        bench_tables_read(text, tables);
    }
    bool good = !late && tables != NULL && tables->count > 0;
    step->state = good && WIFEXITED(state) && WEXITSTATUS(state) == 0 ? ROUND_GOOD : ROUND_RED;
    if (good) {
        bench_tables_show(tables, last, &round->bench);
        *last = *tables;
    } else if (late) {
        step->state = ROUND_LEFT_OUT;
        snprintf(step->note, sizeof step->note, "left out: it takes more than %.0f s",
                 step->seconds);
    } else {
        snprintf(step->note, sizeof step->note, "no table; see %.100s", command->log);
    }
    free(tables);
    free(text);
}

void round_ended(struct round *round, enum watch_step step, int state, bool late,
                 const struct watch_command *command, struct bench_tables *last) {
    round->steps[step].seconds = events_now() - round->steps[step].begun;
    switch (step) {
    case WATCH_PARITY:
        end_program(round, step, PART_PARITY, state, late, command);
        return;
    case WATCH_SPEEDUP:
        end_program(round, step, PART_SPEEDUP, state, late, command);
        return;
    case WATCH_BENCH:
        end_bench(round, state, late, command, last);
        return;
    default:
        end_build(round, step, state, command);
    }
}

void round_failed(struct round *round, enum watch_step step, const char *why) {
    round->steps[step].state = ROUND_RED;
    lines_add(&round->failure, LINE_BAD, "%s", why);
}
