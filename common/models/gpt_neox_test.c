#include "common/models/gpt_neox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/gpt_neox_random.h"
#include "common/testing/testing.h"

/* Against transformers: common/checkpoints/gpt_neox/gpt_neox_data_test.c. */

enum { V = 67, T = 12 };

static const struct gpt_neox_config small = {.C = 30,
                                             .hidden = 36,
                                             .L = 3,
                                             .NH = 3,
                                             .HS = 10,
                                             .V = V,
                                             .T = T,
                                             .rotary = 4,
                                             .rope_theta = 100.0f,
                                             .norm_eps = 1e-5f,
                                             .activation = NN_GELU,
                                             .parallel = true,
                                             .attention_bias = true};

static const int32_t text[T] = {1, 5, 66, 0, 23, 23, 9, 41, 2, 60, 33, 7};

static double forward(const struct gpt_neox_random *random, const struct gpt_neox_config *config,
                      const struct engine *engine, size_t batch, float logits[T][V]) {
    struct gpt_neox *model;
    double largest = 0.0;
    if (gpt_neox_create(&model, config, &random->weights, engine, batch, NULL) != STATUS_OK) {
        TEST_FAIL("no model");
        return 0.0;
    }
    EXPECT_TRUE(memcmp(gpt_neox_config(model), config, sizeof *config) == 0);
    for (size_t first = 0; first < T; first += batch) {
        size_t count = T - first < batch ? T - first : batch, last = first + count - 1;
        EXPECT_OK(gpt_neox_forward(model, text + first, count, first, logits[last]));
        for (size_t i = 0; i < V; i++) {
            largest = fmax(largest, fabs((double)logits[last][i]));
        }
    }
    gpt_neox_free(model);
    return largest;
}

/* Calls of many tokens compute what calls of one token do. */
C_TEST(gpt_neox, batches_are_alike) {
    static const size_t batches[] = {2, 5, T};
    struct engine engine;
    struct gpt_neox_random random;
    ASSERT_OK(engine_reference_create(&engine));
    for (int parallel = 0; parallel < 2; parallel++) {
        static float want[T][V], got[T][V];
        struct gpt_neox_config config = small;
        config.parallel = parallel;
        ASSERT_OK(gpt_neox_random_create(&random, &config, parallel, 7));
        double largest = forward(&random, &config, &engine, 1, want);
        EXPECT_TRUE(largest > 1.0);
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            memset(got, 0, sizeof got);
            forward(&random, &config, &engine, batches[b], got);
            for (size_t t = batches[b] - 1; t < T; t += batches[b]) {
                for (size_t i = 0; i < V; i++) {
                    EXPECT_NEAR(want[t][i], got[t][i], 1e-5 * largest);
                }
            }
        }
        gpt_neox_random_free(&random);
    }
    engine_destroy(&engine);
}

/* Each setting changes the logits: none is forgotten. */
C_TEST(gpt_neox, settings_count) {
    static float want[T][V], got[T][V];
    struct engine engine;
    struct gpt_neox_random random;
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(gpt_neox_random_create(&random, &small, false, 7));
    forward(&random, &small, &engine, T, want);
    struct gpt_neox_config others[] = {small, small, small, small, small};
    others[0].parallel = false;
    others[1].rotary = 6;
    others[2].rope_theta = 10000.0f;
    others[3].activation = NN_GELU_TANH;
    others[4].norm_eps = 0.1f;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        double difference = 0.0;
        forward(&random, &others[k], &engine, T, got);
        for (size_t i = 0; i < V; i++) {
            difference = fmax(difference, fabs((double)want[T - 1][i] - (double)got[T - 1][i]));
        }
        EXPECT_TRUE(difference > 1e-5);
    }
    gpt_neox_random_free(&random);
    engine_destroy(&engine);
}

C_TEST(gpt_neox, refuses) {
    struct engine engine, without;
    struct gpt_neox_random random;
    struct gpt_neox *model;
    float logits[V];
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(gpt_neox_random_create(&random, &small, true, 7));
    struct gpt_neox_config bad[] = {small, small, small, small};
    bad[0].rotary = 3;
    bad[1].rotary = 12;
    bad[2].NH = 2;
    bad[3].T = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_ERROR_CONTAINS(
            STATUS_INVALID_ARGUMENT, "do not fit together",
            gpt_neox_create(&model, &bad[i], &random.weights, &engine, 1, &error));
        EXPECT_TRUE(model == NULL);
    }
    without = engine;
    without.rope_table = NULL;
    EXPECT_ERROR_CONTAINS(STATUS_UNSUPPORTED, "table of frequencies",
                          gpt_neox_create(&model, &small, &random.weights, &without, 1, &error));
    const struct gpt_neox_stored_weights stored = {.layers = NULL};
    EXPECT_ERROR_CONTAINS(
        STATUS_UNSUPPORTED, "engine reference has no decoder for this GPT-NeoX",
        gpt_neox_create_stored(&model, &small, &stored, NN_F32, &engine, 1, &error));
    EXPECT_TRUE(model == NULL);
    ASSERT_OK(gpt_neox_create(&model, &small, &random.weights, &engine, 2, NULL));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, gpt_neox_forward(model, text, 0, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, gpt_neox_forward(model, text, 3, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, gpt_neox_forward(model, (int32_t[]){V}, 1, 0, logits));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, gpt_neox_forward(model, (int32_t[]){-1}, 1, 0, logits));
    EXPECT_STATUS(STATUS_TOO_LONG, gpt_neox_forward(model, text, 2, T - 1, logits));
    EXPECT_STATUS(STATUS_TOO_LONG, gpt_neox_forward(model, text, 1, SIZE_MAX, logits));
    gpt_neox_free(model);
    gpt_neox_free(NULL);
    gpt_neox_random_free(&random);
    engine_destroy(&engine);
}

/* ---- An engine with a decoder ---- */

/* Its logits are the last token and the position. */
struct fake {
    struct gpt_neox_decoder_model seen;
    bool declines;
    int made, freed;
};

static enum status fake_create(void *context, const struct gpt_neox_decoder_model *model,
                               void **decoder, struct error *error) {
    struct fake *fake = context;
    (void)error;
    fake->seen = *model;
    fake->made++;
    *decoder = fake->declines ? NULL : fake;
    return STATUS_OK;
}

static enum status fake_run(void *context, void *decoder, const struct llama2_decoder_call *call) {
    if (context != decoder) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (call->logits != NULL) {
        call->logits[0] = (float)call->tokens[call->count - 1];
        call->logits[1] = (float)call->position;
    }
    return STATUS_OK;
}

static void fake_free(void *context, void *decoder) {
    (void)decoder;
    ((struct fake *)context)->freed++;
}

static void fake_release(void *context, void *memory) {
    EXPECT_TRUE(context != NULL && memory == NULL); /* nothing else was made resident */
}

static void fake_release_weights(void *context, const void *memory) {
    EXPECT_TRUE(context != NULL && memory == NULL);
}

C_TEST(gpt_neox, a_decoder_gets_the_weights_as_they_are_stored) {
    struct fake fake = {.made = 0};
    const struct engine engine = {.name = "fake",
                                  .context = &fake,
                                  .release = fake_release,
                                  .release_weights = fake_release_weights,
                                  .gpt_neox_decoder_create = fake_create,
                                  .decoder_run = fake_run,
                                  .decoder_free = fake_free};
    const struct gpt_neox_stored_weights weights = {.layers = NULL};
    struct gpt_neox *model;
    float logits[V] = {0};
    ASSERT_OK(gpt_neox_create_stored(&model, &small, &weights, NN_BF16, &engine, 3, NULL));
    EXPECT_TRUE(fake.seen.weights == &weights && fake.seen.dtype == NN_BF16);
    EXPECT_INT_EQ(3, fake.seen.batch);
    EXPECT_OK(gpt_neox_forward(model, text, 3, 4, logits));
    EXPECT_NEAR(66.0, logits[0], 0.0);
    EXPECT_NEAR(4.0, logits[1], 0.0);
    EXPECT_STATUS(STATUS_TOO_LONG, gpt_neox_forward(model, text, 3, T - 2, logits));
    EXPECT_TRUE(!gpt_neox_draws(model));
    EXPECT_STATUS(STATUS_UNSUPPORTED, gpt_neox_next(model, 4, &(int32_t){0}));
    gpt_neox_free(model);
    fake.declines = true;
    EXPECT_ERROR_CONTAINS(
        STATUS_UNSUPPORTED, "engine fake has no decoder for this GPT-NeoX",
        gpt_neox_create_stored(&model, &small, &weights, NN_F16, &engine, 3, &error));
    EXPECT_INT_EQ(2, fake.made);
    EXPECT_INT_EQ(1, fake.freed);
}

C_TEST(gpt_neox_random, shapes) {
    for (int i = 0; i < GPT_NEOX_SHAPES; i++) {
        struct gpt_neox_config c = gpt_neox_shape_config((enum gpt_neox_shape)i);
        enum gpt_neox_shape shape;
        EXPECT_INT_EQ(c.C, c.NH * c.HS);
        EXPECT_TRUE(c.rotary % 2 == 0 && c.rotary == c.HS / 4);
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      gpt_neox_shape_parse(gpt_neox_shape_name((enum gpt_neox_shape)i), &shape,
                                           NULL)); /* names are in capitals */
    }
    enum gpt_neox_shape shape;
    EXPECT_OK(gpt_neox_shape_parse("2.8b", &shape, NULL));
    EXPECT_INT_EQ(GPT_NEOX_SHAPE_2_8B, shape);
}

C_TEST(gpt_neox_random, sizes_that_overflow) {
    struct gpt_neox_random random;
    struct gpt_neox_config config = small;
    config.hidden = SIZE_MAX / 2;
    EXPECT_STATUS(STATUS_OVERFLOW, gpt_neox_random_create(&random, &config, true, 1));
}
