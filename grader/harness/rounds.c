#include "grader/harness/rounds.h"

#include <math.h>

static const double IMPROVEMENT = 0.01;

static double least(const struct rounds *rounds, const double ms[2]) {
    return rounds->count == 0 ? INFINITY : rounds->count == 1 ? ms[0] : fmin(ms[0], ms[1]);
}

double rounds_ideal_ms(const struct rounds *rounds) {
    return least(rounds, rounds->ideal_ms);
}

double rounds_subject_ms(const struct rounds *rounds) {
    return least(rounds, rounds->subject_ms);
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
}

double rounds_share(const struct rounds *rounds) {
    return rounds->count == 0 ? 0.0 : rounds_ideal_ms(rounds) / rounds_subject_ms(rounds);
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

/* The highest step that is asked for. */
static double highest(const struct steps *shares) {
    return fmax(shares->pass, fmax(shares->good, shares->gold));
}

bool rounds_settled(const struct rounds *rounds, const struct steps *shares, double margin) {
    double required = margin * highest(shares) * (1.0 + rounds_noise(rounds));
    if (rounds_share(rounds) >= required) {
        return rounds->count >= ROUNDS_LEAST;
    }
    return rounds->count >= ROUNDS_MOST ||
           (rounds->count >= ROUNDS_PATIENT && rounds->count >= 2 * rounds->improved);
}

bool rounds_reach(const struct rounds *rounds, double required) {
    return rounds_share(rounds) * (1.0 + rounds_noise(rounds)) >= required;
}

bool rounds_marked(const struct rounds *rounds, double required) {
    return rounds_share(rounds) < required && rounds_reach(rounds, required);
}
