#include "grader/report/score.h"

#include <stdio.h>
#include <string.h>

/* From here on a model counts as faster: what clocks vary by is less. */
static const double FASTER_MODEL = 1.1;

static const char *const states[STATES] = {"not run", "not built", "broken", "not begun",
                                           "wrong",   "slow",      "passed", "gold"};

const char *state_name(enum lab_state state) {
    return states[state];
}

static const struct grade *find_grade(const struct program *p, const char *test) {
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->grades[i].test, test) == 0) {
            return &p->grades[i];
        }
    }
    return NULL;
}

static const struct grade *first_red(const struct program *p) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->grades[i].verdict == VERDICT_FAIL || p->grades[i].verdict == VERDICT_SLOW) {
            return &p->grades[i];
        }
    }
    return NULL;
}

static bool is_green(const struct program *p) {
    return program_is_sound(p) && first_red(p) == NULL;
}

static bool is_model(const struct row_score *r) {
    return strcmp(r->row->measure, "end_to_end") == 0;
}

/* A measure without steps has all of its points, or half: see thresholds.c. */
static int flat_points(const struct row_score *r) {
    if (r->grade->verdict == VERDICT_PASS) {
        return r->row->points;
    }
    bool faster = r->grade->verdict == VERDICT_SLOW && r->grade->speedup >= FASTER_MODEL;
    return faster ? r->row->points / 2 : 0;
}

static void score_row(struct row_score *r, const struct program *p) {
    const struct grade *grade = find_grade(p, r->row->measure);
    r->grade = grade;
    bool counted = r->row->shares.pass == 0.0;
    if (grade == NULL) {
        return;
    }
    r->steps = grade->timed && !counted ? grade->steps : (struct steps){0.0, 0.0, 0.0};
    if (counted || !grade->timed || grade->verdict != VERDICT_PASS) {
        r->step = counted && grade->verdict == VERDICT_PASS ? STEP_GOLD : STEP_NONE;
        r->points = counted || r->row->shares.good == 0.0 ? flat_points(r) : 0;
        return;
    }
    r->step = threshold_step(&r->steps, grade->speedup);
    r->points = threshold_points(r->row, r->step);
}

/* The machine cannot do it. */
static bool is_left_out(const struct row_score *r) {
    return r->grade != NULL && r->grade->verdict == VERDICT_SKIP;
}

static bool is_timed(const struct row_score *r) {
    return r->grade != NULL && r->grade->timed;
}

static double reached(const struct row_score *r) {
    return r->grade->speedup / r->steps.pass;
}

static void score_rows(struct lab_score *s, const struct lab_run *lab) {
    const struct threshold *row;
    for (size_t i = 0; (row = threshold_at(i)) != NULL && s->count < MOST_ROWS; i++) {
        if (strcmp(row->lab, lab->lab->name) == 0) {
            s->rows[s->count].row = row;
            score_row(&s->rows[s->count], &lab->programs[PART_SPEEDUP]);
            s->count++;
        }
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct row_score *r = &s->rows[i];
        if (is_model(r) && is_timed(r)) {
            s->model = r;
        } else if (is_timed(r) && (s->kernel == NULL || reached(r) < reached(s->kernel))) {
            s->kernel = r;
        }
    }
}

/* Points of speed are for code that is right, and for a program that ran to its end. */
static void add_points(struct lab_score *s, const struct lab_run *lab) {
    bool right = is_green(&lab->programs[PART_PARITY]);
    bool sound = program_is_sound(&lab->programs[PART_SPEEDUP]);
    s->parity_points = right && !lab->starter ? PARITY_POINTS : 0;
    s->points = s->parity_points;
    int possible = LAB_POINTS;
    for (size_t i = 0; i < s->count; i++) {
        if (!right || !sound || lab->starter) {
            s->rows[i].points = 0;
            s->rows[i].step = STEP_NONE;
        }
        s->points += s->rows[i].points;
        possible -= is_left_out(&s->rows[i]) ? s->rows[i].row->points : 0;
    }
    /* What this GPU cannot do has no points to give: the others count for more. */
    s->points = (s->points * LAB_POINTS + possible / 2) / possible;
}

static enum lab_state state_of(const struct lab_score *s, const struct lab_run *lab) {
    const struct program *parity = &lab->programs[PART_PARITY];
    const struct program *speedup = &lab->programs[PART_SPEEDUP];
    if (parity->ending == ENDING_NOT_RUN || speedup->ending == ENDING_NOT_RUN) {
        return STATE_NOT_RUN;
    }
    if (parity->ending == ENDING_NOT_BUILT || speedup->ending == ENDING_NOT_BUILT) {
        return STATE_NOT_BUILT;
    }
    if (program_is_sound(parity) && !is_green(parity)) {
        return STATE_WRONG;
    }
    if (!program_is_sound(parity) || !program_is_sound(speedup)) {
        return STATE_BROKEN;
    }
    return s->points == LAB_POINTS ? STATE_GOLD
           : is_green(speedup)     ? STATE_PASSED
           : lab->starter          ? STATE_NOT_BEGUN
                                   : STATE_SLOW;
}

static void say_device(struct lab_score *s, const struct lab_run *lab) {
    for (int part = PART_SPEEDUP; part >= PART_PARITY; part--) {
        const struct program *p = &lab->programs[part];
        for (size_t i = 0; i < p->count; i++) {
            if (p->grades[i].timed || part == PART_PARITY) {
                snprintf(s->device, sizeof s->device, "%s, %s", p->grades[i].device,
                         p->grades[i].modelled ? "modelled" : "measured");
                return;
            }
        }
    }
}

/* The first line of a message, behind the test's name where it does not say it. */
static void say_grade(char *text, size_t size, const struct grade *grade) {
    char line[512];
    size_t length = strcspn(grade->message, "\n");
    snprintf(line, sizeof line, "%.*s", (int)(length < 480 ? length : 480), grade->message);
    text_clean(line, sizeof line, line, false); /* a cut may have split a character */
    bool named = strstr(line, grade->test) != NULL;
    snprintf(text, size, "%s%s%s", named ? "" : grade->test, named ? "" : ": ", line);
}

static void say_why(struct lab_score *s, const struct lab_run *lab) {
    for (int part = 0; part < PARTS && s->why[0] == '\0'; part++) {
        char trouble[560];
        const struct program *p = &lab->programs[part];
        if (s->state == STATE_NOT_RUN) {
            return;
        }
        if (program_trouble(p, trouble, sizeof trouble) != NULL) {
            snprintf(s->why, sizeof s->why, "%s: %s", part_name((enum part)part), trouble);
        } else if (first_red(p) != NULL) {
            say_grade(s->why, sizeof s->why, first_red(p));
        }
    }
}

static void say_next_step(struct lab_score *s, const struct lab_run *lab, const char *subject) {
    for (size_t i = 0; i < s->count; i++) {
        const struct row_score *r = &s->rows[i];
        if (r->points < r->row->points && r->steps.good > 0.0 && r->step != STEP_NONE) {
            bool good = r->step == STEP_PASS;
            snprintf(s->next, sizeof s->next,
                     "%s is %.3gx, %s from %.3gx on: bazel run //%s/%s:bench", r->row->measure,
                     r->grade->speedup, good ? "good" : "gold",
                     good ? r->steps.good : r->steps.gold, subject, lab->lab->name);
            return;
        }
    }
    snprintf(s->next, sizeof s->next, "bazel run //%s/%s:bench", subject, lab->lab->name);
}

static void say_next(struct lab_score *s, const struct lab_run *lab, const char *subject) {
    const char *name = lab->lab->name;
    const char *config = strcmp(subject, "solutions") == 0 ? "--config=solutions " : "";
    switch (s->state) {
    case STATE_GOLD:
        snprintf(s->next, sizeof s->next, "done");
        return;
    case STATE_PASSED:
        say_next_step(s, lab, subject);
        return;
    case STATE_SLOW:
        snprintf(s->next, sizeof s->next, "bazel run //grader:hint -- %s", name);
        return;
    case STATE_NOT_BEGUN:
        snprintf(s->next, sizeof s->next, "read labs/%s/README.md", name);
        return;
    case STATE_NOT_BUILT:
        snprintf(s->next, sizeof s->next, "bazel build %s//grader:%s_parity //grader:%s_speedup",
                 config, name, name);
        return;
    case STATE_NOT_RUN:
        snprintf(s->next, sizeof s->next, "bazel run %s//grader:report -- --labs %s", config, name);
        return;
    default:
        snprintf(s->next, sizeof s->next, "bazel test %s//grader:%s_%s", config, name,
                 is_green(&lab->programs[PART_PARITY]) ? "speedup" : "parity");
    }
}

/* Of the kernel that is furthest from its threshold. */
static void find_bottleneck(struct lab_score *s) {
    bool short_of_gold = s->state == STATE_SLOW || s->state == STATE_PASSED;
    s->bottleneck = short_of_gold && s->kernel != NULL ? s->kernel->grade->why : "";
}

static void explain(struct lab_score *s) {
    if (s->kernel == NULL || s->model == NULL || s->kernel->grade->verdict != VERDICT_PASS ||
        s->model->grade->speedup >= 1.0) {
        return;
    }
    snprintf(s->explanation, sizeof s->explanation,
             "the kernel became faster (%.3gx) and the model slower (%.3gx): the time around the "
             "kernel in the model (copies, allocations, launches, other shapes) grew by more than "
             "the kernel gained, so the points for the model are lost; the bench shows where its "
             "time goes",
             s->kernel->grade->speedup, s->model->grade->speedup);
}

void score_lab(struct lab_score *s, const struct lab_run *lab, const char *subject) {
    *s = (struct lab_score){0};
    score_rows(s, lab);
    add_points(s, lab);
    s->state = state_of(s, lab);
    say_device(s, lab);
    say_why(s, lab);
    say_next(s, lab, subject);
    find_bottleneck(s);
    explain(s);
}

void score_run(struct run_score *score, const struct run *run) {
    *score = (struct run_score){0};
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_run *lab = &run->labs[i];
        if (lab->lab == NULL) {
            continue;
        }
        struct lab_score *s = &score->labs[i];
        score_lab(s, lab, run->subject);
        score->points += s->points;
        score->most += LAB_POINTS;
        score->red += s->state != STATE_PASSED && s->state != STATE_GOLD;
    }
}
