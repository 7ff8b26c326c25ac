/*
 * Lab 14, speedup: attention of a token far behind the cache's length; the step between two layers;
 * and a small GPT-NeoX that decodes with a full cache. Each against the starter in one run. On a
 * GPU times are measured and the fastest of several calls counts, on both sides; on simt they are
 * modelled, and one call is enough.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/14_endless_text/calls.h"
#include "grader/14_endless_text/remote.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/14_endless_text/problem/norms.h"
#include "labs/14_endless_text/problem/text.h"

static const char lab[] = "14_endless_text";

enum { PATIENCE = 120 /* seconds */ };

/* Least work of a call. */
struct least_work {
    double bytes, flops;
};

/* What a timed call must have done, and must not have got or sent in another way. */
static void check_work(struct least_work least, double result_bytes) {
    remote_check_counted(least.flops, REMOTE_FP32_PRODUCTS);
    remote_check_counted_bytes(least.bytes);
    remote_check_sent(0.0, result_bytes);
    remote_check_fetched(least.bytes);
}

static void finish(struct speedup *speedup, const struct work *work, const char *file, int line) {
    if (!test_has_failed()) {
        speedup->least = grader_gpu_least_time(work);
        speedup_check(speedup, file, line);
    }
}

/* ---- Attention ---- */

struct timed_text {
    struct endless_text text;
    void *workspace;
};

static struct least_work least_of_text(const struct endless_text_spec *s) {
    double rows = (double)(s->sinks + s->window);
    return (struct least_work){2.0 * rows * (double)(s->KVH * s->HS) *
                                   (double)nn_dtype_bytes(s->dtype),
                               4.0 * rows * (double)(s->NH * s->HS)};
}

/* Feeds a text until the cache is full, and some tokens more: *ms is the fastest of these. */
static enum status feed(struct timed_text *t, double *ms, struct error *error) {
    const struct endless_text_spec *s = &t->text.spec;
    char text[400] = "";
    while (t->text.position < t->text.tokens) {
        double one;
        TRY(endless_text_next(&t->text, error));
        struct endless_attention_call call = {t->text.call, t->workspace, NULL, NULL};
        TRY(remote_call_timed("endless_attention", &call, sizeof call, NULL, &one, error));
        if (t->text.position <= s->sinks + s->window) {
            continue;
        }
        *ms = fmin(*ms, one);
        check_work(least_of_text(s), sizeof(float) * (double)(s->NH * s->HS));
        TRY(endless_text_check(&t->text, text, sizeof text, error));
        if (text[0] != '\0') {
            TEST_FAIL("%s, token %zu: %s", t->text.name, t->text.position - 1, text);
        }
    }
    return STATUS_OK;
}

static enum status create_and_feed(struct timed_text *t, const struct endless_text_spec *spec,
                                   uint64_t seed, enum remote_side which, size_t tokens, double *ms,
                                   struct error *error) {
    TRY(remote_open_side(which, error));
    TRY(endless_text_create(&t->text, spec, tokens, seed, false, error));
    TRY(device_alloc(&t->workspace, ENDLESS_WORKSPACE_BYTES, error));
    TRY(device_set(t->workspace, 0, ENDLESS_WORKSPACE_BYTES, NULL, error));
    grader_watch(t->text.name, PATIENCE);
    enum status status = feed(t, ms, error);
    grader_watch("", 0);
    return status;
}

static double time_text(const struct endless_text_spec *spec, uint64_t seed, enum remote_side which,
                        size_t tokens) {
    struct timed_text t = {0};
    struct error error = {0};
    double ms = INFINITY;
    enum status status = create_and_feed(&t, spec, seed, which, tokens, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t.text.name, error_text(&error, status));
    }
    device_free(t.workspace);
    endless_text_free(&t.text);
    return ms;
}

C_TEST(speedup, attention) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct endless_text_spec spec = {.NH = gpu.modelled ? 4 : 64,
                                           .KVH = gpu.modelled ? 4 : 64,
                                           .HS = gpu.modelled ? 64 : 128,
                                           .rotary = 32,
                                           .layout = NN_ROPE_HALVES,
                                           .sinks = 4,
                                           .window = gpu.modelled ? 124 : 1020,
                                           .dtype = NN_BF16};
    size_t tokens = spec.sinks + spec.window + (gpu.modelled ? 1 : 8);
    uint64_t seed = grader_seed();
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "attention");
    speedup.subject_ms = time_text(&spec, seed, REMOTE_SUBJECT, tokens);
    if (!test_has_failed()) {
        speedup.baseline_ms = time_text(&spec, seed, REMOTE_BASELINE, tokens);
    }
    const struct least_work least = least_of_text(&spec);
    const struct work work = {
        .fp32_flops = least.flops, .read_bytes = least.bytes, .warm = true, .launches = 2};
    finish(&speedup, &work, __FILE__, __LINE__);
}

/* ---- The step between two layers ---- */

/* Calls in a row, as a model makes them: one alone is shorter than its launch. */
static struct endless_norms_spec norms_spec(bool modelled) {
    return (struct endless_norms_spec){.C = modelled ? 2560 : 4096,
                                       .count = 2,
                                       .layernorm = true,
                                       .bias = true,
                                       .addends = 3,
                                       .repeats = modelled ? 4 : 64};
}

static struct least_work least_of_norms(const struct endless_norms_spec *s) {
    double C = (double)s->C; /* x, a, b, two norms' weight and bias; x and two outputs */
    return (struct least_work){(double)s->repeats * 10.0 * sizeof(float) * C,
                               (double)s->repeats * 9.0 * C};
}

static enum status run_norms(struct endless_norms *n, bool check, double *ms, char *text,
                             size_t size, struct error *error) {
    struct endless_add_norms_call call = {n->call, NULL, n->spec.repeats};
    double one;
    TRY(remote_call_timed("endless_add_norms", &call, sizeof call, NULL, &one, error));
    *ms = fmin(*ms, one);
    if (!check) {
        return STATUS_OK;
    }
    struct least_work least = least_of_norms(&n->spec);
    remote_check_counted(least.flops, REMOTE_FP32_PRODUCTS);
    remote_check_counted_bytes(least.bytes);
    remote_check_sent(0.0, 2.0 * sizeof(float) * (double)n->spec.C);
    return endless_norms_check(n, text, size, error);
}

static enum status create_and_run_norms(struct endless_norms *n, enum remote_side which, int calls,
                                        double *ms, struct error *error) {
    const struct endless_norms_spec spec = norms_spec(calls == 1);
    struct rng rng = grader_rng();
    char text[400] = "";
    TRY(remote_open_side(which, error));
    TRY(endless_norms_create(n, &spec, &rng, false, error));
    grader_watch(n->name, PATIENCE);
    for (int i = 0; i < calls && text[0] == '\0'; i++) {
        TRY(endless_norms_draw(n, &rng, error));
        TRY(run_norms(n, which == REMOTE_SUBJECT, ms, text, sizeof text, error));
    }
    grader_watch("", 0);
    if (text[0] != '\0') {
        TEST_FAIL("%s: %s", n->name, text);
    }
    return STATUS_OK;
}

static double time_norms(enum remote_side which, int calls) {
    struct endless_norms n = {0};
    struct error error = {0};
    double ms = INFINITY;
    enum status status = create_and_run_norms(&n, which, calls, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", n.name, error_text(&error, status));
    }
    endless_norms_free(&n);
    return ms;
}

C_TEST(speedup, add_norms) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct endless_norms_spec spec = norms_spec(gpu.modelled);
    int calls = gpu.modelled ? 1 : 1 + speedup_calls(6);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "add_norms");
    speedup.subject_ms = time_norms(REMOTE_SUBJECT, calls);
    if (!test_has_failed()) {
        speedup.baseline_ms = time_norms(REMOTE_BASELINE, calls);
    }
    const struct least_work least = least_of_norms(&spec);
    const struct work work = {.fp32_flops = least.flops / (double)spec.repeats,
                              .read_bytes = least.bytes / (double)spec.repeats,
                              .warm = true,
                              .launches = 1,
                              .times = (int)spec.repeats};
    finish(&speedup, &work, __FILE__, __LINE__);
}

/* ---- Decoding ---- */

/* A GPT-NeoX of four layers of 1024 channels; on simt one layer with few heads. */
static struct endless_model shape_of(bool modelled) {
    struct endless_model shape = endless_small_neox(NN_F32);
    shape.L = modelled ? 1 : 4;
    shape.NH = shape.KVH = modelled ? 2 : 16;
    shape.HS = modelled ? 32 : 64;
    shape.C = 1024;
    shape.hidden = modelled ? 128 : 4096;
    shape.V = modelled ? 64 : 1024;
    shape.rotary = shape.HS / 4;
    shape.window = modelled ? 12 : 252;
    return shape;
}

/* Texts of both sides: a full cache, and the tokens behind it, whose logits are compared. */
struct decoded {
    struct endless_model shape;
    uint64_t seed; /* of the weights */
    size_t filled; /* tokens before those that count */
    size_t rounds; /* of ENDLESS_CALL_TOKENS tokens, or of one on simt */
    size_t each;
    float *logits[REMOTE_SIDES]; /* (rounds * each, V) */
};

static struct least_work least_of_token(const struct endless_model *m) {
    double C = (double)m->C, rows = (double)(m->sinks + m->window);
    double heads = (double)(m->NH * m->HS);
    double weights = (double)m->L * C * (4.0 * heads + 2.0 * (double)m->hidden) + C * (double)m->V;
    double cache = (double)m->L * rows * heads;
    return (struct least_work){4.0 * (weights + 2.0 * cache), 2.0 * weights + 4.0 * cache};
}

/* A token waits for its logits. A layer is seven launches: its four products, attention, the
   activation and the step to the next layer; the embedding, the first norms and the classifier. */
static struct work work_of_tokens(const struct decoded *d) {
    struct least_work least = least_of_token(&d->shape);
    return (struct work){.fp32_flops = least.flops,
                         .read_bytes = least.bytes,
                         .warm = true,
                         .launches = (int)(7 * d->shape.L + 3),
                         .times = (int)d->each,
                         .waits = true,
                         .graph = true};
}

static void next_tokens(struct endless_feed_call *call, struct rng *rng) {
    for (size_t i = 0; i < call->count; i++) {
        call->tokens[i] = (int32_t)rng_below(rng, call->V);
    }
}

static size_t timed_tokens(const struct decoded *d) {
    return d->rounds * d->each;
}

/* *best: the fastest round. The logits of each timed round are read: who knew that those of an
   earlier one are not, could leave out what no later token needs. */
static enum status decode(struct decoded *d, const struct endless_case *c, enum remote_side which,
                          float *d_logits, double *best, struct error *error) {
    struct rng rng = rng_create(d->seed);
    struct endless_feed_call call = {.V = d->shape.V, .logits = d_logits};
    size_t end = d->filled + d->rounds * d->each;
    TRY(remote_endless_open(&call.decoder, c, error));
    while (call.position < end) {
        double ms;
        bool timed = call.position >= d->filled;
        size_t left = d->filled - call.position;
        call.count = timed ? d->each : left < ENDLESS_CALL_TOKENS ? left : ENDLESS_CALL_TOKENS;
        next_tokens(&call, &rng);
        TRY(device_set(d_logits, 0xff, call.count * call.V * sizeof(float), NULL, error));
        TRY(remote_call_timed("endless_feed", &call, sizeof call, NULL, &ms, error));
        if (timed) {
            struct least_work least = least_of_token(&d->shape);
            const double tokens = (double)d->each;
            float *logits = d->logits[which] + (call.position - d->filled) * call.V;
            *best = fmin(*best, ms);
            remote_check_counted(least.flops * tokens, REMOTE_FP32_PRODUCTS);
            remote_check_counted_bytes(least.bytes * tokens);
            remote_check_sent(0.0, 4.0 * tokens * (double)call.V);
            remote_check_fetched(least.bytes);
            TRY(device_read(logits, d_logits, call.count * call.V * sizeof(float), NULL, error));
        }
        call.position += call.count;
    }
    return STATUS_OK;
}

static enum status open_and_decode(struct decoded *d, struct endless_case *c,
                                   enum remote_side which, double *best, struct error *error) {
    void *d_logits = NULL;
    TRY(remote_open_side(which, error));
    TRY(endless_case_create(c, &d->shape, true, 1, d->seed, error));
    TRY(device_alloc(&d_logits, ENDLESS_CALL_TOKENS * d->shape.V * sizeof(float), error));
    grader_watch("a GPT-NeoX, token by token", PATIENCE);
    enum status status = decode(d, c, which, d_logits, best, error);
    grader_watch("", 0);
    device_free(d_logits);
    return status;
}

static double time_model(struct decoded *d, enum remote_side which) {
    struct endless_case c = {0};
    struct error error = {0};
    double best = INFINITY;
    enum status status = open_and_decode(d, &c, which, &best, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("a GPT-NeoX: %s", error_text(&error, status));
    }
    endless_case_free(&c);
    return best;
}

static void check_decoded(const struct decoded *d) {
    char what[80];
    for (size_t i = 0; i < timed_tokens(d) && !test_has_failed(); i++) {
        snprintf(what, sizeof what, "GPT-NeoX with your operators, token %zu,", d->filled + i);
        grader_check_timed_logits(d->logits[REMOTE_SUBJECT] + i * d->shape.V,
                                  d->logits[REMOTE_BASELINE] + i * d->shape.V, d->shape.V, what);
    }
}

static void compare_decoding(struct decoded *d, const struct grader_gpu *gpu) {
    struct speedup speedup = grader_gpu_speedup(gpu, lab, "end_to_end");
    speedup.baseline_ms = time_model(d, REMOTE_BASELINE);
    speedup.subject_ms = test_has_failed() ? INFINITY : time_model(d, REMOTE_SUBJECT);
    if (!test_has_failed()) {
        check_decoded(d);
    }
    const struct work work = work_of_tokens(d);
    finish(&speedup, &work, __FILE__, __LINE__);
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    struct rng rng = grader_rng();
    struct decoded d = {.shape = shape_of(gpu.modelled), .seed = grader_secret(&rng)};
    d.filled = d.shape.sinks + d.shape.window;
    d.each = gpu.modelled ? 4 : ENDLESS_CALL_TOKENS;
    d.rounds = gpu.modelled ? 1 : 1 + (size_t)speedup_calls(4);
    for (int i = 0; i < REMOTE_SIDES; i++) {
        d.logits[i] = calloc(timed_tokens(&d) * d.shape.V, sizeof(float));
    }
    if (d.logits[0] != NULL && d.logits[1] != NULL) {
        compare_decoding(&d, &gpu);
    } else {
        TEST_FAIL("the grader is out of memory");
    }
    free(d.logits[0]);
    free(d.logits[1]);
}
