/*
 * Lab 14, parity: the subject's two operators against results in double, token by token over four
 * times the cache's length, and two small models on them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/14_endless_text/calls.h"
#include "grader/14_endless_text/remote.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "labs/14_endless_text/problem/norms.h"
#include "labs/14_endless_text/problem/text.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void report(const char *name, enum status status, const char *text,
                   const struct error *error) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", name, error_text(error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s: %s", name, text);
    }
}

/* ---- endless_attention() ---- */

/* A text, and a graph of its call in the worker, if it is fed by one. */
struct fed {
    struct endless_text text;
    bool recorded;
    void *graph;
};

static enum status call_once(struct fed *f, struct fixture *fixture, struct error *error) {
    if (!f->recorded) {
        TRY(remote_endless_attention(&f->text.call, fixture->workspace, fixture->stream, error));
        return device_synchronize(fixture->stream, error);
    }
    struct endless_attention_call call = {f->text.call, fixture->workspace, fixture->stream, NULL};
    if (f->graph == NULL) {
        TRY(remote_call("endless_record", &call, sizeof call, error));
        f->graph = call.graph;
    }
    struct endless_launch_call launch = {f->graph, fixture->stream};
    return remote_call("endless_launch", &launch, sizeof launch, error);
}

static enum status clear_workspace(struct fixture *fixture, struct error *error) {
    return device_set(fixture->workspace, 0, ENDLESS_WORKSPACE_BYTES, fixture->stream, error);
}

static enum status feed(struct fed *f, struct fixture *fixture, bool check, char *text, size_t size,
                        struct error *error) {
    TRY(endless_text_next(&f->text, error));
    grader_watch(f->text.name, PATIENCE);
    enum status status = call_once(f, fixture, error);
    grader_watch("", 0);
    TRY(status);
    return check ? endless_text_check(&f->text, text, size, error) : STATUS_OK;
}

/* Whether a new text is right up to a token if every call finds zeros in the workspace. */
static bool right_with_zeros(struct fed *f, struct fixture *fixture, size_t token) {
    struct error error = {0};
    char text[400] = "";
    bool right = true;
    endless_text_restart(&f->text);
    while (right && f->text.position <= token) {
        right = clear_workspace(fixture, &error) == STATUS_OK &&
                feed(f, fixture, true, text, sizeof text, &error) == STATUS_OK && text[0] == '\0';
    }
    return right;
}

static void feed_one(struct fed *f, struct fixture *fixture, bool check) {
    struct error error = {0};
    char text[800] = "", name[300];
    size_t token = f->text.position;
    snprintf(name, sizeof name, "%s%s, token %zu", f->text.name,
             f->recorded ? ", a recorded call" : "", token);
    enum status status = feed(f, fixture, check, text, sizeof text / 2, &error);
    size_t length = strlen(text);
    if (length > 0 && right_with_zeros(f, fixture, token)) {
        snprintf(text + length, sizeof text - length,
                 "; with zeros in the workspace before each call it is right: what does a call "
                 "leave there that the next one does not expect? A counter must be 0 again");
    }
    report(name, status, text, &error);
}

/*
 * A text of four times the cache, checked at every token, and the beginning of another one in the
 * same memory; or, where that takes long, a little more than the cache, checked now and then.
 */
static void run_text(const struct endless_text_spec *spec, size_t every, bool recorded,
                     struct fixture *fixture) {
    struct fed f = {.recorded = recorded};
    struct error error = {0};
    size_t rows = spec->sinks + spec->window, tokens = every > 1 ? rows + rows / 4 : 4 * rows;
    bool guarded = fixture_has_guards(fixture);
    enum status status =
        endless_text_create(&f.text, spec, tokens, rng_u64(&fixture->rng), guarded, &error);
    if (status == STATUS_OK) {
        status = clear_workspace(fixture, &error);
    }
    report(f.text.name, status, "", &error);
    for (size_t i = 0; i < tokens && !test_has_failed(); i++) {
        feed_one(&f, fixture, i % every == 0 || i + 1 == tokens);
    }
    endless_text_restart(&f.text);
    for (size_t i = 0; i < 2 && i < tokens && every == 1 && !test_has_failed(); i++) {
        feed_one(&f, fixture, true);
    }
    endless_text_free(&f.text);
}

static void run_texts(const struct endless_text_spec *list, size_t count, size_t every,
                      bool recorded) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, ENDLESS_WORKSPACE_BYTES);
    for (size_t i = 0; i < count && open && !test_has_failed(); i++) {
        run_text(&list[i], every, recorded, &fixture);
    }
    fixture_close(&fixture);
}

/* A test of these texts, checked at each token or every so many. */
#define TEXT_TEST(name, every, recorded, ...)                         \
    C_TEST(parity, name) {                                            \
        static const struct endless_text_spec list[] = {__VA_ARGS__}; \
        run_texts(list, COUNT(list), every, recorded);                \
    }

TEXT_TEST(sinks_and_window, 1, false,
          {.NH = 2, .KVH = 2, .HS = 16, .rotary = 16, .sinks = 4, .window = 6},
          {.NH = 2, .KVH = 2, .HS = 16, .rotary = 16, .sinks = 4, .window = 6, .dtype = NN_F16},
          {.NH = 2, .KVH = 2, .HS = 16, .rotary = 16, .sinks = 4, .window = 6, .dtype = NN_BF16})

/* No sinks: a ring and nothing else. A window of one token: the sinks and the token itself. */
TEXT_TEST(edges_of_the_cache, 1, false,
          {.NH = 1, .KVH = 1, .HS = 8, .rotary = 8, .sinks = 0, .window = 5},
          {.NH = 1, .KVH = 1, .HS = 8, .rotary = 8, .sinks = 3, .window = 1},
          {.NH = 1, .KVH = 1, .HS = 8, .rotary = 8, .sinks = 0, .window = 1})

TEXT_TEST(
    partial_rotary, 1, false, {.NH = 2, .KVH = 2, .HS = 20, .rotary = 4, .sinks = 2, .window = 5},
    {.NH = 2, .KVH = 2, .HS = 20, .rotary = 10, .sinks = 2, .window = 5, .layout = NN_ROPE_HALVES},
    {.NH = 2, .KVH = 1, .HS = 7, .rotary = 0, .sinks = 2, .window = 5, .dtype = NN_F16})

TEXT_TEST(
    grouped_heads, 1, false,
    {.NH = 6, .KVH = 2, .HS = 8, .rotary = 8, .sinks = 2, .window = 4, .layout = NN_ROPE_HALVES},
    {.NH = 5, .KVH = 1, .HS = 24, .rotary = 24, .sinks = 2, .window = 4, .dtype = NN_BF16})

TEXT_TEST(
    longest_heads, 1, false,
    {.NH = 2, .KVH = 1, .HS = ENDLESS_MAX_HS, .rotary = ENDLESS_MAX_HS, .sinks = 1, .window = 2},
    {.NH = 1,
     .KVH = 1,
     .HS = ENDLESS_MAX_HS - 1,
     .rotary = 64,
     .sinks = 1,
     .window = 2,
     .dtype = NN_BF16})

TEXT_TEST(odd_pointers, 1, false,
          {.NH = 2, .KVH = 2, .HS = 16, .rotary = 16, .sinks = 2, .window = 3, .skew = 1},
          {.NH = 2,
           .KVH = 1,
           .HS = 64,
           .rotary = 16,
           .sinks = 2,
           .window = 3,
           .skew = 3,
           .dtype = NN_F16})

TEXT_TEST(a_call_recorded_once, 1, true,
          {.NH = 4, .KVH = 2, .HS = 16, .rotary = 16, .sinks = 3, .window = 6})

/* Longer than a warp or a block has keys. */
TEXT_TEST(long_windows, 43, false,
          {.NH = 2, .KVH = 1, .HS = 32, .rotary = 32, .sinks = 4, .window = 140},
          {.NH = 1,
           .KVH = 1,
           .HS = 64,
           .rotary = 16,
           .sinks = 1,
           .window = 129,
           .dtype = NN_BF16,
           .layout = NN_ROPE_HALVES})

/* e^score overflows unless the running max is subtracted, in the sinks as in the window. */
TEXT_TEST(large_scores, 1, false,
          {.NH = 1, .KVH = 1, .HS = 32, .rotary = 32, .sinks = 3, .window = 9, .loudness = 300.0f})

FIXTURE_TEST(parity, random_texts, ENDLESS_WORKSPACE_BYTES) {
    for (int i = 0; i < 5 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        size_t KVH = 1 + rng_below(rng, 3), HS = 1 + rng_below(rng, 48);
        const struct endless_text_spec spec = {.NH = KVH * (1 + rng_below(rng, 4)),
                                               .KVH = KVH,
                                               .HS = HS,
                                               .rotary = 2 * rng_below(rng, HS / 2 + 1),
                                               .sinks = rng_below(rng, 6),
                                               .window = 1 + rng_below(rng, 9),
                                               .dtype = (enum nn_dtype)(i % 3),
                                               .layout = (enum nn_rope_layout)rng_below(rng, 2),
                                               .skew = rng_below(rng, 3) == 0 ? 1 : 0};
        run_text(&spec, 1, rng_below(rng, 2) == 0, fixture);
    }
}

C_TEST(parity, large_caches_on_a_gpu) {
    static const struct endless_text_spec list[] = {
        {.NH = 32,
         .KVH = 32,
         .HS = 80,
         .rotary = 20,
         .sinks = 4,
         .window = 1020,
         .dtype = NN_BF16,
         .layout = NN_ROPE_HALVES},
        {.NH = 32, .KVH = 4, .HS = 128, .rotary = 128, .sinks = 4, .window = 2000},
    };
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        if (gpu.modelled) {
            TEST_SKIP("large sizes are for a GPU; this is simt");
        }
        run_texts(list, COUNT(list), 307, false);
    }
}

/* ---- endless_add_norms() ---- */

static enum status run_and_check_norms(struct endless_norms *n,
                                       const struct endless_norms_spec *spec,
                                       struct fixture *fixture, char *text, size_t size,
                                       struct error *error) {
    TRY(endless_norms_create(n, spec, &fixture->rng, fixture_has_guards(fixture), error));
    grader_watch(n->name, PATIENCE);
    enum status status = remote_endless_add_norms(&n->call, fixture->stream, error);
    if (status == STATUS_OK) {
        status = device_synchronize(fixture->stream, error);
    }
    grader_watch("", 0);
    TRY(status);
    return endless_norms_check(n, text, size, error);
}

static void run_norms(const struct endless_norms_spec *list, size_t count) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, 0);
    for (size_t i = 0; i < count && open && !test_has_failed(); i++) {
        struct endless_norms n;
        struct error error = {0};
        char text[400] = "";
        enum status status = run_and_check_norms(&n, &list[i], &fixture, text, sizeof text, &error);
        report(n.name, status, text, &error);
        endless_norms_free(&n);
    }
    fixture_close(&fixture);
}

#define NORMS_TEST(name, ...)                                          \
    C_TEST(parity, name) {                                             \
        static const struct endless_norms_spec list[] = {__VA_ARGS__}; \
        run_norms(list, COUNT(list));                                  \
    }

NORMS_TEST(one_norm, {.C = 64, .count = 1, .addends = 1},
           {.C = 64, .count = 1, .layernorm = true, .bias = true, .addends = 1},
           {.C = 768, .count = 1, .layernorm = true, .addends = 3},
           {.C = 2560, .count = 1, .addends = 2})

NORMS_TEST(two_norms, {.C = 64, .count = 2, .layernorm = true, .bias = true, .addends = 3},
           {.C = 1023, .count = 2, .addends = 3},
           {.C = 4096, .count = 2, .layernorm = true, .bias = true, .addends = 3})

NORMS_TEST(nothing_to_add, {.C = 100, .count = 1},
           {.C = 48, .count = 2, .layernorm = true, .bias = true})

NORMS_TEST(norms_of_odd_sizes, {.C = 1, .count = 1, .addends = 1},
           {.C = 1, .count = 2, .layernorm = true, .bias = true, .addends = 3},
           {.C = 33, .count = 2, .layernorm = true, .bias = true, .addends = 3},
           {.C = 257, .count = 1, .addends = 2, .bias = true},
           {.C = 20001, .count = 2, .layernorm = true, .bias = true, .addends = 3})

NORMS_TEST(norms_with_odd_pointers, {.C = 64, .count = 2, .addends = 3, .skew = 1},
           {.C = 128, .count = 2, .layernorm = true, .bias = true, .addends = 3, .skew = 2})

/* mean(x^2) - mean^2 loses the variance here. */
NORMS_TEST(far_from_zero,
           {.C = 512, .count = 2, .layernorm = true, .bias = true, .addends = 3, .mean = 300.0f},
           {.C = 512, .count = 2, .layernorm = true, .bias = true, .addends = 3, .mean = 3000.0f},
           {.C = 512, .count = 2, .layernorm = true, .bias = true, .addends = 3, .mean = 10000.0f})

FIXTURE_TEST(parity, random_norms, 0) {
    for (int i = 0; i < 8 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        struct endless_norms n;
        struct error error = {0};
        char text[400] = "";
        const struct endless_norms_spec spec = {.C = 1 + rng_below(rng, 3000),
                                                .count = 1 + rng_below(rng, 2),
                                                .layernorm = rng_below(rng, 2) == 0,
                                                .bias = rng_below(rng, 2) == 0,
                                                .addends = (int)rng_below(rng, 4),
                                                .skew = rng_below(rng, 3) == 0 ? 1 : 0};
        enum status status = run_and_check_norms(&n, &spec, fixture, text, sizeof text, &error);
        report(n.name, status, text, &error);
        endless_norms_free(&n);
    }
}

/* ---- Wrong calls ---- */

C_TEST(parity, wrong_calls_are_refused) {
    struct grader_gpu gpu;
    struct error error = {0};
    const struct endless_attention good = {
        .NH = 2, .KVH = 2, .HS = 4, .rotary = 4, .sinks = 1, .window = 3};
    struct endless_attention wide = good, odd = good, heads = good, none = good, many = good;
    wide.HS = ENDLESS_MAX_HS + 1;
    odd.rotary = 3;
    heads.KVH = 0;
    none.window = 0;
    many.sinks = ENDLESS_MAX_SCORES;
    const struct endless_attention *const bad[] = {&wide, &odd, &heads, &none, &many};
    const struct endless_add_norms three = {.C = 8, .count = 3};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        enum status status = remote_endless_attention(bad[i], NULL, NULL, &error);
        if (status != STATUS_INVALID_ARGUMENT) {
            TEST_FAIL("endless_attention, HS %zu, KVH %zu, rotary %zu, %zu sinks, window %zu: must "
                      "be refused with STATUS_INVALID_ARGUMENT, got %s; endless_attention_check() "
                      "does that",
                      bad[i]->HS, bad[i]->KVH, bad[i]->rotary, bad[i]->sinks, bad[i]->window,
                      status_name(status));
        }
    }
    enum status status = remote_endless_add_norms(&three, NULL, &error);
    if (status != STATUS_INVALID_ARGUMENT) {
        TEST_FAIL(
            "endless_add_norms with 3 norms: must be refused with STATUS_INVALID_ARGUMENT, got "
            "%s; endless_add_norms_check() does that",
            status_name(status));
    }
    EXPECT_DONE(device_synchronize(NULL, &error), &error);
}

/* ---- Models ---- */

enum { MOST_V = 64 };

/* A model, its decoder in the worker, and the logits of a token. */
struct decoded {
    struct endless_case c;
    void *decoder;
    float *d_logits;
    float got[MOST_V];
};

static enum status decoded_open(struct decoded *d, const struct endless_model *shape, bool biases,
                                size_t tokens, uint64_t seed, struct error *error) {
    TRY(endless_case_create(&d->c, shape, biases, tokens, seed, error));
    TRY(remote_endless_open(&d->decoder, &d->c, error));
    return device_alloc((void **)&d->d_logits, MOST_V * sizeof *d->d_logits, error);
}

/* Every other token launches its kernels one by one: simt does not look at dependent launches in
   graphs. */
static enum status decode_one(struct decoded *d, int32_t token, struct error *error) {
    struct endless_feed_call call = {.decoder = d->decoder,
                                     .singly = d->c.position % 2 == 1,
                                     .tokens = {token},
                                     .count = 1,
                                     .position = d->c.position,
                                     .logits = d->d_logits,
                                     .V = d->c.model.V};
    grader_watch("a small model, token by token", PATIENCE);
    enum status status = remote_call("endless_feed", &call, sizeof call, error);
    grader_watch("", 0);
    TRY(status);
    endless_case_next(&d->c, token);
    return device_read(d->got, d->d_logits, d->c.model.V * sizeof *d->got, NULL, error);
}

static void check_logits(const struct decoded *d, const char *what) {
    double allowed = endless_case_tolerance(&d->c);
    for (size_t i = 0; i < d->c.model.V; i++) {
        double difference = fabs((double)d->got[i] - (double)d->c.want[i]);
        if (!(difference <= allowed)) {
            TEST_FAIL(
                "%s, token %zu: logit %zu: got %.9g, want %.9g, difference %.3g, tolerance %.3g",
                what, d->c.position - 1, i, (double)d->got[i], (double)d->c.want[i], difference,
                allowed);
        }
    }
}

/* The logits of every token of a text of four times the cache. */
static void run_model(const struct endless_model *shape, bool biases, const char *what) {
    struct grader_gpu gpu;
    struct decoded d = {0};
    struct error error = {0};
    struct rng rng = grader_rng();
    size_t tokens = 4 * (shape->sinks + shape->window);
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    enum status status = decoded_open(&d, shape, biases, tokens, rng_u64(&rng), &error);
    for (size_t i = 0; i < tokens && status == STATUS_OK && !test_has_failed(); i++) {
        status = decode_one(&d, (int32_t)rng_below(&rng, shape->V), &error);
        if (status == STATUS_OK) {
            check_logits(&d, what);
        }
    }
    report(what, status, "", &error);
    device_free(d.d_logits);
    endless_case_free(&d.c);
}

C_TEST(parity, gpt_neox_over_four_windows) {
    const struct endless_model shape = endless_small_neox(NN_F32);
    run_model(&shape, true, "a small GPT-NeoX on your operators");
}

C_TEST(parity, llama2_over_four_windows) {
    const struct endless_model shape = endless_small_llama2(NN_F32);
    run_model(&shape, false, "a small Llama2 on your operators");
}

C_TEST(parity, gpt_neox_in_bf16) {
    struct endless_model shape = endless_small_neox(NN_BF16);
    shape.activation = NN_GELU_TANH;
    shape.window = 5;
    run_model(&shape, true, "a small GPT-NeoX in bf16 on your operators");
}
