#include "labs/10_llama2_decoder/problem/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Error of fp32 sums, relative to the whole mass. */
static const double EDGE = 1e-5;

struct candidate {
    double weight;
    size_t token;
};

uint64_t decoder_state_behind(const struct sampling *how) {
    uint64_t s = how->state;
    if (how->temperature == 0.0f) {
        return s;
    }
    s ^= s >> 12;
    s ^= s << 25;
    return s ^ s >> 27;
}

static double coin_of(const struct sampling *how) {
    uint64_t bits = decoder_state_behind(how) * 0x2545f4914f6cdd1du >> 32;
    return (double)(bits >> 8) / 16777216.0;
}

static size_t argmax(const float *logits, size_t V) {
    size_t best = 0;
    for (size_t i = 1; i < V; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Descending weight, equal ones by token. */
static int by_weight(const void *left, const void *right) {
    const struct candidate *a = left, *b = right;
    if (a->weight != b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return (a->token > b->token) - (a->token < b->token);
}

static int by_token(const void *left, const void *right) {
    const struct candidate *a = left, *b = right;
    return (a->token > b->token) - (a->token < b->token);
}

static double mass_of(const struct candidate *list, size_t count) {
    double mass = 0.0;
    for (size_t i = 0; i < count; i++) {
        mass += list[i].weight;
    }
    return mass;
}

/* The first index at which the cumulative sum passes a share of the mass of `count`. */
static size_t index_of(const struct candidate *list, size_t count, double share) {
    double mass = mass_of(list, count), sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += list[i].weight;
        if (sum > share * mass) {
            return i;
        }
    }
    return count - 1;
}

/* Whether a coin within EDGE of this one draws the token, of the first `count`. */
static bool near_coin(const struct candidate *list, size_t count, double coin, size_t token) {
    size_t end = index_of(list, count, coin + EDGE);
    for (size_t i = index_of(list, count, coin - EDGE); i <= end; i++) {
        if (list[i].token == token) {
            return true;
        }
    }
    return false;
}

/* Candidates by descending weight. @return number that top_k keeps */
static size_t list_candidates(struct candidate *list, const float *logits, size_t V,
                              const struct sampling *how) {
    double largest = (double)logits[argmax(logits, V)];
    for (size_t i = 0; i < V; i++) {
        list[i].weight = exp(((double)logits[i] - largest) / (double)how->temperature);
        list[i].token = i;
    }
    qsort(list, V, sizeof *list, by_weight);
    return how->top_k > 0 && how->top_k < V ? how->top_k : V;
}

static bool draw_is_right(struct candidate *list, size_t count, const struct sampling *how,
                          size_t token) {
    double coin = coin_of(how), top_p = (double)how->top_p;
    if (!(top_p > 0.0 && top_p < 1.0)) {
        qsort(list, count, sizeof *list, by_token);
        return near_coin(list, count, coin, token);
    }
    for (int i = -1; i <= 1; i++) { /* the nucleus' end may be off by EDGE, too */
        size_t last = index_of(list, count, top_p + i * EDGE);
        if (near_coin(list, last + 1, coin, token)) {
            return true;
        }
    }
    return false;
}

bool decoder_token_allowed(const float *logits, size_t V, const struct sampling *how, int32_t token,
                           char *text, size_t size) {
    if (token < 0 || (size_t)token >= V) {
        snprintf(text, size, "drew token %d, there are %zu", (int)token, V);
        return false;
    }
    size_t best = argmax(logits, V);
    if (how->temperature == 0.0f) {
        snprintf(text, size,
                 "drew token %d with logit %.9g, want token %zu with %.9g: greedy, the lowest of "
                 "the best",
                 (int)token, (double)logits[token], best, (double)logits[best]);
        return (size_t)token == best;
    }
    struct candidate *list = calloc(V, sizeof *list);
    if (list == NULL) {
        snprintf(text, size, "the grader is out of memory");
        return false;
    }
    size_t count = list_candidates(list, logits, V, how);
    snprintf(text, size,
             "drew token %d with logit %.9g (the best: %.9g) by temperature %g, top_p %g, top_k "
             "%u, state %" PRIu64 ": the sampler draws another one",
             (int)token, (double)logits[token], (double)logits[best], (double)how->temperature,
             (double)how->top_p, (unsigned)how->top_k, how->state);
    bool right = draw_is_right(list, count, how, (size_t)token);
    free(list);
    return right;
}

/*
 * Tokens whose logits are about as large as this one's may lie before it or behind it; each weight
 * may be off by a share, and so may what is left of the mass, by a token at the edge, too.
 */
static bool near_index(const struct candidate *list, size_t V, const struct sampling *how,
                       size_t token, double share) {
    double total = mass_of(list, V), coin = coin_of(how), weight = 0.0;
    size_t last = index_of(list, V, (double)how->top_p), before = 0, behind = 0;
    double left = mass_of(list, last + 1), edge = list[last].weight;
    for (size_t i = 0; i < V; i++) {
        weight = list[i].token == token ? list[i].weight : weight;
    }
    while (before < V && list[before].weight > weight * (1.0 + share)) {
        before++;
    }
    while (behind < V && list[behind].weight >= weight * (1.0 - share)) {
        behind++;
    }
    double room = (share + EDGE) * total;
    return coin * (left + edge) + room >= mass_of(list, before) &&
           coin * (left - edge) - room <= mass_of(list, behind);
}

enum status decoder_token_plausible(const float *logits, size_t V, const struct sampling *how,
                                    int32_t token, double off, bool *plausible) {
    *plausible = token >= 0 && (size_t)token < V;
    if (!*plausible || how->temperature == 0.0f) {
        size_t best = argmax(logits, V);
        *plausible = *plausible && (double)logits[token] >= (double)logits[best] - 2.0 * off;
        return STATUS_OK;
    }
    struct candidate *list = calloc(V, sizeof *list);
    if (list == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    (void)list_candidates(list, logits, V, how);
    *plausible =
        near_index(list, V, how, (size_t)token, expm1(2.0 * off / (double)how->temperature));
    free(list);
    return STATUS_OK;
}

/* ---- Telling states ---- */

/* The sampler's token. @param list (V), overwritten */
static size_t draw_from(struct candidate *list, const float *logits, size_t V,
                        const struct sampling *how) {
    double coin = coin_of(how), top_p = (double)how->top_p;
    if (how->temperature == 0.0f) {
        return argmax(logits, V);
    }
    size_t count = list_candidates(list, logits, V, how);
    if (top_p > 0.0 && top_p < 1.0) {
        count = index_of(list, count, top_p) + 1;
    } else {
        qsort(list, count, sizeof *list, by_token);
    }
    return list[index_of(list, count, coin)].token;
}

/* Of temperature, top_p and top_k, the number that a sampler cannot ignore unnoticed. */
static size_t settings_told(struct candidate *list, const float *logits, size_t V,
                            const struct sampling *how) {
    struct sampling without[3] = {*how, *how, *how};
    char text[300];
    size_t told = 0;
    without[0].temperature = how->temperature == 0.0f ? 0.0f : 1.0f;
    without[1].top_p = 0.0f;
    without[2].top_k = 0;
    for (size_t i = 0; i < 3; i++) {
        int32_t token = (int32_t)draw_from(list, logits, V, &without[i]);
        told += !decoder_token_allowed(logits, V, how, token, text, sizeof text);
    }
    return told;
}

enum status decoder_telling_state(const float *logits, size_t V, struct sampling *how,
                                  struct rng *rng) {
    struct sampling tried = *how;
    struct candidate *list = calloc(V, sizeof *list);
    if (list == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0, most = 0; i < DECODER_STATES; i++) {
        tried.state = rng_u64(rng) | 1;
        size_t told = settings_told(list, logits, V, &tried);
        if (i == 0 || told > most) {
            most = told;
            how->state = tried.state;
        }
    }
    free(list);
    return STATUS_OK;
}
