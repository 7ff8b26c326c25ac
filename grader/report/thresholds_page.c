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
    "What is required is a **share of what the machine at hand can do**, found in the same run: by "
    "probes where time is measured, from simt's table of GPUs where it is modelled. The *limit* of "
    "a "
    "row says what the least time is made of: bytes at the speed at which memory can be read, "
    "floating-point operations at the rate of the units for their type, launches in a row, bytes "
    "over the bus; where two of them meet, the slower one counts. What a submission cannot change "
    "does not count: one launch and one wait, and in a model all operators but the lab's own, "
    "which "
    "are timed without these. A share of 40%% means: the time beyond that may be two and a half "
    "times "
    "the least one. The speedup over the starter's code, timed in the same run, stands in every "
    "message and in the report beside it; what it has to be differs from GPU to GPU.\n"
    "\n"
    "*Measured* applies on a GPU and to code on the CPU. *Modelled*, where simt stands in for the "
    "GPU, has shares of its own where its smaller cases leave more of a GPU idle. A GPU that "
    "cannot "
    "do a row (no tensor cores for bf16 before compute capability 8.0) is graded on the others, "
    "which "
    "then count for more. Without parity, speed brings no points. Solutions must reach a quarter "
    "more than *pass*; starters reach at most half of it. What each reaches on which GPU stands on "
    "a "
    "[page of its own](cards/modelled.md).\n";

static void print_steps(const struct threshold *t, const struct steps *steps) {
    if (steps->pass == 0.0) {
        printf(" %s |", t->shares.pass == 0.0 ? "counted" : "as measured");
    } else if (steps->good == 0.0) {
        printf(" %.4g%% |", 100.0 * steps->pass);
    } else {
        printf(" %.4g%%, %.4g%%, %.4g%% |", 100.0 * steps->pass, 100.0 * steps->good,
               100.0 * steps->gold);
    }
}

static void print_row(const struct threshold *t) {
    printf("| %s | %d |", t->measure, t->points);
    print_steps(t, &t->shares);
    print_steps(t, &t->other);
    printf(" %s | %s | %s%s%s |\n", t->limit != NULL ? t->limit : "", t->what, t->why,
           t->gold != NULL ? ". *Steps:* " : "", t->gold != NULL ? t->gold : "");
}

int main(void) {
    const char *lab = "";
    const struct threshold *t;
    printf(introduction, LAB_POINTS, PARITY_POINTS);
    for (size_t i = 0; (t = threshold_at(i)) != NULL; i++) {
        if (strcmp(lab, t->lab) != 0) {
            printf("\n## %s\n\n| row | points | measured: pass, good, gold | %s | limit | "
                   "case | why "
                   "|\n|---|---:|---|---|---|---|---|\n",
                   t->lab, strcmp(t->lab, "01_cpu_matmul") == 0 ? "on one CPU" : "modelled");
        }
        lab = t->lab;
        print_row(t);
    }
    return 0;
}
