/*
 * Tokens drawn on the GPU next to sampler.c's. Where they differ, the coin must lie within rounding
 * of an edge between two tokens: that is worked out in double.
 */
#include "labs/10_llama2_decoder/given/sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/models/sampler.h"
#include "common/testing/testing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Weights and their sums on the GPU are within some roundings of fp32 of their true values. */
static const double ROUNDING = 1e-6;

struct bench {
    size_t V;
    float *host, *scratch; /* (V) */
    float *logits;         /* device, (V) */
    int32_t *token;        /* device */
    struct sampling *sampling;
    void *workspace;
    struct sampler sampler;
    size_t draws, differ; /* so far; differ: another token than sampler.c's */
};

static enum status bench_create(struct bench *b, size_t V, struct error *error) {
    *b = (struct bench){.V = V};
    b->host = calloc(V, sizeof *b->host);
    b->scratch = calloc(V, sizeof *b->scratch);
    if (b->host == NULL || b->scratch == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(device_open(error));
    TRY(device_alloc((void **)&b->logits, V * sizeof *b->logits, error));
    TRY(device_alloc((void **)&b->token, sizeof *b->token, error));
    TRY(device_alloc((void **)&b->sampling, sizeof *b->sampling, error));
    TRY(device_alloc(&b->workspace, sample_workspace_bytes(V), error));
    return sampler_create(&b->sampler, V, &(struct llama2_sampling){.seed = 1});
}

static void bench_free(struct bench *b) {
    sampler_free(&b->sampler);
    device_free(b->workspace);
    device_free(b->sampling);
    device_free(b->token);
    device_free(b->logits);
    free(b->scratch);
    free(b->host);
}

/* ---- The truth, in double ---- */

struct weighed {
    double weight;
    size_t token;
};

static int compare_weighed(const void *left, const void *right) {
    const struct weighed *a = left, *b = right;
    if (a->weight != b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return (a->token > b->token) - (a->token < b->token);
}

static int compare_tokens(const void *left, const void *right) {
    const struct weighed *a = left, *b = right;
    return (a->token > b->token) - (a->token < b->token);
}

/* The tokens that can be drawn, in the order in which their weights are summed; sum 1. */
struct truth {
    struct weighed *list;
    size_t count;
    bool nucleus;
};

static enum status truth_create(struct truth *t, const struct bench *b,
                                const struct sampling *how) {
    t->count = b->V;
    t->nucleus = how->top_p > 0.0f && how->top_p < 1.0f;
    t->list = calloc(b->V, sizeof *t->list);
    if (t->list == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    double largest = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < b->V; i++) {
        largest = fmax(largest, (double)(b->host[i] / how->temperature));
    }
    for (size_t i = 0; i < b->V; i++) {
        double weight = exp((double)(b->host[i] / how->temperature) - largest);
        t->list[i] = (struct weighed){weight, i};
    }
    if (how->top_k > 0 && how->top_k < b->V) {
        qsort(t->list, t->count, sizeof *t->list, compare_weighed);
        t->count = how->top_k;
    }
    qsort(t->list, t->count, sizeof *t->list, t->nucleus ? compare_weighed : compare_tokens);
    for (size_t i = 0; i < t->count; i++) {
        sum += t->list[i].weight;
    }
    for (size_t i = 0; i < t->count; i++) {
        t->list[i].weight /= sum;
    }
    return STATUS_OK;
}

/* Whether the coin, as a share of the first `count` weights' sum, falls on the token or next to it
   within rounding. */
static bool falls_on(const struct truth *t, size_t count, double mass, double coin, int32_t token) {
    double from = 0.0, to = 0.0;
    size_t i = 0;
    while (i < count && t->list[i].token != (size_t)token) {
        from += t->list[i++].weight;
    }
    if (i == count) {
        return false;
    }
    to = from + t->list[i].weight;
    return coin * mass >= from - ROUNDING && coin * mass <= to + ROUNDING;
}

/* The same for every nucleus that rounding allows. */
static bool may_be_drawn(const struct truth *t, const struct sampling *how, double coin,
                         int32_t token) {
    if (!t->nucleus) {
        return falls_on(t, t->count, 1.0, coin, token);
    }
    double mass = 0.0, top_p = (double)how->top_p;
    for (size_t i = 0; i < t->count; i++) {
        double before = mass;
        mass += t->list[i].weight;
        bool can_be_last = i + 1 == t->count || mass > top_p - ROUNDING;
        if (before > top_p + ROUNDING) {
            return false;
        }
        if (can_be_last && falls_on(t, i + 1, mass, coin, token)) {
            return true;
        }
    }
    return false;
}

static double coin_of(uint64_t state) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)(uint32_t)(state * 0x2545f4914f6cdd1du >> 40) / 16777216.0;
}

/* ---- Draws ---- */

static enum status draw(struct bench *b, const struct sampling *how, struct sampling *after,
                        int32_t *token, struct error *error) {
    TRY(device_write(b->logits, b->host, b->V * sizeof *b->host, NULL, error));
    TRY(device_write(b->sampling, how, sizeof *how, NULL, error));
    TRY(device_set(b->token, 0xff, sizeof *b->token, NULL, error));
    TRY(sample_token(b->sampling, b->logits, b->V, b->token, b->workspace, NULL, error));
    TRY(device_read(after, b->sampling, sizeof *after, NULL, error));
    return device_read(token, b->token, sizeof *token, NULL, error);
}

/* Draws once here and there. */
static void check_draw(struct bench *b, struct sampling *how) {
    struct error error = {0};
    struct sampling after;
    int32_t got = -1;
    ASSERT_OK(draw(b, how, &after, &got, &error));
    b->sampler.temperature = how->temperature;
    b->sampler.top_p = how->top_p;
    b->sampler.top_k = how->top_k;
    b->sampler.state = how->state;
    memcpy(b->scratch, b->host, b->V * sizeof *b->host);
    int32_t want = sampler_next(&b->sampler, b->scratch);
    EXPECT_TRUE(b->sampler.state == after.state);
    EXPECT_TRUE(got >= 0 && (size_t)got < b->V);
    if (how->temperature == 0.0f) {
        EXPECT_INT_EQ(want, got);
    } else {
        struct truth truth;
        ASSERT_OK(truth_create(&truth, b, how));
        bool right = may_be_drawn(&truth, how, coin_of(how->state), got);
        if (!right) {
            TEST_FAIL("V %zu, temperature %g, top-p %g, top-k %u: token %d, want %d", b->V,
                      (double)how->temperature, (double)how->top_p, how->top_k, got, want);
        }
        free(truth.list);
        b->draws++;
        b->differ += want != got;
    }
    how->state = after.state;
}

/* Draws with all settings from one set of logits. */
static void check_settings(struct bench *b, uint64_t seed) {
    static const struct sampling settings[] = {
        {.temperature = 0.0f},
        {.temperature = 1.0f},
        {.temperature = 0.7f, .top_p = 1.0f},
        {.temperature = 1.0f, .top_p = 0.9f},
        {.temperature = 1.3f, .top_p = 0.5f},
        {.temperature = 1.0f, .top_p = 1e-9f},
        {.temperature = 1.0f, .top_p = 0.9999999f},
        {.temperature = 1.0f, .top_k = 1},
        {.temperature = 1.0f, .top_k = 40},
        {.temperature = 0.8f, .top_p = 0.8f, .top_k = 40},
        {.temperature = 1.0f, .top_p = 0.9f, .top_k = 1000000},
    };
    for (size_t i = 0; i < COUNT(settings) && !test_has_failed(); i++) {
        struct sampling how = settings[i];
        how.state = seed;
        check_draw(b, &how);
        check_draw(b, &how);
    }
}

/* Logits of a given scale: 0 flat, 20 peaked. */
static void check_spread(size_t V, float spread, size_t rounds) {
    struct bench b;
    struct error error = {0};
    struct rng rng = rng_create(V + (uint64_t)spread);
    EXPECT_OK(bench_create(&b, V, &error));
    for (size_t i = 0; i < rounds && !test_has_failed(); i++) {
        rng_fill_normal(&rng, b.host, V, spread);
        check_settings(&b, rng_u64(&rng) | 1);
    }
    /* With few tokens edges are far apart. With many, the host's own sums stray by whole tokens. */
    EXPECT_TRUE(V > 1000 || b.differ <= 1 + b.draws / 20);
    bench_free(&b);
}

C_TEST(sampling, one_token) {
    check_spread(1, 1.0f, 1);
}

C_TEST(sampling, two_tokens) {
    check_spread(2, 1.0f, 6);
}

C_TEST(sampling, odd_vocabulary) {
    check_spread(311, 0.0f, 2);
    check_spread(311, 1.0f, 6);
    check_spread(311, 20.0f, 2);
}

C_TEST(sampling, vocabulary_of_llama) {
    check_spread(32000, 2.0f, 1);
}

C_TEST(sampling, flat_vocabulary_of_llama) {
    check_spread(32000, 0.0f, 1);
}

C_TEST(sampling, long_vocabulary) {
    struct bench b;
    struct error error = {0};
    struct rng rng = rng_create(5);
    struct sampling how = {.state = 77, .temperature = 0.9f, .top_p = 0.95f, .top_k = 5000};
    EXPECT_OK(bench_create(&b, 131075, &error));
    rng_fill_normal(&rng, b.host, b.V, 1.5f);
    check_draw(&b, &how);
    bench_free(&b);
}

/* Equal weights lie in the order of their tokens, also where top-k cuts between them. */
C_TEST(sampling, equal_logits) {
    struct bench b;
    struct error error = {0};
    struct rng rng = rng_create(6);
    EXPECT_OK(bench_create(&b, 2500, &error));
    for (size_t round = 0; round < 3 && !test_has_failed(); round++) {
        for (size_t i = 0; i < b.V; i++) {
            b.host[i] = (float)rng_below(&rng, 4);
        }
        check_settings(&b, rng_u64(&rng) | 1);
    }
    bench_free(&b);
}

/* Many draws from one list have its frequencies: coins and tokens belong together. */
C_TEST(sampling, frequencies) {
    enum { DRAWS = 200 };
    struct bench b;
    struct error error = {0};
    struct sampling how = {.state = 1234, .temperature = 1.0f, .top_k = 2}, after;
    size_t seen[3] = {0};
    EXPECT_OK(bench_create(&b, 3, &error));
    memcpy(b.host, (const float[]){0.0f, logf(3.0f), -1.0f}, 3 * sizeof *b.host);
    for (size_t i = 0; i < DRAWS && !test_has_failed(); i++) {
        int32_t token = 2;
        EXPECT_OK(draw(&b, &how, &after, &token, &error));
        EXPECT_TRUE(token == 0 || token == 1);
        seen[token == 0 || token == 1 ? token : 2]++;
        how.state = after.state;
    }
    EXPECT_INT_EQ(0, seen[2]);
    EXPECT_NEAR(0.75, (double)seen[1] / DRAWS, 0.12);
    bench_free(&b);
}

/* The lowest of the best, with zeros of both signs. */
C_TEST(sampling, greedy_takes_the_lowest) {
    struct bench b;
    struct error error = {0};
    struct sampling how = {.state = 9, .temperature = 0.0f};
    EXPECT_OK(bench_create(&b, 5000, &error));
    for (size_t i = 0; i < b.V; i++) {
        b.host[i] = i < 700 ? -1.0f : i % 2 == 0 ? -0.0f : 0.0f;
    }
    check_draw(&b, &how);
    b.host[4321] = 2.0f;
    check_draw(&b, &how);
    for (size_t i = 0; i < b.V; i++) {
        b.host[i] = -INFINITY;
    }
    check_draw(&b, &how);
    bench_free(&b);
}

/* Logits that are not numbers give token 0 and state 0, as sampler.c. */
C_TEST(sampling, not_a_number) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    static const struct sampling settings[] = {
        {.temperature = 0.0f},
        {.temperature = 1.0f},
        {.temperature = 1.0f, .top_p = 0.9f},
    };
    struct bench b;
    struct error error = {0};
    EXPECT_OK(bench_create(&b, 311, &error));
    for (size_t c = 0; c < 9 && !test_has_failed(); c++) {
        for (size_t i = 0; i < b.V; i++) { /* all of them, the first, or one in the middle */
            bool chosen = c / 3 == 0 || (c / 3 == 1 ? i == 0 : i == 200);
            b.host[i] = chosen ? bad[c % 3] : (float)(i % 7);
        }
        for (size_t i = 0; i < COUNT(settings); i++) {
            struct sampling how = settings[i], after;
            int32_t got = -1;
            how.state = 5;
            ASSERT_OK(draw(&b, &how, &after, &got, &error));
            bool one_hidden = c / 3 != 0 && c % 3 == 2; /* -inf among numbers is a number */
            b.sampler.temperature = how.temperature;
            b.sampler.top_p = how.top_p;
            b.sampler.top_k = 0;
            b.sampler.state = how.state;
            memcpy(b.scratch, b.host, b.V * sizeof *b.host);
            int32_t want = sampler_next(&b.sampler, b.scratch);
            EXPECT_INT_EQ(one_hidden, b.sampler.state != 0);
            EXPECT_INT_EQ(one_hidden, after.state != 0);
            EXPECT_TRUE(got >= 0 && (size_t)got < b.V);
            EXPECT_TRUE(one_hidden || (want == 0 && got == 0));
        }
    }
    bench_free(&b);
}

C_TEST(sampling, sizes_are_checked) {
    struct error error = {0};
    int place = 0;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  sample_token((void *)&place, NULL, 0, NULL, NULL, NULL, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, sample_token((void *)&place, NULL, (size_t)INT32_MAX + 1,
                                                        NULL, NULL, NULL, &error));
    EXPECT_TRUE(strstr(error.message, "2147483648") != NULL);
}
