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

/* "36.8x of 20x", or a dash. */
static void speedup_of(FILE *out, const struct row_score *row) {
    char reached[32], text[64];
    format_speedup(row, reached, sizeof reached);
    if (row == NULL) {
        snprintf(text, sizeof text, "–");
    } else {
        snprintf(text, sizeof text, "%s of %.3gx", reached, row->steps.pass);
    }
    pad(out, text, 16);
}

static void print_lab(FILE *out, const struct lab_run *lab, const struct lab_score *s) {
    fprintf(out, "%-20s %s%-9s%s %5d / %d", lab->lab->name,
            terminal_colour(out, colour_of(s->state)), state_name(s->state), terminal_plain(out),
            s->points, LAB_POINTS);
    speedup_of(out, s->kernel);
    speedup_of(out, s->model);
    fprintf(out, "  %s\n", s->next);
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

void format_text(FILE *out, const struct run *run, const struct run_score *score) {
    fprintf(out, "%-20s %-9s  %9s%16s%16s  next\n", run->subject, "state", "points", "kernel",
            "model");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            print_lab(out, &run->labs[i], &score->labs[i]);
        }
    }
    fprintf(out, "%s%-20s           %5d / %d%s\n", terminal_colour(out, COLOUR_BOLD), "together",
            score->points, score->most, terminal_plain(out));
    print_troubles(out, run, score);
    fputc('\n', out);
    print_devices(out, run, score);
    print_kept(out, run);
}
