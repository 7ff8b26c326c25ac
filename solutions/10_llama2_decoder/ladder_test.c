/* Every step of the ladder next to the reference: prompts at once and in pieces, steps, texts that
   go back, odd sizes, all types; and how many launches a token takes. */
#include "solutions/10_llama2_decoder/ladder.h"

#include <stdlib.h>

#include "common/bench/device_launches.h"
#include "common/testing/testing.h"
#include "grader/cases/10_llama2_decoder_case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct sampling greedy = {1, 0.0f, 0.0f, 0};
static const struct sampling drawing = {1, 0.9f, 0.8f, 30};

/* Tokens fed in one call at a position, or a step there. */
struct action {
    size_t feed, position; /* feed 0: a step */
    bool draws;            /* a step that is not greedy; none in front of a feed, which must find
                              the generator as it was put */
};

static struct decoder_functions functions_of(const struct decoder_version *v) {
    return (struct decoder_functions){decoder_create, v->prefill, v->step, decoder_free};
}

static enum status act(struct decoder_case *c, const struct action *a, char *text, size_t size,
                       struct error *error) {
    if (a->feed > 0) {
        return decoder_case_feed(c, a->feed, a->position, text, size, error);
    }
    struct sampling how = a->draws ? drawing : greedy;
    how.state = rng_u64(c->rng) | 1;
    return decoder_case_step_at(c, a->position, &how, NULL, text, size, error);
}

static void check_version(const struct decoder_net *net, const struct decoder_version *v,
                          size_t batch, const struct action *actions, size_t count) {
    char text[500] = "";
    struct decoder_case c;
    struct error error = {0};
    struct rng rng = rng_create(net->size.V);
    const struct decoder_functions functions = functions_of(v);
    enum status status = decoder_case_create(&c, net, &functions, batch, &rng, NULL, true, &error);
    for (size_t i = 0; i < count && status == STATUS_OK && text[0] == '\0'; i++) {
        status = act(&c, &actions[i], text, sizeof text, &error);
    }
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s, %s: %s %s", v->name, c.name, text, error.message);
    }
    decoder_case_free(&c);
}

/* All steps of the ladder from `first` on, on a model of each size. */
static void check_sizes(const struct decoder_size *sizes, size_t size_count, size_t batch,
                        const struct action *actions, size_t count, size_t first) {
    size_t versions;
    const struct decoder_version *v = decoder_ladder(&versions);
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    for (size_t i = 0; i < size_count && !test_has_failed(); i++) {
        struct decoder_net net;
        EXPECT_OK(decoder_net_create(&net, &sizes[i], 7 + i, false, &error));
        for (size_t k = first; k < versions && !test_has_failed(); k++) {
            check_version(&net, &v[k], batch, actions, count);
        }
        EXPECT_TRUE(decoder_net_intact(&net));
        decoder_net_free(&net);
    }
}

enum { FROM_D1 = 0, FROM_D3 = 2, FROM_D6 = 5 };

static const struct action text[] = {{9, 0, false},  {1, 9, false},  {4, 10, false}, {0, 14, true},
                                     {0, 15, false}, {2, 16, false}, {0, 18, false}, {3, 11, false},
                                     {0, 14, false}, {0, 4, true},   {0, 5, false},  {12, 0, false},
                                     {0, 12, true}};

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)decoder_ladder(&count);
    EXPECT_INT_EQ(8, count);
}

C_TEST(ladder, fp32) {
    static const struct decoder_size sizes[] = {
        {4, 4, 16, 96, 2, 61, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
        {6, 2, 8, 40, 3, 100, 32, NN_F32, NN_ROPE_HALVES, true}};
    check_sizes(sizes, COUNT(sizes), 16, text, COUNT(text), FROM_D1);
}

C_TEST(ladder, sixteen_bits) {
    static const struct decoder_size sizes[] = {
        {4, 4, 16, 96, 2, 61, 32, NN_BF16, NN_ROPE_INTERLEAVED, false},
        {6, 2, 8, 40, 3, 100, 32, NN_F16, NN_ROPE_HALVES, true}};
    check_sizes(sizes, COUNT(sizes), 16, text, COUNT(text), FROM_D3);
}

C_TEST(ladder, odd_sizes) {
    static const struct decoder_size sizes[] = {
        {1, 1, 2, 1, 1, 1, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
        {3, 1, 10, 37, 2, 53, 32, NN_F16, NN_ROPE_INTERLEAVED, true},
        {7, 7, 10, 19, 1, 301, 32, NN_F32, NN_ROPE_HALVES, false},
        {3, 3, 6, 21, 2, 31, 32, NN_BF16, NN_ROPE_HALVES, false}};
    check_sizes(sizes, COUNT(sizes), 12, text, COUNT(text), FROM_D3);
}

/* Heads that lab 07's attention does not take: prompts go token by token. */
C_TEST(ladder, long_heads) {
    static const struct decoder_size sizes[] = {
        {1, 1, 256, 33, 1, 40, 32, NN_F32, NN_ROPE_INTERLEAVED, false}};
    static const struct action few[] = {{5, 0, false}, {0, 5, true}};
    check_sizes(sizes, COUNT(sizes), 16, few, COUNT(few), FROM_D6);
}

/* More pairs of rows than the blocks of a product have in a round, and an odd number of rows. */
C_TEST(ladder, many_rows_of_the_classifier) {
    static const struct decoder_size sizes[] = {
        {2, 2, 8, 24, 1, 40001, 8, NN_F32, NN_ROPE_INTERLEAVED, false}};
    static const struct action few[] = {{2, 0, false}, {0, 2, true}};
    check_sizes(sizes, COUNT(sizes), 4, few, COUNT(few), FROM_D6);
}

/* Rows of more pieces than a block has threads, in every type. */
C_TEST(ladder, long_rows) {
    static const struct decoder_size sizes[] = {
        {2, 1, 16, 2300, 1, 20, 8, NN_F32, NN_ROPE_INTERLEAVED, false},
        {2, 1, 16, 4400, 1, 20, 8, NN_BF16, NN_ROPE_INTERLEAVED, false}};
    static const struct action few[] = {{2, 0, false}, {0, 2, true}};
    check_sizes(sizes, COUNT(sizes), 4, few, COUNT(few), FROM_D6);
}

/* Steps on both sides of where another recorded step is taken, and back. */
C_TEST(ladder, contexts_of_two_graphs) {
    static const struct decoder_size sizes[] = {
        {2, 1, 16, 24, 1, 40, 300, NN_F32, NN_ROPE_INTERLEAVED, false}};
    static const struct action long_text[] = {{150, 0, false}, {104, 150, false}, {0, 254, true},
                                              {0, 255, false}, {0, 256, true},    {0, 257, false},
                                              {0, 100, true},  {0, 101, false}};
    check_sizes(sizes, COUNT(sizes), 150, long_text, COUNT(long_text), FROM_D6);
}

/* ---- Launches ---- */

struct recorded {
    struct decoder *decoder;
    decoder_step_function *step;
    size_t position;
};

static enum status record_step(void *argument, device_stream stream, struct error *error) {
    const struct recorded *r = argument;
    (void)stream; /* the decoder's own */
    return r->step(r->decoder, r->position, error);
}

static enum status count_steps(struct decoder_case *c, const struct decoder_version *v,
                               size_t *launches, struct error *error) {
    char text_of_case[500] = "";
    struct recorded r = {NULL, v->step, 4};
    TRY(decoder_case_feed(c, 4, 0, text_of_case, sizeof text_of_case, error));
    r.decoder = c->decoder;
    return device_count_launches_on(record_step, &r, c->stream, launches, error);
}

/* Attention is two or three, and there are three products; drawing two, embedding and classifier
   one each. Before d5 a step waits for its logits, so it cannot be recorded. */
C_TEST(ladder, launches_a_token) {
    static const struct decoder_size size = {
        4, 2, 16, 96, 3, 61, 32, NN_BF16, NN_ROPE_INTERLEAVED, false};
    size_t versions;
    const struct decoder_version *v = decoder_ladder(&versions);
    struct error error = {0};
    struct decoder_net net;
    device_stream stream = NULL;
    struct device_properties gpu;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_properties(&gpu, &error));
    EXPECT_OK(decoder_net_create(&net, &size, 3, false, &error));
    EXPECT_OK(device_stream_create(&stream, &error));
    for (size_t k = 4; k < versions && !test_has_failed(); k++) {
        size_t launches = 0;
        struct decoder_case c;
        struct rng rng = rng_create(1);
        const struct decoder_functions functions = functions_of(&v[k]);
        EXPECT_OK(decoder_case_create(&c, &net, &functions, 8, &rng, stream, false, &error));
        EXPECT_OK(count_steps(&c, &v[k], &launches, &error));
        if (k == versions - 1 && (gpu.major == 9 || gpu.major == 10)) {
            EXPECT_INT_EQ(3, launches); /* two that draw, and one */
        } else {
            EXPECT_TRUE(launches >= 5 * size.L + 4 && launches <= 6 * size.L + 4);
        }
        decoder_case_free(&c);
    }
    device_stream_destroy(stream);
    decoder_net_free(&net);
}

C_TEST(ladder, sizes_are_checked) {
    struct error error = {0};
    struct decoder *decoder;
    struct decoder_model model = {.C = 258, .NH = 1, .KVH = 1, .HS = 258, .V = 1, .T = 4};
    const struct decoder_io io = {0};
    ASSERT_OK(device_open(&error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, decoder_create(&decoder, &model, &io, 1, NULL, &error));
    model.HS = 2;
    model.NH = 3;
    model.KVH = 2;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, decoder_create(&decoder, &model, &io, 1, NULL, &error));
    EXPECT_TRUE(decoder == NULL);
    decoder_free(NULL);
}
