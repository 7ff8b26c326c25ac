/*
 * Lab 09, parity: the subject's two operators against sums in double precision, and a small Llama2
 * on them, token by token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/models/llama2.h"
#include "common/models/rounded_llama2.h"
#include "common/testing/testing.h"
#include "grader/09_kv_cache/calls.h"
#include "grader/09_kv_cache/remote.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/small_llama2.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/remote.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/09_kv_cache/problem/linear.h"
#include "labs/09_kv_cache/problem/text.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- kv_linear() ---- */

static void report(const char *name, enum status status, const char *text,
                   const struct error *error) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", name, error_text(error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s: %s", name, text);
    }
}

static enum status run_and_check_linear(struct kv_linear_case *c, const struct kv_linear_spec *spec,
                                        struct fixture *fixture, char *text, size_t size,
                                        struct error *error) {
    TRY(kv_linear_case_create(c, spec, &fixture->rng, fixture_has_guards(fixture), error));
    grader_watch(c->name, PATIENCE);
    enum status status = kv_linear_case_run(c, remote_kv_linear, fixture->stream, error);
    grader_watch("", 0);
    TRY(status);
    return kv_linear_case_check(c, text, size, error);
}

static void run_linear(const struct kv_linear_spec *spec, struct fixture *fixture) {
    struct kv_linear_case c;
    struct error error = {0};
    char text[400] = "";
    enum status status = run_and_check_linear(&c, spec, fixture, text, sizeof text, &error);
    report(c.name, status, text, &error);
    kv_linear_case_free(&c);
}

/* Every case in all three formats. */
static void run_linears(const struct kv_linear_spec *list, size_t count) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, 0);
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct kv_linear_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            run_linear(&spec, &fixture);
        }
    }
    fixture_close(&fixture);
}

/* A test of these cases. */
#define LINEAR_TEST(name, ...)                                     \
    C_TEST(parity, name) {                                         \
        static const struct kv_linear_spec list[] = {__VA_ARGS__}; \
        run_linears(list, COUNT(list));                            \
    }

LINEAR_TEST(linear_even_sizes, {.N = 8, .K = 8}, {.N = 64, .K = 64}, {.N = 128, .K = 512},
            {.N = 16, .K = 2048})

LINEAR_TEST(linear_odd_sizes, {.N = 1, .K = 1}, {.N = 1, .K = 33}, {.N = 3, .K = 4},
            {.N = 7, .K = 12}, {.N = 67, .K = 61}, {.N = 131, .K = 257}, {.N = 33, .K = 1023})

LINEAR_TEST(linear_empty_sizes, {.N = 0, .K = 0}, {.N = 0, .K = 8}, {.N = 5, .K = 0},
            {.N = 5, .K = 0, .residual = KV_RESIDUAL}, {.N = 5, .K = 0, .residual = KV_IN_PLACE},
            {.N = 5, .K = 0, .norm = true}, {.N = 5, .K = 0, .norm = true, .residual = KV_RESIDUAL})

LINEAR_TEST(linear_with_a_norm, {.N = 16, .K = 64, .norm = true}, {.N = 5, .K = 1, .norm = true},
            {.N = 67, .K = 131, .norm = true}, {.N = 24, .K = 1000, .norm = true},
            {.N = 9, .K = 4104, .norm = true})

LINEAR_TEST(linear_with_a_residual, {.N = 16, .K = 64, .residual = KV_RESIDUAL},
            {.N = 16, .K = 64, .residual = KV_IN_PLACE},
            {.N = 67, .K = 131, .residual = KV_RESIDUAL},
            {.N = 131, .K = 67, .residual = KV_IN_PLACE},
            {.N = 33, .K = 72, .norm = true, .residual = KV_RESIDUAL},
            {.N = 72, .K = 33, .norm = true, .residual = KV_IN_PLACE})

LINEAR_TEST(linear_odd_pointers, {.N = 24, .K = 64, .skew = 1}, {.N = 24, .K = 64, .skew = 4},
            {.N = 24, .K = 64, .norm = true, .residual = KV_RESIDUAL, .skew = 3},
            {.N = 24, .K = 128, .norm = true, .residual = KV_IN_PLACE, .skew = 2})

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, linear_random_sizes, 0) {
    for (int i = 0; i < 18 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        size_t step = i % 2 == 0 ? 1 : 8;
        const struct kv_linear_spec spec = {.N = 1 + rng_below(rng, 300),
                                            .K = step * (1 + rng_below(rng, 600 / step)),
                                            .dtype = (enum nn_dtype)(i % 3),
                                            .norm = rng_below(rng, 2) == 0,
                                            .residual = (enum kv_residual)rng_below(rng, 3),
                                            .skew = rng_below(rng, 3) == 0 ? 1 : 0};
        run_linear(&spec, fixture);
    }
}

C_TEST(parity, linear_large_sizes_on_a_gpu) {
    static const struct kv_linear_spec list[] = {
        {.N = 4096, .K = 4096, .residual = KV_IN_PLACE},
        {.N = 2048, .K = 11008, .residual = KV_RESIDUAL},
        {.N = 32000, .K = 768, .norm = true},
        {.N = 100003, .K = 101, .norm = true},
    };
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        if (gpu.modelled) {
            TEST_SKIP("large sizes are for a GPU; this is simt");
        }
        run_linears(list, COUNT(list));
    }
}

/* ---- kv_attention() ---- */

/* Ways of feeding a text. */
enum feeding {
    FEED_CALLS,   /* `longest` just above the position */
    FEED_LONGEST, /* `longest` = T */
    FEED_GRAPH    /* one recorded call, launched for every position */
};

/* A text, and a graph of its call in the worker once it is recorded. */
struct feeding_of {
    struct kv_text text;
    enum feeding how;
    void *graph;
};

static enum status record_once(struct feeding_of *f, struct fixture *fixture, struct error *error) {
    if (f->graph != NULL) {
        return STATUS_OK;
    }
    f->text.call.longest = f->text.spec.T;
    struct kv_attention_call call = {f->text.call, fixture->workspace, fixture->stream, NULL};
    TRY(remote_call("kv_record", &call, sizeof call, error));
    f->graph = call.graph;
    return STATUS_OK;
}

static enum status call_once(struct feeding_of *f, size_t position, struct fixture *fixture,
                             struct error *error) {
    if (f->how != FEED_GRAPH) {
        size_t longest = f->how == FEED_CALLS ? position + 1 : f->text.spec.T;
        return kv_text_call(&f->text, longest, remote_kv_attention, fixture->workspace,
                            fixture->stream, error);
    }
    TRY(record_once(f, fixture, error));
    struct kv_launch_call call = {f->graph, fixture->stream};
    return remote_call("kv_launch", &call, sizeof call, error);
}

static enum status call_and_check(struct feeding_of *f, size_t position, struct fixture *fixture,
                                  const char *name, char *text, size_t size, struct error *error) {
    TRY(kv_text_prepare(&f->text, position, error));
    grader_watch(name, PATIENCE);
    enum status status = call_once(f, position, fixture, error);
    grader_watch("", 0);
    TRY(status);
    return kv_text_check(&f->text, position, text, size, error);
}

static void feed_one(struct feeding_of *f, size_t position, struct fixture *fixture) {
    static const char *const ways[] = {"", ", longest = T", ", a recorded call"};
    struct error error = {0};
    char text[400] = "", name[300];
    snprintf(name, sizeof name, "%s%s, position %zu", f->text.name, ways[f->how], position);
    enum status status = call_and_check(f, position, fixture, name, text, sizeof text, &error);
    report(name, status, text, &error);
}

/* Feeds the positions one after the other: with inputs they are 0, 1, 2, ... */
static void run_text(const struct kv_text_spec *spec, const size_t *positions, size_t count,
                     enum feeding feeding, struct fixture *fixture) {
    struct feeding_of f = {.how = feeding};
    struct error error = {0};
    bool guarded = fixture_has_guards(fixture);
    enum status status = kv_text_create(&f.text, spec, rng_u64(&fixture->rng), guarded, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", f.text.name, error_text(&error, status));
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        feed_one(&f, positions != NULL ? positions[i] : i, fixture);
    }
    kv_text_free(&f.text);
}

/* Every text in all three formats: `tokens` from position 0 on, or these positions alone. */
static void run_texts(const struct kv_text_spec *list, size_t count, const size_t *positions,
                      size_t tokens, enum feeding feeding) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, KV_WORKSPACE_BYTES);
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct kv_text_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            run_text(&spec, positions, tokens < spec.T ? tokens : spec.T, feeding, &fixture);
        }
    }
    fixture_close(&fixture);
}

enum { SHORT_TEXT = 9 };

/* A test of the first tokens of these texts. */
#define ATTENTION_TEST(name, tokens, feeding, ...)               \
    C_TEST(parity, name) {                                       \
        static const struct kv_text_spec list[] = {__VA_ARGS__}; \
        run_texts(list, COUNT(list), NULL, tokens, feeding);     \
    }

ATTENTION_TEST(attention_even_sizes, SHORT_TEXT, FEED_CALLS,
               {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 8, .inputs = true},
               {.C = 64, .NH = 1, .KVH = 1, .HS = 64, .T = 16, .inputs = true},
               {.C = 64, .NH = 4, .KVH = 4, .HS = 32, .T = 16, .inputs = true})

ATTENTION_TEST(attention_odd_sizes, SHORT_TEXT, FEED_CALLS,
               {.C = 1, .NH = 1, .KVH = 1, .HS = 2, .T = 1, .inputs = true},
               {.C = 33, .NH = 3, .KVH = 3, .HS = 10, .T = 11, .inputs = true},
               {.C = 45, .NH = 5, .KVH = 5, .HS = 6, .T = 7, .inputs = true},
               {.C = 60, .NH = 1, .KVH = 1, .HS = 98, .T = 5, .inputs = true})

ATTENTION_TEST(
    attention_halves, SHORT_TEXT, FEED_CALLS,
    {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 9, .layout = NN_ROPE_HALVES, .inputs = true},
    {.C = 35, .NH = 3, .KVH = 1, .HS = 14, .T = 9, .layout = NN_ROPE_HALVES, .inputs = true})

ATTENTION_TEST(attention_grouped_heads, 6, FEED_CALLS,
               {.C = 48, .NH = 6, .KVH = 2, .HS = 8, .T = 9, .inputs = true},
               {.C = 64, .NH = 8, .KVH = 1, .HS = 16, .T = 9, .inputs = true},
               {.C = 64, .NH = 8, .KVH = 2, .HS = 64, .T = 9, .inputs = true})

ATTENTION_TEST(attention_longest_heads, 3, FEED_CALLS,
               {.C = 24, .NH = 2, .KVH = 1, .HS = KV_MAX_HS, .T = 5, .inputs = true},
               {.C = 24, .NH = 1, .KVH = 1, .HS = KV_MAX_HS - 2, .T = 5, .inputs = true})

ATTENTION_TEST(attention_odd_pointers, 4, FEED_CALLS,
               {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 8, .inputs = true, .skew = 1},
               {.C = 64, .NH = 4, .KVH = 1, .HS = 64, .T = 8, .inputs = true, .skew = 3})

/* The grid is for T rows, the work for those up to the position. */
ATTENTION_TEST(attention_longest_is_T, SHORT_TEXT, FEED_LONGEST,
               {.C = 32, .NH = 2, .KVH = 1, .HS = 16, .T = 40, .inputs = true})

ATTENTION_TEST(attention_a_call_recorded_once, SHORT_TEXT, FEED_GRAPH,
               {.C = 32, .NH = 4, .KVH = 2, .HS = 16, .T = 24, .inputs = true})

/* The rows before a position are given; nothing else of earlier tokens is. */
static const size_t single_positions[] = {0, 1, 2, 15, 31, 32, 33, 63, 64, 129, 299};

C_TEST(parity, attention_without_inputs) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 4, .KVH = 2, .HS = 16, .T = 300},
        {.C = 35, .NH = 3, .KVH = 1, .HS = 22, .T = 300, .layout = NN_ROPE_HALVES},
    };
    run_texts(list, COUNT(list), single_positions, COUNT(single_positions), FEED_CALLS);
}

C_TEST(parity, attention_without_inputs_recorded) {
    static const size_t positions[] = {299, 4, 70, 0, 151};
    static const struct kv_text_spec list[] = {{.C = 32, .NH = 2, .KVH = 1, .HS = 64, .T = 300}};
    run_texts(list, COUNT(list), positions, COUNT(positions), FEED_GRAPH);
}

/* e^score overflows unless the running max is subtracted, in every split of the context. */
FIXTURE_TEST(parity, attention_large_scores, KV_WORKSPACE_BYTES) {
    static const size_t positions[] = {1, 40, 150, 299};
    const struct kv_text_spec spec = {
        .C = 32, .NH = 2, .KVH = 2, .HS = 32, .T = 300, .loudness = 300.0f};
    run_text(&spec, positions, COUNT(positions), FEED_CALLS, fixture);
    run_text(&spec, positions, COUNT(positions), FEED_LONGEST, fixture);
}

FIXTURE_TEST(parity, attention_random_sizes, KV_WORKSPACE_BYTES) {
    for (int i = 0; i < 9 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        size_t KVH = 1 + rng_below(rng, 3), T = 1 + rng_below(rng, 200);
        struct kv_text_spec spec = {.C = 1 + rng_below(rng, 70),
                                    .NH = KVH * (1 + rng_below(rng, 4)),
                                    .KVH = KVH,
                                    .HS = 2 * (1 + rng_below(rng, 40)),
                                    .T = T,
                                    .dtype = (enum nn_dtype)(i % 3),
                                    .layout = (enum nn_rope_layout)rng_below(rng, 2),
                                    .skew = rng_below(rng, 3) == 0 ? 1 : 0};
        const size_t positions[] = {T - 1, rng_below(rng, T)};
        run_text(&spec, positions, COUNT(positions), FEED_CALLS, fixture);
        spec.inputs = true;
        run_text(&spec, NULL, T < 4 ? T : 4, FEED_CALLS, fixture);
    }
}

C_TEST(parity, attention_large_sizes_on_a_gpu) {
    static const size_t positions[] = {0, 1000, 4095};
    static const struct kv_text_spec list[] = {
        {.C = 512, .NH = 32, .KVH = 32, .HS = 128, .T = 4096},
        {.C = 512, .NH = 32, .KVH = 4, .HS = 64, .T = 4096, .layout = NN_ROPE_HALVES},
    };
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        if (gpu.modelled) {
            TEST_SKIP("large sizes are for a GPU; this is simt");
        }
        run_texts(list, COUNT(list), positions, COUNT(positions), FEED_LONGEST);
    }
}

C_TEST(parity, wrong_calls_are_refused) {
    struct grader_gpu gpu;
    struct error error = {0};
    const struct kv_attention good = {
        .C = 8, .NH = 2, .KVH = 2, .HS = 4, .T = 3, .theta = 1e4f, .longest = 3};
    struct kv_attention wide = good, odd = good, heads = good, late = good;
    wide.HS = KV_MAX_HS + 2;
    odd.HS = 3;
    heads.KVH = 0;
    late.longest = 4;
    const struct kv_attention *const bad[] = {&wide, &odd, &heads, &late};
    const struct kv_linear no_type = {.N = 1, .K = 1, .dtype = (enum nn_dtype)7};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        enum status status = remote_kv_attention(bad[i], NULL, NULL, &error);
        if (status != STATUS_INVALID_ARGUMENT) {
            TEST_FAIL("kv_attention, HS %zu, KVH %zu, longest %zu of %zu: must be refused with "
                      "STATUS_INVALID_ARGUMENT, got %s; kv_attention_check() does that",
                      bad[i]->HS, bad[i]->KVH, bad[i]->longest, bad[i]->T, status_name(status));
        }
    }
    enum status status = remote_kv_linear(&no_type, NULL, &error);
    if (status != STATUS_INVALID_ARGUMENT) {
        TEST_FAIL("kv_linear, dtype 7, which is none: must be refused with "
                  "STATUS_INVALID_ARGUMENT, got %s; kv_linear_check() does that",
                  status_name(status));
    }
    EXPECT_DONE(device_synchronize(NULL, &error), &error);
}

/* ---- Llama2 ---- */

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    l.config.L = 2;
    if (remote_small_llama2(&l, "Llama2, token by token", 2 * PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your operators");
    }
}

/* Heads that the operators do not support: the engine then runs the model operator by operator. */
C_TEST(parity, llama2_with_heads_too_long) {
    struct small_llama2 l = small_llama2();
    l.config.L = 1;
    l.config.NH = 2;
    l.config.KVH = 1;
    l.config.HS = KV_MAX_HS + 2;
    l.config.C = l.config.NH * l.config.HS;
    l.count = l.prompt + 1;
    if (remote_small_llama2(&l, "Llama2 with long heads", 2 * PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "heads of 258 channels");
    }
}

enum { TEXTS = 2 };

/* Two texts, the second one the first reversed: it must not see the first. */
struct two_texts {
    struct small_llama2 l;
    enum nn_dtype dtype;
    uint64_t seed; /* of the weights */
    int32_t tokens[TEXTS][SMALL_LLAMA2_TOKENS];
};

/* The reference: the device's weights, and a cache in fp32. */
struct reference {
    struct engine engine;
    struct rounded_llama2 model;
    struct llama2 *llama2;
};

static enum status run_reference(struct reference *r, struct two_texts *t) {
    TRY(rounded_llama2_create(&r->model, &t->l.config, t->dtype, false, t->seed));
    TRY(engine_reference_create(&r->engine));
    TRY(llama2_create(&r->llama2, &r->model.random.config, &r->model.random.weights, &r->engine, 1,
                      NULL));
    for (size_t i = 0; i < TEXTS * t->l.count; i++) {
        size_t position = i % t->l.count;
        const int32_t *token = &t->tokens[i / t->l.count][position];
        TRY(llama2_forward(r->llama2, token, 1, position, t->l.want));
    }
    return STATUS_OK;
}

static enum status decode_here(struct two_texts *t) {
    struct reference r = {0};
    enum status status = run_reference(&r, t);
    llama2_free(r.llama2);
    engine_destroy(&r.engine);
    rounded_llama2_free(&r.model);
    return status;
}

/* Logits of the subject, in the worker. */
static enum status decode_there(struct two_texts *t, struct error *error) {
    struct decoding_create_call made = {
        .config = t->l.config, .dtype = t->dtype, .seed = t->seed, .batch = 1};
    struct decoding_text_call call = {.count = t->l.count};
    void *logits;
    TRY(remote_call("decoding_create", &made, sizeof made, error));
    TRY(remote_alloc(&logits, sizeof t->l.got, error));
    call.model = made.model;
    call.logits = logits;
    for (int i = 0; i < TEXTS; i++) {
        void *tokens;
        TRY(remote_copy(&tokens, t->tokens[i], t->l.count * sizeof(int32_t), error));
        call.tokens = tokens;
        memset(logits, 0xff, sizeof t->l.got);
        TRY(remote_call("decoding_text", &call, sizeof call, error));
    }
    memcpy(t->l.got, logits, sizeof t->l.got);
    return remote_call("decoding_free", &call, sizeof call, error);
}

/*
 * Both sides have the same weights, so they differ by the cache alone: a rounding of each key and
 * value in both layers, propagated through the layers, is at most eight roundings.
 */
static void check_16_bits(enum nn_dtype dtype, struct rng *rng) {
    struct two_texts t = {.l = small_llama2(), .dtype = dtype, .seed = grader_secret(rng)};
    struct error error = {0};
    t.l.config.L = 2;
    for (size_t i = 0; i < t.l.count; i++) {
        t.tokens[0][i] = t.l.tokens[t.l.count - 1 - i];
        t.tokens[1][i] = t.l.tokens[i];
    }
    EXPECT_OK(decode_here(&t));
    grader_watch("Llama2 in 16 bits", 2 * PATIENCE);
    enum status status = decode_there(&t, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2 in %s: %s", nn_dtype_name(dtype), error_text(&error, status));
        return;
    }
    struct logits_difference d = logits_difference(t.l.got, t.l.want, SMALL_LLAMA2_V);
    double allowed = 8.0 * nn_dtype_rounding(dtype) * d.largest;
    if (!(d.worst <= allowed)) {
        TEST_FAIL("Llama2 in %s, the second text of a model: logits differ by %.3g, tolerance %.3g",
                  nn_dtype_name(dtype), d.worst, allowed);
    }
}

C_TEST(parity, llama2_in_16_bits) {
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        struct rng rng = grader_rng();
        check_16_bits(NN_F16, &rng);
        check_16_bits(NN_BF16, &rng);
    }
}
