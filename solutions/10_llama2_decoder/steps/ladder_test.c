/* Every step of the ladder against the reference: prompts at once and in pieces, steps, texts that
   go back, odd sizes, all types; and the launches of a token. */
#include "solutions/10_llama2_decoder/steps/ladder.h"

#include <stdlib.h>

#include "common/bench/device/device_launches.h"
#include "common/testing/testing.h"
#include "labs/10_llama2_decoder/problem/actions.h"
#include "labs/10_llama2_decoder/problem/case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define LIST(...) \
    { __VA_ARGS__ }

static const struct sampling drawing = {1, 0.9f, 0.8f, 30};

static struct decoder_functions functions_of(const struct decoder_version *v) {
    return (struct decoder_functions){decoder_create, v->prefill, v->step, decoder_free};
}

/* The GPUs that d8's kernel is for; simt is one of them. */
static bool runs_d8(void) {
    struct device_properties gpu = {0};
    struct error error = {0};
    EXPECT_OK(device_properties(&gpu, &error));
    return gpu.code / 10 == 9 || gpu.code / 10 == 10;
}

/* @param sharing positions from which d8's queries share a read of a key; NULL: the decoder's own
 */
static void check_version(const struct decoder_net *net, const struct decoder_version *v,
                          size_t batch, const struct decoder_action *actions, size_t count,
                          const size_t *sharing) {
    char text[500] = "";
    struct decoder_case c;
    struct error error = {0};
    struct rng rng = rng_create(net->size.V);
    const struct decoder_functions functions = functions_of(v);
    enum status status = decoder_case_create(&c, net, &functions, batch, &rng, NULL, true, &error);
    if (status == STATUS_OK && sharing != NULL) {
        c.decoder->one.shared_from[0] = sharing[0];
        c.decoder->one.shared_from[1] = sharing[1];
    }
    if (status == STATUS_OK) {
        status = decoder_case_act_all(&c, actions, count, text, sizeof text, &error);
    }
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s, %s: %s %s", v->name, c.name, text, error.message);
    }
    decoder_case_free(&c);
}

enum { FROM_D1 = 0, FROM_D3 = 2, FROM_D6 = 5, D8 = 7 };

/* For the steps before d6, whose prompts are fed token by token: prompts from the start and later,
   steps, and back to an earlier position. No draw comes directly before a feed, which
   checks that the generator is unchanged. */
static const struct decoder_action token_by_token[] = {
    FEED(3, 0), DRAW_AT(&drawing, 3), STEP_AT(4), FEED(2, 2), STEP_AT(4), DRAW_AT(&drawing, 1)};

/* All steps of the ladder from `first` on, on a model of each size. */
static void check_sizes(const struct decoder_size *sizes, size_t size_count, size_t batch,
                        const struct decoder_action *actions, size_t count, size_t first) {
    size_t versions;
    const struct decoder_version *v = decoder_ladder(&versions);
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    for (size_t i = 0; i < size_count && !test_has_failed(); i++) {
        struct decoder_net net;
        EXPECT_OK(decoder_net_create(&net, &sizes[i], 7 + i, false, &error));
        for (size_t k = first; k < versions && !test_has_failed(); k++) {
            bool whole = k >= FROM_D6;
            check_version(&net, &v[k], batch, whole ? actions : token_by_token,
                          whole ? count : COUNT(token_by_token), NULL);
        }
        EXPECT_TRUE(decoder_net_intact(&net));
        decoder_net_free(&net);
    }
}

/* Prompts of one token and more, after others, over earlier tokens, and as long as the batch;
   steps after them and back. */
#define TEXT                                                                                   \
    LIST(FEED(9, 0), FEED(1, 9), FEED(2, 10), DRAW_AT(&drawing, 12), STEP_AT(13), FEED(12, 2), \
         STEP_AT(14), DRAW_AT(&drawing, 4))

/* A test of these actions, a LIST(), with these sizes. first: of the steps; batch: most tokens of a
   call */
#define SIZES_TEST(name, first, batch, list, ...)                                \
    C_TEST(ladder, name) {                                                       \
        static const struct decoder_size sizes[] = {__VA_ARGS__};                \
        static const struct decoder_action actions[] = list;                     \
        check_sizes(sizes, COUNT(sizes), batch, actions, COUNT(actions), first); \
    }

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)decoder_ladder(&count);
    EXPECT_INT_EQ(8, count);
}

SIZES_TEST(fp32, FROM_D1, 16, TEXT, {4, 4, 16, 96, 2, 61, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
           {6, 2, 8, 40, 3, 100, 32, NN_F32, NN_ROPE_HALVES, true})

SIZES_TEST(sixteen_bits, FROM_D3, 16, TEXT,
           {4, 4, 16, 96, 2, 61, 32, NN_BF16, NN_ROPE_INTERLEAVED, false},
           {6, 2, 8, 40, 3, 100, 32, NN_F16, NN_ROPE_HALVES, true})

SIZES_TEST(odd_sizes, FROM_D3, 12, TEXT, {1, 1, 2, 1, 1, 1, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
           {3, 1, 10, 37, 2, 53, 32, NN_F16, NN_ROPE_INTERLEAVED, true},
           {7, 7, 10, 19, 1, 301, 32, NN_F32, NN_ROPE_HALVES, false},
           {3, 3, 6, 21, 2, 31, 32, NN_BF16, NN_ROPE_HALVES, false})

/* Heads that lab 07's attention does not support: prompts are fed token by token. */
SIZES_TEST(long_heads, FROM_D6, 16, LIST(FEED(5, 0), DRAW_AT(&drawing, 5)),
           {1, 1, 256, 33, 1, 40, 32, NN_F32, NN_ROPE_INTERLEAVED, false})

/* More pairs of rows than the blocks of a product have in a round, and an odd number of rows. */
SIZES_TEST(many_rows_of_the_classifier, FROM_D6, 4, LIST(FEED(2, 0), DRAW_AT(&drawing, 2)),
           {2, 2, 8, 24, 1, 40001, 8, NN_F32, NN_ROPE_INTERLEAVED, false})

/* Rows of more pieces than a block has threads, in every type. */
SIZES_TEST(long_rows, FROM_D6, 4, LIST(FEED(2, 0), DRAW_AT(&drawing, 2)),
           {2, 1, 16, 2300, 1, 20, 8, NN_F32, NN_ROPE_INTERLEAVED, false},
           {2, 1, 16, 4400, 1, 20, 8, NN_BF16, NN_ROPE_INTERLEAVED, false})

/* Steps on both sides of the limit of a recorded step, and back. */
SIZES_TEST(contexts_of_two_graphs, FROM_D6, 150,
           LIST(FEED(150, 0), FEED(104, 150), DRAW_AT(&drawing, 254), STEP_AT(255),
                DRAW_AT(&drawing, 256), STEP_AT(257), DRAW_AT(&drawing, 100), STEP_AT(101)),
           {2, 1, 16, 24, 1, 40, 300, NN_F32, NN_ROPE_INTERLEAVED, false})

/* ---- d8's own kernel ---- */

/* Whether d8 runs its own kernel for a model, and not d7's. */
static void expect_one_kernel(const struct decoder_net *net, bool wanted) {
    struct decoder_case c;
    struct error error = {0};
    struct rng rng = rng_create(1);
    size_t versions;
    const struct decoder_functions functions = functions_of(&decoder_ladder(&versions)[D8]);
    EXPECT_OK(decoder_case_create(&c, net, &functions, 1, &rng, NULL, false, &error));
    if (c.decoder != NULL && c.decoder->one.supported != (wanted && runs_d8())) {
        TEST_FAIL("%s: %s", c.name, c.decoder->one.supported ? "d8's kernel" : "no kernel of d8");
    }
    decoder_case_free(&c);
}

/* d8 alone, on models that its kernel supports; more queries share a key at later positions. */
static void check_one_kernel(const struct decoder_size *sizes, size_t size_count, size_t batch,
                             const struct decoder_action *actions, size_t count) {
    static const size_t sharing[2] = {6, 10};
    size_t versions;
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    for (size_t i = 0; i < size_count && !test_has_failed(); i++) {
        struct decoder_net net;
        EXPECT_OK(decoder_net_create(&net, &sizes[i], 7 + i, false, &error));
        expect_one_kernel(&net, true);
        check_version(&net, &decoder_ladder(&versions)[D8], batch, actions, count, sharing);
        EXPECT_TRUE(decoder_net_intact(&net));
        decoder_net_free(&net);
    }
}

/* The same of d8's kernel. */
#define ONE_KERNEL_TEST(name, batch, list, ...)                                \
    C_TEST(ladder, name) {                                                     \
        static const struct decoder_size sizes[] = {__VA_ARGS__};              \
        static const struct decoder_action actions[] = list;                   \
        check_one_kernel(sizes, COUNT(sizes), batch, actions, COUNT(actions)); \
    }

/* Each type with teams of one, two and four queries, and two teams that share a key head. A few
   rows of a matrix are few blocks. */
ONE_KERNEL_TEST(one_kernel_types_and_teams, 16,
                LIST(FEED(9, 0), DRAW_AT(&drawing, 9), STEP_AT(10), FEED(3, 11), STEP_AT(5)),
                {4, 4, 8, 16, 2, 21, 32, NN_F32, NN_ROPE_HALVES, true},
                {4, 2, 16, 12, 2, 21, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
                {8, 1, 4, 16, 3, 21, 32, NN_F32, NN_ROPE_HALVES, false},
                {2, 2, 16, 16, 3, 21, 32, NN_F16, NN_ROPE_INTERLEAVED, false},
                {4, 2, 8, 24, 2, 21, 32, NN_F16, NN_ROPE_HALVES, true},
                {4, 1, 16, 16, 2, 21, 32, NN_F16, NN_ROPE_INTERLEAVED, true},
                {3, 3, 16, 16, 2, 21, 32, NN_BF16, NN_ROPE_HALVES, false},
                {2, 1, 32, 8, 3, 21, 32, NN_BF16, NN_ROPE_INTERLEAVED, true},
                {8, 1, 8, 16, 2, 21, 32, NN_BF16, NN_ROPE_INTERLEAVED, false})

/* A split of the context for each 128 keys: on both sides of one split more, and more splits than
   are merged at a time. */
ONE_KERNEL_TEST(one_kernel_splits_of_a_context, 320,
                LIST(FEED(127, 0), STEP_AT(127), STEP_AT(128), FEED(127, 129), STEP_AT(256),
                     FEED(320, 257), DRAW_AT(&drawing, 577), STEP_AT(578)),
                {2, 2, 16, 16, 1, 21, 600, NN_F32, NN_ROPE_HALVES, false},
                {4, 2, 8, 16, 1, 21, 600, NN_F16, NN_ROPE_INTERLEAVED, false},
                {4, 1, 16, 16, 2, 21, 600, NN_BF16, NN_ROPE_INTERLEAVED, false})

/* As many teams as blocks, so each has the whole context: keys alone fill its pipelines several
   times. The longest heads, of which a stage has one or two keys, and shorter ones. */
ONE_KERNEL_TEST(one_kernel_pipelines_of_keys, 200,
                LIST(FEED(200, 0), FEED(103, 200), STEP_AT(303), DRAW_AT(&drawing, 304)),
                {4, 4, 128, 4, 1, 5, 320, NN_F32, NN_ROPE_INTERLEAVED, false},
                {8, 4, 64, 8, 1, 5, 320, NN_F16, NN_ROPE_HALVES, false},
                {8, 2, 128, 8, 1, 5, 320, NN_BF16, NN_ROPE_INTERLEAVED, false})

/* Prefetches held back behind the keys of a split: layers of more than the pipelines hold. */
ONE_KERNEL_TEST(one_kernel_held_back_behind_keys, 160,
                LIST(FEED(160, 0), STEP_AT(160), DRAW_AT(&drawing, 161)),
                {4, 2, 128, 8, 1, 5, 170, NN_F32, NN_ROPE_HALVES, false},
                {8, 4, 128, 16, 1, 5, 170, NN_BF16, NN_ROPE_HALVES, false})

/* Rows of whole slices and of others, of more slices than a block has warps, and inputs of more
   values than its threads read at a time. */
ONE_KERNEL_TEST(one_kernel_long_rows, 4, LIST(FEED(2, 0), DRAW_AT(&drawing, 2)),
                {2, 1, 8, 6204, 1, 5, 8, NN_F32, NN_ROPE_INTERLEAVED, false},
                {4, 2, 128, 8, 1, 5, 8, NN_F32, NN_ROPE_INTERLEAVED, false},
                {2, 1, 8, 2560, 1, 5, 8, NN_F32, NN_ROPE_HALVES, false},
                {1, 1, 16, 12296, 1, 5, 8, NN_F16, NN_ROPE_HALVES, false},
                {8, 2, 128, 8, 1, 5, 8, NN_BF16, NN_ROPE_HALVES, false},
                {4, 1, 8, 3072, 1, 5, 8, NN_BF16, NN_ROPE_INTERLEAVED, false})

/* A residual stream of more values than a block reads at a time. */
ONE_KERNEL_TEST(one_kernel_wide, 4, LIST(FEED(1, 0), DRAW_AT(&drawing, 1)),
                {40, 1, 128, 12, 1, 5, 8, NN_F32, NN_ROPE_INTERLEAVED, false})

/* Sizes that its kernel does not support, and d7's do. */
C_TEST(ladder, one_kernel_is_not_for_all) {
    static const struct decoder_size sizes[] = {
        {6, 2, 8, 40, 1, 10, 32, NN_F32, NN_ROPE_HALVES, false},      /* three queries a key */
        {4, 4, 12, 40, 1, 10, 32, NN_F32, NN_ROPE_HALVES, false},     /* heads of three pieces */
        {4, 4, 16, 42, 1, 10, 32, NN_F32, NN_ROPE_HALVES, false},     /* rows of 168 bytes */
        {8, 8, 8, 4, 1, 10, 32, NN_F32, NN_ROPE_HALVES, false},       /* more teams than blocks */
        {1, 1, 8, 50000, 1, 10, 32, NN_BF16, NN_ROPE_HALVES, false}}; /* no room for an input */
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct decoder_net net;
        EXPECT_OK(decoder_net_create(&net, &sizes[i], 3, true, &error));
        expect_one_kernel(&net, false);
        decoder_net_free(&net);
    }
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

/* A layer is two or three launches of attention and three products; sampling is two, embedding and
   classifier are one each. Before d5 a step waits for its logits, so it cannot be recorded. */
C_TEST(ladder, launches_a_token) {
    static const struct decoder_size size = {
        4, 2, 16, 96, 3, 61, 32, NN_BF16, NN_ROPE_INTERLEAVED, false};
    size_t versions;
    const struct decoder_version *v = decoder_ladder(&versions);
    struct error error = {0};
    struct decoder_net net;
    device_stream stream = NULL;
    ASSERT_OK(device_open(&error));
    EXPECT_OK(decoder_net_create(&net, &size, 3, false, &error));
    EXPECT_OK(device_stream_create(&stream, &error));
    for (size_t k = 4; k < versions && !test_has_failed(); k++) {
        size_t launches = 0;
        struct decoder_case c;
        struct rng rng = rng_create(1);
        const struct decoder_functions functions = functions_of(&v[k]);
        EXPECT_OK(decoder_case_create(&c, &net, &functions, 8, &rng, stream, false, &error));
        EXPECT_OK(count_steps(&c, &v[k], &launches, &error));
        if (k == D8 && runs_d8()) {
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
