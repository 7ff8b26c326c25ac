/*
 * Lab 10, parity: a decoder against the CPU's reference. Logits after a prompt at once and in
 * pieces, and after every step; the tokens that steps draw; texts that go back; and models end to
 * end.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/10_llama2_decoder/remote.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/small_llama2.h"
#include "grader/harness/watchdog.h"
#include "labs/10_llama2_decoder/problem/actions.h"
#include "labs/10_llama2_decoder/problem/case.h"
#include "labs/10_llama2_decoder/problem/draw.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATIENCE = 150 /* seconds */ };

static const struct sampling greedy = {1, 0.0f, 0.9f, 0};

/* Reports the result of a text's actions. */
static void report(const struct decoder_case *c, enum status status, const char *text,
                   const struct error *error) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c->name, error_text(error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s: %s", c->name, text);
    } else if (!decoder_net_intact(c->net)) {
        TEST_FAIL("%s: the decoder changed the model's weights", c->name);
    }
}

/* A text on the subject's decoder, in the worker. */
static enum status create_case(struct decoder_case *c, const struct decoder_net *net, size_t batch,
                               struct fixture *fixture, bool guarded, struct error *error) {
    const struct decoder_functions functions = remote_decoder();
    enum status status = decoder_case_create(c, net, &functions, batch, &fixture->rng,
                                             fixture->stream, guarded, error);
    c->steps = remote_decoder_steps;
    return status;
}

static void run_actions(const struct decoder_net *net, size_t batch,
                        const struct decoder_action *actions, size_t count,
                        struct fixture *fixture) {
    struct decoder_case c;
    struct error error = {0};
    char text[500] = "";
    enum status status = create_case(&c, net, batch, fixture, fixture_has_guards(fixture), &error);
    grader_watch(c.name, PATIENCE);
    if (status == STATUS_OK) {
        status = decoder_case_act_all(&c, actions, count, text, sizeof text, &error);
    }
    grader_watch("", 0);
    report(&c, status, text, &error);
    decoder_case_free(&c);
}

/* A model of each size, and the same actions on its text. */
static void run_sizes(const struct decoder_size *sizes, size_t count, size_t batch,
                      const struct decoder_action *actions, size_t action_count) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, 0);
    for (size_t i = 0; i < count && open && !test_has_failed(); i++) {
        struct decoder_net net;
        struct error error = {0};
        enum status status = decoder_net_create(&net, &sizes[i], grader_seed(), false, &error);
        if (status != STATUS_OK) {
            TEST_FAIL("%s", error_text(&error, status));
        } else {
            run_actions(&net, batch < sizes[i].T ? batch : sizes[i].T, actions, action_count,
                        &fixture);
        }
        decoder_net_free(&net);
    }
    fixture_close(&fixture);
}

#define LIST(...) \
    { __VA_ARGS__ }

/* A test of these actions, a LIST(), with these sizes. batch: most tokens of a call */
#define SIZES_TEST(name, batch, list, ...)                              \
    C_TEST(parity, name) {                                              \
        static const struct decoder_size sizes[] = {__VA_ARGS__};       \
        static const struct decoder_action actions[] = list;            \
        run_sizes(sizes, COUNT(sizes), batch, actions, COUNT(actions)); \
    }

/* NH, KVH, HS, hidden, L, V, T. */
#define SMALL \
    { 4, 4, 16, 96, 2, 61, 48, NN_F32, NN_ROPE_INTERLEAVED, false }
#define GROUPED \
    { 6, 2, 8, 40, 3, 100, 48, NN_F32, NN_ROPE_INTERLEAVED, false }

/* ---- Prompts ---- */

SIZES_TEST(one_token, 1, LIST(FEED(1, 0), FEED(1, 1), FEED(1, 2)), SMALL)

SIZES_TEST(prompt_at_once, 48, LIST(FEED(37, 0)), SMALL, GROUPED)

SIZES_TEST(prompt_in_pieces, 16,
           LIST(FEED(7, 0), FEED_NEXT(16), FEED_NEXT(1), FEED_NEXT(12), FEED_NEXT(2)), SMALL,
           GROUPED)

/* ---- Steps ---- */

SIZES_TEST(steps, 8, LIST(FEED(3, 0), STEP, STEP, STEP, STEP, STEP), SMALL, GROUPED)

SIZES_TEST(steps_that_nobody_waits_for, 8,
           LIST(FEED(5, 0), STEPS_AT_ONCE(8), STEP, FEED_NEXT(3), STEPS_AT_ONCE(8)), SMALL, GROUPED)

SIZES_TEST(steps_to_the_end_of_the_context, 9,
           LIST(FEED(1, 0), STEP, STEP, STEP, STEP, STEP, STEP, STEP, STEP),
           {2, 1, 8, 24, 2, 31, 9, NN_F32, NN_ROPE_INTERLEAVED, false})

SIZES_TEST(prompts_between_steps, 8,
           LIST(FEED(5, 0), STEP, STEP, FEED_NEXT(6), STEP, FEED_NEXT(1), STEP, STEP), SMALL)

/* Tokens fed at or after a position are forgotten; those before it are not. */
SIZES_TEST(back_to_an_earlier_position, 16,
           LIST(FEED(10, 0), STEP, STEP, FEED(2, 4), STEP, STEP, STEP_AT(3), STEP, FEED(9, 0),
                STEP),
           GROUPED)

C_TEST(parity, drawn_tokens) {
    static const struct sampling hot = {1, 1.0f, 0.0f, 0}, nucleus = {1, 0.8f, 0.9f, 0},
                                 narrow = {1, 1.3f, 0.3f, 0}, five = {1, 1.0f, 1.0f, 5},
                                 both = {1, 0.7f, 0.6f, 20};
    static const struct decoder_size sizes[] = {
        SMALL, {2, 2, 8, 24, 1, 1500, 48, NN_F32, NN_ROPE_INTERLEAVED, false}};
    static const struct decoder_action actions[] = {
        FEED(2, 0),  DRAW(&hot), DRAW(&nucleus), DRAW(&narrow), DRAW(&five),
        DRAW(&both), STEP,       DRAW(&nucleus), DRAW(&narrow), DRAW(&nucleus)};
    run_sizes(sizes, COUNT(sizes), 4, actions, COUNT(actions));
}

/* ---- Drawing from the grader's logits ---- */

enum { DRAW_V = 200, TIES_BEST = 5 /* the lowest of several */ };

static void fill_ties(float *logits) {
    for (int i = 0; i < DRAW_V; i++) {
        logits[i] = i % 7 == TIES_BEST ? 3.0f : (float)(i % 5) * 0.5f;
    }
}

/* Two tokens have almost all of the mass; top_p excludes the others. */
static void fill_peaks(float *logits) {
    for (int i = 0; i < DRAW_V; i++) {
        logits[i] = i == 150 ? 8.0f : i == 31 ? 7.5f : -0.01f * (float)i;
    }
}

/* Feeds a token after which the best one is not the ties' best: a decoder that draws from logits of
   its own, instead of those in io, draws another token. */
static enum status feed_another_best(struct decoder_case *c, char *text, size_t size,
                                     struct error *error) {
    char unused[300];
    bool same = true;
    for (int i = 0; i < 100 && same && text[0] == '\0'; i++) {
        TRY(decoder_case_feed(c, 1, 0, text, size, error));
        same = decoder_token_allowed(c->got, DRAW_V, &greedy, TIES_BEST, unused, sizeof unused);
    }
    return STATUS_OK;
}

static enum status draw_often(struct decoder_case *c, char *text, size_t size,
                              struct error *error) {
    static const struct sampling list[] = {
        {1, 0.0f, 0.9f, 0}, {1, 1.0f, 0.5f, 0}, {1, 1.0f, 0.9f, 3}, {1, 2.0f, 0.0f, 2},
        {1, 3.0f, 0.2f, 0}, {1, 0.0f, 0.0f, 1}, {1, 1.0f, 0.9f, 0}};
    float logits[DRAW_V];
    TRY(feed_another_best(c, text, size, error));
    for (size_t i = 0; i < 2 * COUNT(list) && text[0] == '\0'; i++) {
        struct sampling how = list[i / 2];
        (i % 2 == 0 ? fill_ties : fill_peaks)(logits);
        enum status status = decoder_telling_state(logits, DRAW_V, &how, c->rng);
        if (status != STATUS_OK) {
            return error_set(error, status, "the grader is out of memory");
        }
        TRY(decoder_case_step(c, &how, logits, text, size, error));
    }
    return STATUS_OK;
}

static enum status run_draws(struct decoder_net *net, struct decoder_case *c,
                             struct fixture *fixture, char *text, size_t text_size,
                             struct error *error) {
    static const struct decoder_size size = {
        1, 1, 4, 8, 1, DRAW_V, 48, NN_F32, NN_ROPE_INTERLEAVED, false};
    TRY(decoder_net_create(net, &size, grader_seed(), false, error));
    TRY(create_case(c, net, 2, fixture, true, error));
    grader_watch("draws from given logits", PATIENCE);
    return draw_often(c, text, text_size, error);
}

FIXTURE_TEST(parity, draws_from_the_logits_that_are_there, 0) {
    struct decoder_net net = {0};
    struct decoder_case c = {0};
    struct error error = {0};
    char text[500] = "";
    enum status status = run_draws(&net, &c, fixture, text, sizeof text, &error);
    grader_watch("", 0);
    report(&c, status, text, &error);
    decoder_case_free(&c);
    decoder_net_free(&net);
}

/* ---- Sizes and types ---- */

#define PROMPT_AND_STEPS LIST(FEED(9, 0), FEED_NEXT(4), STEP, STEP)

SIZES_TEST(types, 16, PROMPT_AND_STEPS,
           {4, 4, 16, 96, 2, 61, 32, NN_BF16, NN_ROPE_INTERLEAVED, false},
           {4, 2, 16, 96, 2, 61, 32, NN_F16, NN_ROPE_HALVES, false},
           {6, 2, 8, 40, 3, 100, 32, NN_BF16, NN_ROPE_HALVES, true},
           {3, 1, 10, 37, 2, 53, 32, NN_F16, NN_ROPE_INTERLEAVED, true},
           {3, 3, 10, 37, 1, 53, 32, NN_BF16, NN_ROPE_INTERLEAVED, false})

SIZES_TEST(rope_in_halves_and_own_classifier, 16, PROMPT_AND_STEPS,
           {4, 4, 16, 96, 2, 61, 32, NN_F32, NN_ROPE_HALVES, false},
           {4, 2, 8, 40, 2, 77, 32, NN_F32, NN_ROPE_HALVES, true},
           {2, 1, 12, 50, 1, 19, 32, NN_F32, NN_ROPE_INTERLEAVED, true})

SIZES_TEST(odd_sizes, 16, PROMPT_AND_STEPS,
           {1, 1, 2, 1, 1, 1, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
           {3, 1, 2, 5, 2, 2, 32, NN_F32, NN_ROPE_HALVES, false},
           {5, 5, 6, 37, 2, 7, 32, NN_F32, NN_ROPE_INTERLEAVED, true},
           {7, 7, 10, 19, 1, 301, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
           {13, 1, 2, 67, 1, 33, 32, NN_F32, NN_ROPE_INTERLEAVED, false})

SIZES_TEST(long_heads, 16, PROMPT_AND_STEPS,
           {1, 1, 256, 33, 1, 40, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
           {2, 1, 130, 24, 2, 40, 32, NN_F32, NN_ROPE_HALVES, false},
           {1, 1, 256, 24, 3, 40, 32, NN_BF16, NN_ROPE_INTERLEAVED, false},
           {2, 1, 128, 24, 1, 40, 32, NN_BF16, NN_ROPE_HALVES, false})

SIZES_TEST(long_context, 180,
           LIST(FEED(180, 0), FEED_NEXT(80), STEP, STEP, FEED_NEXT(30), STEP, FEED_NEXT(180),
                FEED_NEXT(70), STEP),
           {2, 1, 16, 24, 2, 40, 700, NN_F32, NN_ROPE_INTERLEAVED, false})

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, 0) {
    for (int i = 0; i < 5 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        struct decoder_net net;
        struct error error = {0};
        size_t KVH = 1 + rng_below(rng, 3), NH = KVH * (1 + rng_below(rng, 3));
        size_t HS = 2 * (1 + rng_below(rng, 9));
        /* Few channels may almost cancel each other, and leave rounding errors. */
        enum nn_dtype dtype = NH * HS < 12 ? NN_F32 : (enum nn_dtype)rng_below(rng, 3);
        const struct decoder_size size = {NH,
                                          KVH,
                                          HS,
                                          1 + rng_below(rng, 90),
                                          1 + rng_below(rng, 3),
                                          1 + rng_below(rng, 200),
                                          40,
                                          dtype,
                                          (enum nn_rope_layout)rng_below(rng, 2),
                                          rng_below(rng, 2) == 1};
        const struct decoder_action actions[] = {FEED(1 + (int)rng_below(rng, 16), 0),
                                                 FEED_NEXT(1 + (int)rng_below(rng, 16)), STEP,
                                                 STEP};
        enum status status = decoder_net_create(&net, &size, grader_seed(), false, &error);
        if (status != STATUS_OK) {
            TEST_FAIL("%s", error_text(&error, status));
        } else {
            run_actions(&net, 16, actions, COUNT(actions), fixture);
        }
        decoder_net_free(&net);
    }
}

C_TEST(parity, large_sizes_on_a_gpu) {
    static const struct decoder_size sizes[] = {
        {12, 12, 64, 2048, 2, 1000, 700, NN_F32, NN_ROPE_INTERLEAVED, false},
        {32, 4, 64, 5632, 1, 1000, 700, NN_BF16, NN_ROPE_INTERLEAVED, false},
        {16, 4, 128, 5504, 1, 1000, 700, NN_F16, NN_ROPE_HALVES, true}};
    static const struct decoder_action actions[] = {FEED(512, 0), STEP, FEED_NEXT(67), STEP, STEP};
    struct grader_gpu gpu;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    if (gpu.modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    run_sizes(sizes, COUNT(sizes), 512, actions, COUNT(actions));
}

/* ---- Several decoders ---- */

enum { AT_ONCE = 3 };

static enum status create_several(struct decoder_net nets[AT_ONCE],
                                  struct decoder_case cases[AT_ONCE], struct fixture *fixture,
                                  struct error *error) {
    static const struct decoder_size sizes[AT_ONCE] = {
        SMALL, GROUPED, {4, 4, 16, 96, 2, 61, 20, NN_F32, NN_ROPE_HALVES, false}};
    for (int i = 0; i < AT_ONCE; i++) {
        TRY(decoder_net_create(&nets[i], &sizes[i], grader_seed() + (uint64_t)i, false, error));
        TRY(create_case(&cases[i], &nets[i], 8, fixture, true, error));
    }
    return STATUS_OK;
}

/* Interleaves the decoders' actions. */
static enum status take_turns(struct decoder_case cases[AT_ONCE], char *text, size_t size,
                              struct error *error) {
    static const struct decoder_action actions[] = {FEED(6, 0), STEP, FEED_NEXT(3), STEP};
    for (size_t i = 0; i < COUNT(actions); i++) {
        for (int k = 0; k < AT_ONCE && text[0] == '\0'; k++) {
            TRY(decoder_case_act(&cases[k], &actions[i], text, size, error));
        }
    }
    return STATUS_OK;
}

FIXTURE_TEST(parity, several_decoders, 0) {
    struct decoder_net nets[AT_ONCE] = {0};
    struct decoder_case cases[AT_ONCE] = {0};
    struct error error = {0};
    char text[500] = "";
    enum status status = create_several(nets, cases, fixture, &error);
    grader_watch("several decoders at once", PATIENCE);
    if (status == STATUS_OK) {
        status = take_turns(cases, text, sizeof text, &error);
    }
    grader_watch("", 0);
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("several decoders at once: %s",
                  status != STATUS_OK ? error_text(&error, status) : text);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        decoder_case_free(&cases[i]);
        decoder_net_free(&nets[i]);
    }
}

/* ---- The model ---- */

static void check_model(struct small_llama2 *l, const char *whose) {
    if (remote_small_llama2(l, "a small Llama2 with your decoder", PATIENCE)) {
        grader_check_logits(l->got, l->want, SMALL_LLAMA2_V, whose);
    }
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    check_model(&l, "your decoder");
}

/* The engine runs these operator by operator. */
C_TEST(parity, heads_that_lab_09_does_not_take) {
    struct small_llama2 l = small_llama2();
    l.config.NH = l.config.KVH = 1;
    l.config.HS = l.config.C = 258;
    l.config.hidden = 40;
    check_model(&l, "heads of 258 channels");
}
