#include "grader/speedup.h"

#include <stdio.h>

#include "common/testing/testing.h"
#include "grader/thresholds.h"

static double measured_speedup(const struct speedup *speedup) {
    return speedup->baseline_ms / speedup->subject_ms;
}

bool speedup_reached(const struct speedup *speedup) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    return threshold != NULL && measured_speedup(speedup) >= threshold->required * speedup->margin;
}

void speedup_check(const struct speedup *speedup, const char *file, int line) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    if (threshold == NULL) {
        test_fail(file, line, "no threshold for %s %s", speedup->lab, speedup->measure);
        return;
    }
    double required = threshold->required * speedup->margin;
    double measured = measured_speedup(speedup);
    printf("%s %s, %s: baseline %.3f ms, yours %.3f ms: %.2fx, required %.2fx (measured on this "
           "machine)\n",
           speedup->lab, speedup->measure, threshold->what, speedup->baseline_ms,
           speedup->subject_ms, measured, required);
    if (!speedup_reached(speedup)) {
        test_fail(file, line,
                  "%s %s is too slow: measured %.2fx, required %.2fx\n"
                  "  what is compared: %s\n"
                  "  baseline %.3f ms, yours %.3f ms",
                  speedup->lab, speedup->measure, measured, required, threshold->what,
                  speedup->baseline_ms, speedup->subject_ms);
    }
}
