/* Which tokens pass for drawn ones, where the logits that they were drawn from are not known but
   for an error: all that the sampler draws, and few others. */
#include "labs/10_llama2_decoder/problem/draw.h"

#include <math.h>
#include <string.h>

#include "common/models/sampler.h"
#include "common/testing/testing.h"

enum { V = 311, DRAWS = 400 };

static const double OFF = 4e-4;

/* The sampler's token. */
static int32_t draw(const float *logits, const struct sampling *how) {
    const struct llama2_sampling settings = {how->temperature, how->top_p, how->top_k, how->state};
    struct sampler sampler;
    float own[V];
    memcpy(own, logits, sizeof own); /* the sampler works in place */
    EXPECT_OK(sampler_create(&sampler, V, &settings));
    int32_t token = sampler_next(&sampler, own);
    sampler_free(&sampler);
    return token;
}

static bool plausible(const float *logits, const struct sampling *how, int32_t token) {
    bool is = false;
    EXPECT_OK(decoder_token_plausible(logits, V, how, token, OFF, &is));
    return is;
}

/* Tokens drawn as `how` says pass; of those drawn as `other` says no more than a tenth. */
static void check_draws(struct sampling how, struct sampling other) {
    struct rng rng = rng_create(5);
    int refused = 0;
    for (int i = 0; i < DRAWS && !test_has_failed(); i++) {
        float logits[V], near[V];
        rng_fill_normal(&rng, logits, V, 1.0f);
        for (int k = 0; k < V; k++) {
            near[k] = logits[k] + (float)(OFF * (2.0 * (double)rng_uniform(&rng) - 1.0));
        }
        how.state = other.state = rng_u64(&rng) | 1;
        EXPECT_TRUE(plausible(logits, &how, draw(near, &how)));
        refused += !plausible(logits, &how, draw(near, &other));
    }
    EXPECT_TRUE(refused >= DRAWS * 9 / 10);
}

C_TEST(draw, other_temperature) {
    check_draws((struct sampling){1, 0.9f, 0.9f, 0}, (struct sampling){1, 1.1f, 0.9f, 0});
}

C_TEST(draw, no_top_p) {
    check_draws((struct sampling){1, 0.9f, 0.9f, 0}, (struct sampling){1, 0.9f, 0.0f, 0});
}

C_TEST(draw, greedy) {
    check_draws((struct sampling){1, 0.0f, 0.9f, 0}, (struct sampling){1, 2.0f, 0.0f, 0});
}

C_TEST(draw, tokens_that_are_none) {
    const float logits[V] = {1.0f};
    const struct sampling how = {1, 0.9f, 0.9f, 0}, greedy = {1, 0.0f, 0.9f, 0};
    EXPECT_TRUE(!plausible(logits, &how, -1));
    EXPECT_TRUE(!plausible(logits, &how, V));
    EXPECT_TRUE(!plausible(logits, &greedy, V));
}
