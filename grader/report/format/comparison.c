#include <string.h>

#include "grader/report/format/format.h"

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
