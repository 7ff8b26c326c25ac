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

/* Measured times vary by that much; verdicts nearer to the threshold than NEAR are looked at again.
 */
static const double NOISE = 1.03, NEAR = 1.15;

enum { MOST_ROUNDS = 4 };

double speedup_at_share(const struct speedup *speedup, double share) {
    return fmax(1.0, speedup->baseline_ms / least_time_allowed(&speedup->least, share));
}

struct steps speedup_shares(const struct speedup *speedup, const struct threshold *threshold) {
    return threshold_shares(threshold, speedup->modelled || speedup->one_cpu);
}

static double required_of(const struct speedup *speedup, const struct threshold *threshold) {
    return speedup_at_share(speedup, speedup_shares(speedup, threshold).pass * speedup->margin);
}

static bool within(const struct speedup *speedup, double factor) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    return threshold != NULL && ratio(speedup) * factor >= required_of(speedup, threshold);
}

bool speedup_reached(const struct speedup *speedup) {
    return within(speedup, speedup->modelled ? 1.0 : NOISE);
}

/* Whether it would be another verdict if times were a little different. */
static bool is_near(const struct speedup *speedup) {
    return within(speedup, NEAR) && !within(speedup, 1.0 / NEAR);
}

int speedup_calls(int calls) {
    const char *fewer = getenv("WARPBOOK_CALLS");
    long most = fewer != NULL ? strtol(fewer, NULL, 10) : 0;
    return most > 0 && most < calls ? (int)most : calls;
}

static void time_round(struct speedup *speedup, int calls, speedup_function *time_ms,
                       void *argument) {
    for (int i = 0; i < calls && !test_has_failed(); i++) {
        if (!speedup->recorded) {
            speedup->baseline_ms = fmin(speedup->baseline_ms, time_ms(argument, false));
        }
        if (!baseline_times_recording()) {
            speedup->subject_ms = fmin(speedup->subject_ms, time_ms(argument, true));
        }
    }
}

void speedup_measure(struct speedup *speedup, int calls, speedup_function *time_ms,
                     void *argument) {
    calls = speedup->modelled ? 1 : speedup_calls(calls);
    speedup->subject_ms = INFINITY;
    if (!speedup->modelled) {
        (void)time_ms(argument, false);
        (void)time_ms(argument, true);
    }
    for (int round = 0; round < (speedup->modelled ? 1 : MOST_ROUNDS); round++) {
        time_round(speedup, calls, time_ms, argument);
        if (test_has_failed() || !is_near(speedup)) {
            return;
        }
    }
}

/* "62% of the memory's speed, required 40%" */
static const char *describe_share(const struct speedup *speedup, const struct threshold *threshold,
                                  char *text, size_t size) {
    double reached = 100.0 * least_time_share(&speedup->least, speedup->subject_ms);
    if (isinf(reached)) { /* within the noise of what it cannot change */
        snprintf(text, size, "at the limit, %s", speedup->least.limit);
        return text;
    }
    double required = 100.0 * speedup_shares(speedup, threshold).pass;
    snprintf(text, size, "%.3g%% of %s, required %.3g%%", reached, speedup->least.limit, required);
    return text;
}

static void say(const struct speedup *speedup, const struct threshold *threshold) {
    char share[160];
    const char *clock = speedup->clock != NULL ? speedup->clock : "measured on this machine";
    printf("%s %s, %s: baseline %.4g ms, yours %.4g ms: %.2fx, required %.2fx; %s (%s)%s\n",
           speedup->lab, speedup->measure, threshold->what, speedup->baseline_ms,
           speedup->subject_ms, ratio(speedup), required_of(speedup, threshold),
           describe_share(speedup, threshold, share, sizeof share), clock,
           speedup_reached(speedup) && !within(speedup, 1.0)
               ? ": within what times vary by, and so it passes"
               : "");
}

static void say_why(const struct speedup *speedup) {
    char why[GRADE_WHY] = "";
    if (speedup->why != NULL) {
        speedup->why(why, sizeof why);
    }
    if (why[0] != '\0') {
        printf("%s %s, why: %s\n", speedup->lab, speedup->measure, why);
        grade_record_why(why);
    }
}

static void fail(const struct speedup *speedup, const struct threshold *threshold, const char *file,
                 int line) {
    char share[160];
    test_fail(file, line,
              "%s %s is too slow: %s %.2fx, required %.2fx\n"
              "  what is compared: %s\n"
              "  baseline %.4g ms, yours %.4g ms, %s\n"
              "  the limit of this machine is %.4g ms: yours reaches %s",
              speedup->lab, speedup->measure, speedup->modelled ? "modelled" : "measured",
              ratio(speedup), required_of(speedup, threshold), threshold->what,
              speedup->baseline_ms, speedup->subject_ms,
              speedup->clock != NULL ? speedup->clock : "measured on this machine",
              speedup->least.fixed_ms + speedup->least.ideal_ms,
              describe_share(speedup, threshold, share, sizeof share));
}

static bool is_disturbed(const struct speedup *speedup) {
    const struct least_time *least = &speedup->least;
    return least->disturbed || (speedup->disturbed != NULL && speedup->disturbed(least));
}

/* A red verdict would be somebody else's fault. */
static void refuse(const struct speedup *speedup, const struct threshold *threshold,
                   const char *file, int line) {
    test_fail(
        file, line,
        "%s %s is not judged: other programs are busy on this machine (the note says what was "
        "seen), and %.2fx is less than %.2fx, which is required; grade it again when they have "
        "ended",
        speedup->lab, speedup->measure, ratio(speedup), required_of(speedup, threshold));
}

void speedup_check(const struct speedup *speedup, const char *file, int line) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    if (baseline_times_recording()) {
        baseline_times_record(speedup);
        return;
    }
    if (threshold == NULL || !(speedup->least.ideal_ms > 0.0)) {
        test_fail(file, line, "no %s for %s %s", threshold == NULL ? "threshold" : "limit",
                  speedup->lab, speedup->measure);
        return;
    }
    if (test_has_failed()) {
        printf("%s %s, %s: no speedup counts, as the test has failed above\n", speedup->lab,
               speedup->measure, threshold->what);
        return;
    }
    say(speedup, threshold);
    say_why(speedup);
    grade_record_speedup(speedup, required_of(speedup, threshold), speedup_reached(speedup));
    if (!speedup_reached(speedup)) {
        (is_disturbed(speedup) ? refuse : fail)(speedup, threshold, file, line);
    }
}
