#include "grader/harness/rounds.h"

#include <math.h>
#include <stddef.h>

static const double IMPROVEMENT = 0.01;

static double least(const struct rounds *rounds, const double ms[2]) {
    return rounds->count == 0 ? INFINITY : rounds->count == 1 ? ms[0] : fmin(ms[0], ms[1]);
}

static double by_clock(const struct rounds *rounds) {
    double ideal_ms = least(rounds, rounds->ideal_ms);
    return rounds->before_ms > 0.0 ? fmin(rounds->before_ms, ideal_ms) : ideal_ms;
}

bool rounds_probes_waited(const struct rounds *rounds) {
    return rounds->ran_ms > 0.0 && by_clock(rounds) > ROUNDS_MOST_SHARE * rounds_subject_ms(rounds);
}

/* Nothing is faster than its limit. Time on a processor is no more than time by the clock, so the
   share is smaller by it, never larger. */
double rounds_ideal_ms(const struct rounds *rounds) {
    return rounds_probes_waited(rounds) ? fmin(by_clock(rounds), rounds->ran_ms) : by_clock(rounds);
}

double rounds_subject_ms(const struct rounds *rounds) {
    return least(rounds, rounds->subject_ms);
}

double rounds_share(const struct rounds *rounds) {
    return rounds->count == 0 ? 0.0 : rounds_ideal_ms(rounds) / rounds_subject_ms(rounds);
}

void rounds_add(struct rounds *rounds, double ideal_ms, double subject_ms) {
    int side = rounds->count % 2;
    bool first = rounds->count < 2;
    bool improves = ideal_ms < rounds_ideal_ms(rounds) * (1.0 - IMPROVEMENT) ||
                    subject_ms < rounds_subject_ms(rounds) * (1.0 - IMPROVEMENT);
    rounds->ideal_ms[side] = first ? ideal_ms : fmin(rounds->ideal_ms[side], ideal_ms);
    rounds->subject_ms[side] = first ? subject_ms : fmin(rounds->subject_ms[side], subject_ms);
    rounds->count++;
    rounds->improved = improves ? rounds->count : rounds->improved;
    rounds->ideal_sum_ms += ideal_ms;
}

/* Relative distance of the two results. */
static double apart(const double ms[2]) {
    return fabs(ms[0] - ms[1]) / fmin(ms[0], ms[1]);
}

double rounds_noise(const struct rounds *rounds) {
    if (rounds->count < ROUNDS_LEAST) {
        return ROUNDS_NOISE_MOST;
    }
    double noise = apart(rounds->ideal_ms) + apart(rounds->subject_ms);
    return noise < ROUNDS_NOISE_MOST ? noise : ROUNDS_NOISE_MOST; /* also where it is NaN */
}

void rounds_add_ran(struct rounds *rounds, double ran_ms) {
    rounds->ran_ms = rounds->ran_ms > 0.0 ? fmin(rounds->ran_ms, ran_ms) : ran_ms;
}

void rounds_add_calls(struct rounds *rounds, double called_ms, double waited_ms) {
    rounds->called_ms += called_ms;
    rounds->waited_ms += waited_ms;
}

double rounds_slowdown(const struct rounds *rounds) {
    if (rounds->count == 0) {
        return 1.0;
    }
    double probes = rounds->ideal_sum_ms / rounds->count / rounds_ideal_ms(rounds);
    double ran_ms = rounds->called_ms - rounds->waited_ms;
    double calls = ran_ms < rounds->called_ms
                       ? rounds->called_ms / fmax(ran_ms, rounds->called_ms / ROUNDS_MOST_SLOWDOWN)
                       : 1.0;
    return fmin(fmax(probes, calls), ROUNDS_MOST_SLOWDOWN);
}

static bool reached_by_far(const struct rounds *rounds, double required) {
    return rounds_share(rounds) >= required * (1.0 + rounds_noise(rounds));
}

static bool missed_by_far(const struct rounds *rounds, double required) {
    double at_most = rounds_share(rounds) * rounds_slowdown(rounds) * (1.0 + ROUNDS_NOISE_MOST);
    return at_most < required;
}

/* Whether the probes may be believed before there are many of them. */
static bool undisturbed(const struct rounds *rounds) {
    return rounds_noise(rounds) < ROUNDS_NOISE_MOST && rounds_share(rounds) < 1.0;
}

enum verdict rounds_verdict(const struct rounds *rounds, double required) {
    double share = rounds_share(rounds), slowdown = rounds_slowdown(rounds);
    if (share > ROUNDS_MOST_SHARE) {
        return VERDICT_TOO_BUSY;
    }
    if (share >= required) {
        return VERDICT_REACHED;
    }
    if (share * (1.0 + rounds_noise(rounds)) >= required) {
        return VERDICT_IN_NOISE;
    }
    return slowdown >= ROUNDS_BUSY && share * slowdown >= required ? VERDICT_TOO_BUSY
                                                                   : VERDICT_MISSED;
}

bool rounds_settled(const struct rounds *rounds, const struct steps *shares, double margin) {
    const double required[] = {shares->pass, shares->good, shares->gold};
    bool all = true, each = true;
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        bool reached = reached_by_far(rounds, margin * required[i]);
        all = all && reached;
        each = each && (reached || missed_by_far(rounds, margin * required[i]));
    }
    if (undisturbed(rounds) &&
        ((all && rounds->count >= ROUNDS_LEAST) || (each && rounds->count >= ROUNDS_CLEAR))) {
        return true;
    }
    return rounds->count >= ROUNDS_MOST ||
           (rounds->count >= ROUNDS_CLOSE && rounds->count >= 2 * rounds->improved &&
            rounds_share(rounds) <= ROUNDS_MOST_SHARE &&
            rounds_verdict(rounds, margin * shares->pass) != VERDICT_TOO_BUSY);
}
