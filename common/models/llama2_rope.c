#include "common/models/llama2_rope.h"

#include <math.h>

static const double TURN = 6.283185307179586;

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

/* Keeps what turns often within the original context, and divides what turns seldom. */
static double scale_llama3(const struct llama2_rope *rope, double frequency) {
    double turns = rope->original * frequency / TURN;
    double kept = clamp((turns - rope->slow) / (rope->fast - rope->slow), 0.0, 1.0);
    return (1.0 - kept) * frequency / rope->factor + kept * frequency;
}

/* The pair of channels, between two in general, that makes so many turns in the original context.
 */
static double pair_of_turns(const struct llama2_config *c, double turns) {
    return (double)c->HS * log(c->rope.original / (turns * TURN)) /
           (2.0 * log((double)c->rope_theta));
}

/* As Llama 3's, with a ramp over the pairs of channels. */
static double scale_yarn(const struct llama2_config *c, size_t pair, double frequency) {
    double first = pair_of_turns(c, c->rope.fast), last = pair_of_turns(c, c->rope.slow);
    if (c->rope.truncate) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0.0);
    last = fmin(last, (double)c->HS - 1.0);
    double width = first == last ? 0.001 : last - first; /* no division by 0 */
    double divided = clamp(((double)pair - first) / width, 0.0, 1.0);
    return divided * frequency / c->rope.factor + (1.0 - divided) * frequency;
}

static double scale(const struct llama2_config *c, size_t pair, double frequency) {
    switch (c->rope.scaling) {
    case LLAMA2_ROPE_LINEAR:
        return frequency / c->rope.factor;
    case LLAMA2_ROPE_LLAMA3:
        return scale_llama3(&c->rope, frequency);
    case LLAMA2_ROPE_YARN:
        return scale_yarn(c, pair, frequency);
    default:
        return frequency;
    }
}

void llama2_rope_frequencies(float *frequencies, const struct llama2_config *c) {
    for (size_t i = 0; i < c->HS / 2; i++) {
        double frequency = pow((double)c->rope_theta, -2.0 * (double)i / (double)c->HS);
        frequencies[i] = (float)scale(c, i, frequency);
    }
}
