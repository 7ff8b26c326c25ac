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
    "A lab has %d points. **Parity** brings %d: being right is asked of everyone, and the starter "
    "is right, too, so it must not bring more (a starter that nobody touched has none). **What the "
    "lab is about** brings 60 or 80 of them, in steps: 60%% of a row's points where it passes, "
    "80%% where it is good, all where it is gold. Gold is ahead of the vendor's library or of 90%% "
    "of the roofline where there is such a figure and the solution reaches it; the table says "
    "where "
    "it does not. **The model** brings 20: all where it passes, half from 1.1x on, none below. A "
    "kernel that is faster in a model that is slower loses these, and the report says why.\n"
    "\n"
    "A speedup is against the starter's way, timed in the same run. *Measured* counts on a GPU and "
    "for code on the CPU, *modelled* where simt stands for one. Without parity no speed counts. "
    "Solutions must be a quarter above *pass*.\n";

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
                "\n## %s\n\n| row | points | measured: pass, good, gold | modelled | what | why |\n"
                "|---|---:|---|---|---|---|\n",
                t->lab);
        }
        lab = t->lab;
        print_row(t);
    }
    return 0;
}
