#include "grader/harness/rounds_speedup.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "common/bench/bench.h"
#include "common/testing/testing.h"
#include "grader/harness/record.h"
#include "grader/thresholds.h"

enum { PAUSE_US = 100000, LONG_PAUSE_US = 2000000 };

/* After which no round begins, beside much other work; and where that leaves no verdict. */
static const double MOST_SECONDS = 30.0, MOST_SECONDS_BUSY = 120.0;

/* A measure without a row is settled soon, and speedup_check() says that it has none. */
static struct steps shares_of(const struct speedup *speedup) {
    const struct threshold *threshold = threshold_find(speedup->lab, speedup->measure);
    return threshold != NULL ? speedup_shares(speedup, threshold) : (struct steps){0};
}

/* What is slower beside a submission than before it was slowed: by it, or by somebody else. */
static double agreed_ms(double before_ms, double beside_ms) {
    if (before_ms > 0.0 && beside_ms > before_ms * (1.0 + ROUNDS_NOISE_MOST)) {
        printf("note: the baseline took %.4g ms before your code ran, and %.4g ms beside it: the "
               "first counts\n",
               before_ms, beside_ms);
    }
    return before_ms > 0.0 ? fmin(before_ms, beside_ms) : beside_ms;
}

static bool is_too_busy(const struct rounds *rounds, double required) {
    return rounds_share(rounds) > ROUNDS_MOST_SHARE ||
           rounds_verdict(rounds, required) == VERDICT_TOO_BUSY;
}

/* Waits between two rounds, longer and longer where the machine is too busy for a verdict.
   @return false when it has waited long enough */
static bool wait_for_quiet(const struct rounds *rounds, double required, double begun) {
    double took = bench_now() - begun;
    if (rounds->count < ROUNDS_LEAST) {
        return true;
    }
    bool busy = is_too_busy(rounds, required);
    if (took >= (busy ? MOST_SECONDS_BUSY : MOST_SECONDS)) {
        return false;
    }
    int pause = PAUSE_US * (busy && rounds->count > ROUNDS_CLOSE ? rounds->count : 1);
    usleep((useconds_t)(pause < LONG_PAUSE_US ? pause : LONG_PAUSE_US));
    return true;
}

void rounds_measure(struct rounds *rounds, struct speedup *speedup, round_function *time_round,
                    void *argument) {
    const struct steps shares = shares_of(speedup);
    const double begun = bench_now(), required = shares.pass * speedup->margin;
    double beside_ms = INFINITY;
    while (!test_has_failed() && !rounds_settled(rounds, &shares, speedup->margin) &&
           wait_for_quiet(rounds, required, begun)) {
        struct round_times times = time_round(argument, rounds->count);
        beside_ms = fmin(beside_ms, times.baseline_ms);
        rounds_add(rounds, times.ideal_ms, times.subject_ms);
        rounds_add_calls(rounds, times.called_ms, times.waited_ms);
        if (times.ran_ms > 0.0) {
            rounds_add_ran(rounds, times.ran_ms);
        }
    }
    speedup->baseline_ms = agreed_ms(rounds->baseline_before_ms, beside_ms);
    speedup->subject_ms = rounds_subject_ms(rounds);
    speedup->least.ideal_ms = rounds_ideal_ms(rounds);
}

/* A red verdict would be somebody else's fault. */
static void refuse(const struct rounds *rounds, const struct speedup *speedup, double required,
                   const char *file, int line) {
    test_fail(
        file, line,
        "%s %s is not judged: other programs are busy on this machine and made it %.1f times "
        "slower; yours reaches %.3g%% of its limit, required %.3g%%; grade it again when they "
        "have ended",
        speedup->lab, speedup->measure, rounds_slowdown(rounds), 100.0 * rounds_share(rounds),
        100.0 * required);
}

void rounds_check(const struct rounds *rounds, const struct speedup *speedup, const char *file,
                  int line) {
    double pass = shares_of(speedup).pass, required = pass * speedup->margin;
    if (test_has_failed()) {
        speedup_check(speedup, file, line);
        return;
    }
    double ratio = speedup_at_share(speedup, pass) * speedup->margin;
    enum verdict verdict = rounds_verdict(rounds, required);
    printf("%s %s: %d rounds, %.1f%% of the limit, noise %.1f%%, slowed %.2f times by others\n",
           speedup->lab, speedup->measure, rounds->count, 100.0 * rounds_share(rounds),
           100.0 * rounds_noise(rounds), rounds_slowdown(rounds));
    if (rounds_probes_waited(rounds)) {
        printf("note: the probes of the limit waited for processors: their time on a processor "
               "counts\n");
    }
    if (verdict == VERDICT_TOO_BUSY) {
        grade_record_speedup(speedup, ratio, false);
        refuse(rounds, speedup, required, file, line);
    } else if (verdict == VERDICT_IN_NOISE && !speedup_reached(speedup)) {
        printf("%s %s: required %.3g%%, missed by less than the noise, and so it passes\n",
               speedup->lab, speedup->measure, 100.0 * required);
        grade_record_speedup(speedup, ratio, true);
    } else {
        speedup_check(speedup, file, line);
    }
}
