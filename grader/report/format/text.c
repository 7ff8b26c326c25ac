/* What people read: the scoreboard, a table for GitHub, and what differs between two runs. */
#include <string.h>

#include "common/base/terminal.h"
#include "grader/report/format/format.h"

static enum colour colour_of(enum lab_state state) {
    return state == STATE_PASSED || state == STATE_GOLD         ? COLOUR_GREEN
           : state == STATE_NOT_BEGUN || state == STATE_NOT_RUN ? COLOUR_BOLD
           : state == STATE_SLOW                                ? COLOUR_YELLOW
                                                                : COLOUR_RED;
}

/* Fills up to a width in characters, as a dash has three bytes. */
static void pad(FILE *out, const char *text, int width) {
    int shown = 0;
    for (const char *c = text; *c != '\0'; c++) {
        shown += ((unsigned char)*c & 0xc0) != 0x80;
    }
    fprintf(out, "%*s%s", width > shown ? width - shown : 0, "", text);
}

enum { KERNEL_WIDTH = 26, MODEL_WIDTH = 16 };

/* "36.8x of 20x", with `which` before it, or a dash. */
static void speedup_of(FILE *out, const struct row_score *row, const char *which, int width) {
    char reached[32], text[96];
    format_speedup(row, reached, sizeof reached);
    if (row == NULL) {
        snprintf(text, sizeof text, "–");
    } else {
        snprintf(text, sizeof text, "%s%s of %.3gx", which, reached, row->steps.pass);
    }
    pad(out, text, width);
}

static void print_lab(FILE *out, const struct lab_run *lab, const struct lab_score *s) {
    char which[32];
    fprintf(out, "%-20s %s%-9s%s %5d / %d", lab->lab->name,
            terminal_colour(out, colour_of(s->state)), state_name(s->state), terminal_plain(out),
            s->points, LAB_POINTS);
    speedup_of(out, s->kernel, format_which(s, which, sizeof which), KERNEL_WIDTH);
    speedup_of(out, s->model, "", MODEL_WIDTH);
    fprintf(out, "  %s\n", s->next);
    if (s->bottleneck[0] != '\0') {
        fprintf(out, "  why: %s\n", s->bottleneck);
    }
}

static void print_troubles(FILE *out, const struct run *run, const struct run_score *score) {
    bool first = true;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_score *s = &score->labs[i];
        bool silent = run->labs[i].lab == NULL || s->state == STATE_NOT_BEGUN;
        if (silent || (s->why[0] == '\0' && s->explanation[0] == '\0')) {
            continue;
        }
        fprintf(out, "%s%s: %s%s%s\n", first ? "\n" : "", run->labs[i].lab->name, s->why,
                s->why[0] != '\0' && s->explanation[0] != '\0' ? "; " : "", s->explanation);
        first = false;
    }
}

/* Each device once, with the labs' numbers. */
static void print_devices(FILE *out, const struct run *run, const struct run_score *score) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const char *device = score->labs[i].device;
        bool told = device[0] == '\0';
        for (size_t j = 0; j < i && !told; j++) {
            told = strcmp(score->labs[j].device, device) == 0;
        }
        if (told) {
            continue;
        }
        fprintf(out, "%s:", device);
        for (size_t j = i; j < LAB_COUNT; j++) {
            if (strcmp(score->labs[j].device, device) == 0) {
                fprintf(out, " %.2s", run->labs[j].lab->name);
            }
        }
        fputc('\n', out);
    }
}

/* Labs whose grades are of an earlier run. */
static void print_kept(FILE *out, const struct run *run) {
    bool first = true;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_run *lab = &run->labs[i];
        if (lab->lab != NULL && lab->kept) {
            fprintf(out, "%s %.2s", first ? "not changed since they were graded:" : "",
                    lab->lab->name);
            first = false;
        }
    }
    fputs(first ? "" : "\n", out);
}

/* What keeps a submission from cheating, and is missing. */
static void print_not_held(FILE *out, const struct run *run) {
    if (run->not_held[0] != '\0') {
        fprintf(out,
                "not held on the machine that graded: %s; what that means is in "
                "grader/sandbox/README.md, and --require-isolation refuses to grade there\n",
                run->not_held);
    }
}

void format_text(FILE *out, const struct run *run, const struct run_score *score) {
    fprintf(out, "%-20s %-9s  %9s%*s%*s  next\n", run->subject, "state", "points", KERNEL_WIDTH,
            "kernel", MODEL_WIDTH, "model");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            print_lab(out, &run->labs[i], &score->labs[i]);
        }
    }
    fprintf(out, "%s%-20s           %5d / %d%s\n", terminal_colour(out, COLOUR_BOLD), "together",
            score->points, score->most, terminal_plain(out));
    if (run->warmups.count > 0) { /* below the sum: they give no points */
        fprintf(out, "%-20s           %5d of %d  %s\n", "00_warmups", run->warmups.done,
                run->warmups.count, format_warmups_next(run));
    }
    print_troubles(out, run, score);
    fputc('\n', out);
    print_devices(out, run, score);
    print_kept(out, run);
    print_not_held(out, run);
}

/* ---- Markdown ---- */

/* Text in a table's cell: nothing may end the cell, begin a tag or a link. */
static void print_cell(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("|<>[]*_`\\", *text) != NULL) {
            fputc('\\', out);
        }
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void print_row(FILE *out, const struct lab_run *lab, const struct lab_score *s) {
    char which[32], kernel[32], model[32];
    fprintf(out, "| %s | %s | %d | %s%s | %s | ", lab->lab->name, state_name(s->state), s->points,
            format_which(s, which, sizeof which), format_speedup(s->kernel, kernel, sizeof kernel),
            format_speedup(s->model, model, sizeof model));
    print_cell(out, s->device[0] != '\0' ? s->device : "–");
    fprintf(out, " | `%s` |\n", s->next);
}

void format_markdown(FILE *out, const struct run *run, const struct run_score *score) {
    char warmups[32];
    fprintf(out, "## Warpbook, %s: %d of %d points\n\n", run->subject, score->points, score->most);
    fprintf(out, "| lab | state | points of %d | kernel | model | device | next |\n", LAB_POINTS);
    fprintf(out, "|---|---|---:|---:|---:|---|---|\n");
    if (format_warmups(run, warmups, sizeof warmups) != NULL) {
        fprintf(out, "| 00_warmups | %s | – | – | – | – | `%s` |\n", warmups,
                format_warmups_next(run));
    }
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            print_row(out, &run->labs[i], &score->labs[i]);
        }
    }
    bool first = true;
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_score *s = &score->labs[i];
        if (run->labs[i].lab == NULL || (s->why[0] == '\0' && s->explanation[0] == '\0')) {
            continue;
        }
        fprintf(out, "%s- **%s**: ", first ? "\n" : "", run->labs[i].lab->name);
        print_cell(out, s->why);
        fprintf(out, "%s", s->why[0] != '\0' && s->explanation[0] != '\0' ? "; " : "");
        print_cell(out, s->explanation);
        fputc('\n', out);
        first = false;
    }
}

/* ---- Two runs ---- */

static void print_speedup(FILE *out, const char *lab, const struct row_score *a,
                          const struct row_score *b) {
    bool both = a->grade != NULL && b->grade != NULL && a->grade->timed && b->grade->timed;
    if (!both || a->grade->speedup <= 0.0) {
        return;
    }
    double ratio = b->grade->speedup / a->grade->speedup;
    bool alike =
        a->grade->modelled == b->grade->modelled && strcmp(a->grade->device, b->grade->device) == 0;
    fprintf(out, "%-20s %-22s %9.2fx %9.2fx", lab, a->row->measure, a->grade->speedup,
            b->grade->speedup);
    if (alike) {
        fprintf(out, "   %+.1f%%\n", 100.0 * (ratio - 1.0));
    } else {
        fprintf(out, "   not to be compared: %s%s, %s%s\n", a->grade->device,
                a->grade->modelled ? " modelled" : "", b->grade->device,
                b->grade->modelled ? " modelled" : "");
    }
}

static void compare_lab(FILE *out, const struct lab_run *a, const struct lab_run *b,
                        const char *subjects[2]) {
    struct lab_score before, after;
    const char *name = (a->lab != NULL ? a->lab : b->lab)->name;
    if (a->lab == NULL || b->lab == NULL) {
        fprintf(out, "%-20s only in the %s run\n", name, a->lab != NULL ? "first" : "second");
        return;
    }
    score_lab(&before, a, subjects[0]);
    score_lab(&after, b, subjects[1]);
    fprintf(out, "%-20s %-22s %10d %10d   %+d\n", name, "points", before.points, after.points,
            after.points - before.points);
    if (before.state != after.state) {
        fprintf(out, "%-20s %-22s %10s %10s\n", name, "state", state_name(before.state),
                state_name(after.state));
    }
    for (size_t i = 0; i < before.count; i++) {
        print_speedup(out, name, &before.rows[i], &after.rows[i]);
    }
}

void format_comparison(FILE *out, const struct run *a, const struct run *b) {
    const char *subjects[2] = {a->subject, b->subject};
    fprintf(out, "%-20s %-22s %10s %10s\n", "lab", "", "first", "second");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (a->labs[i].lab != NULL || b->labs[i].lab != NULL) {
            compare_lab(out, &a->labs[i], &b->labs[i], subjects);
        }
    }
}
