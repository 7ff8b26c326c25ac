#include <string.h>

#include "grader/report/format/format.h"

/* Text in a table's cell: nothing may end the cell, begin a tag or a link. */
static void print_cell(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("|<>[]*_`\\", *text) != NULL) {
            fputc('\\', out);
        }
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void print_lab(FILE *out, const struct lab_run *lab, const struct lab_score *s) {
    char kernel[32], model[32];
    fprintf(out, "| %s | %s | %d | %s | %s | ", lab->lab->name, state_name(s->state), s->points,
            format_speedup(s->kernel, kernel, sizeof kernel),
            format_speedup(s->model, model, sizeof model));
    print_cell(out, s->device[0] != '\0' ? s->device : "–");
    fprintf(out, " | `%s` |\n", s->next);
}

void format_markdown(FILE *out, const struct run *run, const struct run_score *score) {
    fprintf(out, "## Warpbook, %s: %d of %d points\n\n", run->subject, score->points, score->most);
    fprintf(out, "| lab | state | points of %d | kernel | model | device | next |\n", LAB_POINTS);
    fprintf(out, "|---|---|---:|---:|---:|---|---|\n");
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (run->labs[i].lab != NULL) {
            print_lab(out, &run->labs[i], &score->labs[i]);
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
