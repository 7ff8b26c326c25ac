#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "common/models/llama2_random.h"
#include "common/programs/decoder/perplexity.h"
#include "common/programs/program.h"
#include "common/testing/testing.h"

enum { BOS = 1, CONTEXT = 16, VOCABULARY = 50, COUNT = 45 };

static const struct llama2_config small = {.C = 16,
                                           .hidden = 24,
                                           .L = 2,
                                           .NH = 4,
                                           .KVH = 2,
                                           .HS = 4,
                                           .V = VOCABULARY,
                                           .T = CONTEXT,
                                           .rope_theta = 10000.0f,
                                           .norm_eps = 1e-5f};

struct bed {
    struct llama2_random random;
    struct engine engine;
    struct language_model model;
};

static enum status open_bed(struct bed *b) {
    *b = (struct bed){.model = {0}};
    interrupt_watch();
    TRY(llama2_random_create(&b->random, &small, 3));
    TRY(engine_reference_create(&b->engine));
    return llama2_create(&b->model.llama2, &small, &b->random.weights, &b->engine, CONTEXT, NULL);
}

static void close_bed(struct bed *b) {
    language_model_free(&b->model);
    engine_destroy(&b->engine);
    llama2_random_free(&b->random);
}

/* log(sum of exp(logit - logit of the token)); needs no maximum, as logits are small here. */
static double plain_nats(const float *logits, int32_t token) {
    double sum = 0.0;
    for (size_t i = 0; i < VOCABULARY; i++) {
        sum += exp((double)logits[i] - (double)logits[token]);
    }
    return log(sum);
}

/* The same without a cache: feeds all earlier tokens of the window in one batch for each token. */
static double recompute(struct llama2 *model, const int32_t *tokens, size_t count, size_t window) {
    float logits[VOCABULARY];
    double nats = 0.0;
    for (size_t begin = 0; begin < count; begin += window) {
        int32_t fed[CONTEXT] = {1};
        for (size_t k = 0; k < window && begin + k < count; k++) {
            EXPECT_OK(llama2_forward(model, fed, k + 1, 0, logits));
            nats += plain_nats(logits, tokens[begin + k]);
            if (k + 1 < window) {
                fed[k + 1] = tokens[begin + k];
            }
        }
    }
    return nats;
}

C_TEST(perplexity, windows_as_recomputed) {
    int32_t tokens[COUNT];
    float logits[VOCABULARY];
    struct bed b;
    ASSERT_OK(open_bed(&b));
    for (size_t i = 0; i < COUNT; i++) {
        tokens[i] = (int32_t)(i * i * 7 % VOCABULARY);
    }
    for (size_t window = 1; window <= CONTEXT; window += 5) {
        for (size_t count = 1; count <= COUNT; count += 11) {
            struct perplexity sum = {0};
            EXPECT_OK(perplexity_add(&sum, &b.model, BOS, tokens, count, window, logits, NULL));
            double want = recompute(b.model.llama2, tokens, count, window);
            EXPECT_NEAR(want, sum.nats, 1e-5 * want);
            EXPECT_INT_EQ(count, sum.tokens);
            EXPECT_INT_EQ((count + window - 1) / window, sum.windows);
        }
    }
    close_bed(&b);
}

C_TEST(perplexity, windows_without_bos) {
    const int32_t tokens[] = {1, 9, 3, 1, 8, 2, 1};
    float logits[VOCABULARY];
    struct bed b;
    struct perplexity with = {0}, without = {0};
    ASSERT_OK(open_bed(&b));
    for (size_t i = 0; i < 7; i += 3) { /* each window of three begins with 1, as with BOS */
        size_t count = i + 3 <= 7 ? 2 : 0;
        EXPECT_OK(perplexity_add(&with, &b.model, 1, tokens + i + 1, count, 3, logits, NULL));
    }
    EXPECT_OK(perplexity_add(&without, &b.model, -1, tokens, 7, 3, logits, NULL));
    EXPECT_INT_EQ(4, without.tokens);
    EXPECT_INT_EQ(3, without.windows);
    EXPECT_NEAR(with.nats, without.nats, 1e-9);
    close_bed(&b);
}

C_TEST(perplexity, nats_of_large_logits) {
    const float equal[4] = {1000.0f, 1000.0f, 1000.0f, 1000.0f};
    const float apart[3] = {-3000.0f, 0.0f, 3000.0f};
    const float wrong[2] = {0.0f, NAN};
    const float endless[2] = {0.0f, INFINITY};
    EXPECT_NEAR(log(4.0), perplexity_nats(equal, 4, 2), 1e-12);
    EXPECT_NEAR(6000.0, perplexity_nats(apart, 3, 0), 1e-12);
    EXPECT_NEAR(0.0, perplexity_nats(apart, 3, 2), 1e-12);
    EXPECT_TRUE(!isfinite(perplexity_nats(wrong, 2, 0)));
    EXPECT_TRUE(!isfinite(perplexity_nats(endless, 2, 0)));
}

C_TEST(perplexity, failures_are_reported) {
    const int32_t tokens[3] = {5, VOCABULARY, 7}; /* the second is out of range when it is fed */
    const int32_t fine[3] = {5, 6, 7};
    float logits[VOCABULARY + 1] = {0};
    struct bed b;
    struct error error = {0};
    struct perplexity sum = {0};
    ASSERT_OK(open_bed(&b));
    EXPECT_ERROR(STATUS_TOO_LONG, "the model failed at token 16: too long",
                 perplexity_add(&sum, &b.model, BOS, (const int32_t[CONTEXT + 1]){0}, CONTEXT + 1,
                                CONTEXT + 1, logits, &error));
    sum = (struct perplexity){0};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  perplexity_add(&sum, &b.model, BOS, tokens, 3, CONTEXT, logits, &error));
    EXPECT_INT_EQ(2, sum.tokens);
    sum = (struct perplexity){0};
    raise(SIGTERM);
    EXPECT_STATUS(STATUS_INTERRUPTED,
                  perplexity_add(&sum, &b.model, BOS, fine, 3, CONTEXT, logits, &error));
    EXPECT_INT_EQ(0, sum.tokens);
    EXPECT_INT_EQ(SIGTERM, interrupt_seen());
    close_bed(&b);
}
