#include "common/models/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/nn/nn.h"

enum status sampler_create(struct sampler *sampler, size_t V, const struct llama2_sampling *how) {
    *sampler = (struct sampler){.V = V,
                                .temperature = how->temperature,
                                .top_p = how->top_p,
                                .top_k = how->top_k,
                                .state = how->seed};
    if (how->seed == 0 || V == 0) {
        return STATUS_INVALID_ARGUMENT;
    }
    sampler->candidates = calloc(V, sizeof *sampler->candidates);
    return sampler->candidates != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

void sampler_free(struct sampler *sampler) {
    free(sampler->candidates);
    *sampler = (struct sampler){0};
}

static float next_coin(struct sampler *sampler) {
    uint64_t s = sampler->state;
    s ^= s >> 12;
    s ^= s << 25;
    s ^= s >> 27;
    sampler->state = s;
    uint32_t bits = (uint32_t)((s * 0x2545f4914f6cdd1du) >> 32);
    return (float)(bits >> 8) / 16777216.0f;
}

static int32_t most_likely(const float *values, size_t V) {
    size_t best = 0;
    for (size_t i = 1; i < V; i++) {
        if (values[i] > values[best]) {
            best = i;
        }
    }
    return (int32_t)best;
}

/* The token at which the cumulative probability passes the coin. If `some`, tokens of probability
   0 must not be drawn. */
static int32_t draw_in_order(const float *probabilities, size_t V, bool some, float coin) {
    float cumulative = 0.0f;
    for (size_t i = 0; i < V; i++) {
        cumulative += probabilities[i];
        if (coin < cumulative) {
            return (int32_t)i;
        }
    }
    size_t last = V - 1; /* rounding kept the sum below the coin */
    while (some && last > 0 && probabilities[last] == 0.0f) {
        last--;
    }
    return (int32_t)last;
}

/* Most likely first; equal ones by token, so that every C library sorts in the same order. */
static int compare_candidates(const void *left, const void *right) {
    const struct sampler_candidate *a = left;
    const struct sampler_candidate *b = right;
    if (a->probability != b->probability) {
        return a->probability > b->probability ? -1 : 1;
    }
    return (a->token > b->token) - (a->token < b->token);
}

/* Collects the tokens whose probability is at least the cutoff, most likely first. */
static size_t collect_candidates(struct sampler *sampler, const float *probabilities,
                                 float cutoff) {
    size_t count = 0;
    for (size_t i = 0; i < sampler->V; i++) {
        if (probabilities[i] >= cutoff) {
            sampler->candidates[count++] =
                (struct sampler_candidate){.probability = probabilities[i], .token = (int32_t)i};
        }
    }
    qsort(sampler->candidates, count, sizeof *sampler->candidates, compare_candidates);
    return count;
}

/* Sets the probability of all but the top_k most likely tokens to 0. @return the sum that is left
 */
static float keep_most_likely(struct sampler *sampler, float *probabilities) {
    size_t count = collect_candidates(sampler, probabilities, 0.0f);
    for (size_t i = sampler->top_k; i < count; i++) {
        probabilities[sampler->candidates[i].token] = 0.0f;
    }
    float mass = 0.0f;
    for (size_t i = 0; i < sampler->V; i++) {
        mass += probabilities[i];
    }
    return mass;
}

/* Draws from the nucleus: the most likely tokens whose sum passes top_p of `all`, the sum of all.
 */
static int32_t draw_from_nucleus(struct sampler *sampler, const float *probabilities, float all,
                                 float coin) {
    if (sampler->V == 1) {
        return 0;
    }
    /* No token below the cutoff can be in the nucleus, so few are sorted. */
    float cutoff = (1.0f - sampler->top_p) * all / (float)(sampler->V - 1);
    size_t count = collect_candidates(sampler, probabilities, cutoff);
    if (count == 0) { /* the temperature is so low that quotients overflowed */
        return most_likely(probabilities, sampler->V);
    }
    float mass = 0.0f;
    size_t last = count - 1;
    for (size_t i = 0; i < count; i++) {
        mass += sampler->candidates[i].probability;
        if (mass > sampler->top_p * all) {
            last = i;
            break;
        }
    }
    float target = coin * mass;
    float cumulative = 0.0f;
    for (size_t i = 0; i <= last; i++) {
        cumulative += sampler->candidates[i].probability;
        if (target < cumulative) {
            return sampler->candidates[i].token;
        }
    }
    return sampler->candidates[last].token;
}

/* Whether none is NaN, and the largest is finite. (A logit of -infinity is a token that never
   comes.) */
static bool are_usable(const float *logits, size_t V) {
    bool number = false;
    for (size_t i = 0; i < V; i++) {
        if (!(logits[i] < INFINITY)) {
            return false;
        }
        number |= logits[i] > -INFINITY;
    }
    return number;
}

int32_t sampler_next(struct sampler *sampler, float *logits) {
    if (!are_usable(logits, sampler->V)) {
        sampler->state = 0;
        return 0;
    }
    if (sampler->temperature == 0.0f) {
        return most_likely(logits, sampler->V);
    }
    for (size_t i = 0; i < sampler->V; i++) {
        logits[i] /= sampler->temperature;
    }
    nn_softmax(logits, logits, 1, sampler->V);
    float coin = next_coin(sampler);
    bool all = sampler->top_k == 0 || sampler->top_k >= sampler->V;
    float mass = all ? 1.0f : keep_most_likely(sampler, logits);
    if (sampler->top_p <= 0.0f || sampler->top_p >= 1.0f) {
        return draw_in_order(logits, sampler->V, !all, coin * mass);
    }
    return draw_from_nucleus(sampler, logits, mass, coin);
}

void sampler_skip(struct sampler *sampler) {
    if (sampler->temperature != 0.0f) {
        (void)next_coin(sampler);
    }
}
