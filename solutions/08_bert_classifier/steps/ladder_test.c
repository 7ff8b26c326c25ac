/* Every step of the ladder against the reference: odd sizes, batches one after the other. */
#include "solutions/08_bert_classifier/steps/ladder.h"

#include "common/testing/testing.h"
#include "labs/08_bert_classifier/problem/case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { T = 40, V = 53, MOST = 128 };

static struct bert_config config_of(size_t C, size_t hidden, size_t L, size_t NH) {
    return (struct bert_config){.C = C,
                                .hidden = hidden,
                                .L = L,
                                .NH = NH,
                                .V = V,
                                .T = T,
                                .types = 2,
                                .labels = 2,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

static enum status run_case(struct encoder_case *c, const struct encoder_step *step,
                            struct encoder *encoder, char *text, size_t size, struct error *error) {
    TRY(encoder_case_reset(c, error));
    TRY(step->run(encoder, &c->batch, error));
    TRY(device_synchronize(NULL, error));
    return encoder_case_check(c, text, size, error);
}

/* All steps, one after the other, on one encoder. */
static void check_batch(const struct encoder_net *net, const struct encoder_spec *spec,
                        struct encoder *encoder, struct rng *rng) {
    size_t count;
    struct encoder_case c;
    struct error error = {0};
    const struct encoder_step *steps = encoder_ladder(&count);
    ASSERT_OK(encoder_case_create(&c, net, spec, rng, true, false, &error));
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        char text[400] = "";
        enum status status = run_case(&c, &steps[i], encoder, text, sizeof text, &error);
        if (status != STATUS_OK || text[0] != '\0') {
            TEST_FAIL("%s, %s: %s %s", steps[i].name, c.name, text, error.message);
        }
    }
    encoder_case_free(&c);
}

static const int32_t some[] = {5, 1, 13}, mixed[] = {1, T, 7, 1};

static void check_specs(size_t C, size_t hidden, size_t L, size_t NH,
                        const struct encoder_spec *specs, size_t spec_count) {
    struct encoder_net net = {0};
    struct encoder *encoder = NULL;
    struct error error = {0};
    struct rng rng = rng_create(C);
    const struct bert_config config = config_of(C, hidden, L, NH);
    ASSERT_OK(device_open(&error));
    EXPECT_OK(encoder_net_create(&net, &config, 5, MOST, &error));
    EXPECT_OK(
        encoder_create(&encoder, &net.model, 20, NULL, &error)); /* too small for some: grows */
    for (size_t i = 0; i < spec_count && !test_has_failed(); i++) {
        check_batch(&net, &specs[i], encoder, &rng);
    }
    encoder_free(encoder);
    encoder_net_free(&net);
}

static void check_sizes(size_t C, size_t hidden, size_t L, size_t NH) {
    static const struct encoder_spec specs[] = {{mixed, COUNT(mixed), true, true},
                                                {some, COUNT(some), false, false},
                                                {mixed, COUNT(mixed), true, false}};
    check_specs(C, hidden, L, NH, specs, COUNT(specs));
}

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)encoder_ladder(&count);
    EXPECT_INT_EQ(5, count);
}

C_TEST(ladder, even_sizes) {
    check_sizes(64, 128, 2, 2);
}

C_TEST(ladder, odd_sizes) {
    check_sizes(35, 37, 2, 5);
    check_sizes(3, 5, 1, 3);
}

/* The embeddings' kernels for each number of channels per lane; heads of 33 to 128 channels. Few
   tokens, because products of that many channels take most of the time. */
C_TEST(ladder, embeddings_of_every_length) {
    static const struct encoder_spec specs[] = {{some, COUNT(some), true, true},
                                                {some, COUNT(some), false, false}};
    check_specs(260, 8, 1, 4, specs, COUNT(specs));
    check_specs(770, 8, 1, 10, &specs[0], 1);
    check_specs(1030, 8, 1, 10, &specs[1], 1);
}

/* More keys than the first row's attention has in one round. */
C_TEST(ladder, first_rows_of_long_sequences) {
    static const int32_t lengths[] = {100, 3, 150, 33};
    const struct encoder_spec spec = {lengths, COUNT(lengths), false, false};
    struct encoder_net net = {0};
    struct encoder *encoder = NULL;
    struct error error = {0};
    struct rng rng = rng_create(9);
    struct bert_config config = config_of(70, 20, 2, 1);
    config.T = 150;
    ASSERT_OK(device_open(&error));
    EXPECT_OK(encoder_net_create(&net, &config, 6, 300, &error));
    EXPECT_OK(encoder_create(&encoder, &net.model, 300, NULL, &error));
    if (!test_has_failed()) {
        check_batch(&net, &spec, encoder, &rng);
    }
    encoder_free(encoder);
    encoder_net_free(&net);
}

C_TEST(ladder, heads_too_long_are_refused) {
    struct error error = {0};
    struct encoder *encoder;
    const struct encoder_model model = {.C = 258, .hidden = 1, .L = 1, .NH = 2};
    ASSERT_OK(device_open(&error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, encoder_create(&encoder, &model, 1, NULL, &error));
    EXPECT_TRUE(encoder == NULL);
    encoder_free(NULL);
}
