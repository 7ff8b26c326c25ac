/* Prints grader/THRESHOLDS.md from the table of thresholds. */
#include <stdio.h>
#include <string.h>

#include "grader/thresholds.h"

static const char introduction[] =
    "# What each lab must reach\n"
    "\n"
    "Made from [thresholds.c](thresholds.c) by `bazel run //grader/report:thresholds_page`; a test "
    "compares the two.\n"
    "\n"
    "A lab has %d points. **Parity** brings %d of them, not more, because the starter has parity, "
    "too (a starter that nobody touched gets none). **The subject of the lab** brings 60 or 80, "
    "in steps: 60%% of a row's points for *pass*, 80%% for *good*, all for *gold*. Gold is ahead "
    "of the vendor's library or of 90%% of the roofline where there is such a figure and the "
    "solution reaches it; the table says where it does not. **The model** brings 20: all where it "
    "passes, half from 1.1x on, none below. A faster kernel in a slower model loses these points, "
    "and the report says why.\n"
    "\n"
    "A speedup is relative to the starter's code, timed in the same run. *Measured* applies on a "
    "GPU and to code on the CPU, *modelled* where simt stands in for the GPU. Without parity, "
    "speed brings no points. Solutions must be a quarter above *pass*.\n";

static void print_steps(const struct threshold *t, const struct steps *steps) {
    if (steps->pass == 0.0) {
        printf(" %s |", t->timed.pass == 0.0 ? "counted" : "as measured");
    } else if (steps->good == 0.0) {
        printf(" %.4gx |", steps->pass);
    } else {
        printf(" %.4gx, %.4gx, %.4gx |", steps->pass, steps->good, steps->gold);
    }
}

static void print_row(const struct threshold *t) {
    printf("| %s | %d |", t->measure, t->points);
    print_steps(t, &t->timed);
    print_steps(t, &t->model);
    printf(" %s | %s%s%s |\n", t->what, t->why, t->gold != NULL ? ". *Steps:* " : "",
           t->gold != NULL ? t->gold : "");
}

int main(void) {
    const char *lab = "";
    const struct threshold *t;
    printf(introduction, LAB_POINTS, PARITY_POINTS);
    for (size_t i = 0; (t = threshold_at(i)) != NULL; i++) {
        if (strcmp(lab, t->lab) != 0) {
            printf(
                "\n## %s\n\n| row | points | measured: pass, good, gold | modelled | case | why |\n"
                "|---|---:|---|---|---|---|\n",
                t->lab);
        }
        lab = t->lab;
        print_row(t);
    }
    return 0;
}
