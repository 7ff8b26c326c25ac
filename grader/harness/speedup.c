#include "grader/harness/speedup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/testing/testing.h"
#include "grader/harness/baseline_times.h"
#include "grader/harness/record.h"
#include "grader/thresholds.h"

static double ratio(const struct speedup *speedup) {
    return speedup->baseline_ms / speedup->subject_ms;
}

static double required_of(const struct speedup *speedup, const struct threshold *threshold) {
    return threshold_steps(threshold, speedup->modelled).pass * speedup->margin;
}

bool speedup_reached(const struct speedup *speedup) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    return threshold != NULL && ratio(speedup) >= required_of(speedup, threshold);
}

int speedup_calls(int calls) {
    const char *fewer = getenv("WARPBOOK_CALLS");
    long most = fewer != NULL ? strtol(fewer, NULL, 10) : 0;
    return most > 0 && most < calls ? (int)most : calls;
}

void speedup_measure(struct speedup *speedup, int calls, speedup_function *time_ms,
                     void *argument) {
    calls = speedup->modelled ? 1 : speedup_calls(calls);
    if (!speedup->modelled) {
        (void)time_ms(argument, false);
        (void)time_ms(argument, true);
    }
    speedup->subject_ms = INFINITY;
    for (int i = 0; i < calls && !test_has_failed(); i++) {
        if (!speedup->recorded) {
            speedup->baseline_ms = fmin(speedup->baseline_ms, time_ms(argument, false));
        }
        if (!baseline_times_recording()) {
            speedup->subject_ms = fmin(speedup->subject_ms, time_ms(argument, true));
        }
    }
}

void speedup_check(const struct speedup *speedup, const char *file, int line) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    if (baseline_times_recording()) {
        baseline_times_record(speedup);
        return;
    }
    if (threshold == NULL) {
        test_fail(file, line, "no threshold for %s %s", speedup->lab, speedup->measure);
        return;
    }
    double required = required_of(speedup, threshold);
    const char *clock = speedup->clock != NULL ? speedup->clock : "measured on this machine";
    const char *verb = speedup->modelled ? "modelled" : "measured";
    printf("%s %s, %s: baseline %.4g ms, yours %.4g ms: %.2fx, required %.2fx (%s)\n", speedup->lab,
           speedup->measure, threshold->what, speedup->baseline_ms, speedup->subject_ms,
           ratio(speedup), required, clock);
    grade_record_speedup(speedup, required, speedup_reached(speedup));
    if (!speedup_reached(speedup)) {
        test_fail(file, line,
                  "%s %s is too slow: %s %.2fx, required %.2fx\n"
                  "  what is compared: %s\n"
                  "  baseline %.4g ms, yours %.4g ms, %s",
                  speedup->lab, speedup->measure, verb, ratio(speedup), required, threshold->what,
                  speedup->baseline_ms, speedup->subject_ms, clock);
    }
}
