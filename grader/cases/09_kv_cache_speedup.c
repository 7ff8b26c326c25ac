/*
 * Lab 09, speedup: one matrix-vector product; attention of one layer for a late token; and a small
 * Llama2 that decodes from position 0 on. Each against the starter's way in one run. On a GPU time
 * is measured and the fastest of several calls counts, on both sides; on simt it is modelled, and
 * one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/model/llama2.h"
#include "common/model/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/cases/09_kv_cache_baseline.h"
#include "grader/cases/09_kv_cache_linear.h"
#include "grader/cases/09_kv_cache_text.h"
#include "grader/foreign.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/logits.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/09_kv_cache/engine.h"

static const char lab[] = "09_kv_cache";

enum { PATIENCE = 60 /* seconds */, CALLS = 7 };

/* What a cache cannot hold must come from memory, at its speed. */
static void check_possible(const struct grader_gpu *gpu, double bytes, double ms) {
    double outside = bytes - (double)gpu->properties.l2_bytes;
    double least = 1e3 * outside / gpu->properties.memory_bandwidth;
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than reading the weights takes, %.4g ms: the work was not done",
                  ms, least);
    }
}

/* ---- One product ---- */

struct timed_linear {
    struct kv_linear_case c;
    kv_linear_function *run;
};

static enum status run_linear(void *argument, device_stream stream, struct error *error) {
    const struct timed_linear *t = argument;
    return t->run(&t->c.call, stream, error);
}

/* Milliseconds of one call. */
static double time_linear(void *argument, bool subject) {
    struct timed_linear *t = argument;
    struct error error = {0};
    double ms;
    t->run = subject ? kv_linear : kv_linear_baseline;
    grader_watch(t->c.name, PATIENCE);
    enum status status = grader_gpu_time(run_linear, t, NULL, &ms, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t->c.name, error_text(&error, status));
    }
    return ms;
}

/* A result of a call of its own, with nothing of an earlier one. */
static void check_linear(struct kv_linear_case *c) {
    struct error error = {0};
    char text[400] = "";
    enum status status = kv_linear_case_run(c, kv_linear, NULL, &error);
    if (status == STATUS_OK) {
        status = kv_linear_case_check(c, text, sizeof text, &error);
    }
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s: %s %s", c->name, text, error.message);
    }
}

/* The product back of the 7B shape's feed-forward: 90 MB of weights, more than a cache holds. */
C_TEST(speedup, linear) {
    struct grader_gpu gpu;
    struct timed_linear t;
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct kv_linear_spec spec = {.N = gpu.modelled ? 1024 : 4096,
                                        .K = gpu.modelled ? 4096 : 11008,
                                        .dtype = NN_BF16,
                                        .residual = KV_RESIDUAL};
    struct rng rng = rng_create(grader_seed());
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "linear", GRADER_SUBJECT, GRADER_MARGIN);
    if (kv_linear_case_create(&t.c, &spec, &rng, false, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
    } else {
        speedup_measure(&speedup, CALLS, time_linear, &t);
    }
    if (!test_has_failed()) {
        check_linear(&t.c);
        check_possible(&gpu, 2.0 * (double)(spec.N * spec.K), speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    kv_linear_case_free(&t.c);
}

/* ---- Attention of a late token ---- */

struct timed_text {
    struct kv_text *text;
    kv_attention_function *run;
    size_t position;
    void *workspace;
};

static enum status run_text(void *argument, device_stream stream, struct error *error) {
    const struct timed_text *t = argument;
    struct kv_attention call = t->text->call;
    call.longest = t->position + 1;
    return t->run(&call, t->workspace, stream, error);
}

/*
 * Feeds a text from position 0 on, the same one to whoever runs it. *ms: the fastest of the tokens
 * from `late` on; the last result is checked.
 */
static enum status feed(struct timed_text *t, size_t late, size_t tokens, double *ms,
                        struct error *error) {
    char text[400] = "";
    *ms = INFINITY;
    for (t->position = 0; t->position < tokens; t->position++) {
        double one;
        TRY(kv_text_prepare(t->text, t->position, error));
        TRY(grader_gpu_time(run_text, t, NULL, &one, error));
        *ms = t->position >= late ? fmin(*ms, one) : *ms;
    }
    TRY(kv_text_check(t->text, tokens - 1, text, sizeof text, error));
    if (text[0] != '\0') {
        TEST_FAIL("%s, position %zu: %s", t->text->name, tokens - 1, text);
    }
    return STATUS_OK;
}

static double time_text(const struct kv_text_spec *spec, uint64_t seed, kv_attention_function *run,
                        size_t late) {
    struct kv_text text;
    struct timed_text t = {.text = &text, .run = run};
    struct error error = {0};
    double ms = INFINITY;
    enum status status = kv_text_create(&text, spec, seed, false, &error);
    if (status == STATUS_OK) {
        status = device_alloc(&t.workspace, KV_WORKSPACE_BYTES, &error);
    }
    if (status == STATUS_OK) {
        grader_watch(text.name, 2 * PATIENCE);
        status = feed(&t, late, spec->T, &ms, &error);
        grader_watch("", 0);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", text.name, error_text(&error, status));
    }
    device_free(t.workspace);
    kv_text_free(&text);
    return ms;
}

C_TEST(speedup, token) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct kv_text_spec spec = {.C = gpu.modelled ? 256 : 768,
                                      .NH = gpu.modelled ? 4 : 12,
                                      .KVH = gpu.modelled ? 4 : 12,
                                      .HS = 64,
                                      .T = gpu.modelled ? 32 : 512,
                                      .dtype = NN_BF16,
                                      .inputs = true};
    size_t late = gpu.modelled ? spec.T - 1 : spec.T - 8;
    uint64_t seed = grader_seed();
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "token", GRADER_SUBJECT, GRADER_MARGIN);
    speedup.subject_ms = time_text(&spec, seed, kv_attention, late);
    if (!test_has_failed()) {
        speedup.baseline_ms = time_text(&spec, seed, kv_attention_baseline, late);
    }
    if (!test_has_failed()) {
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
}

/* ---- Decoding ---- */

enum { MOST_TOKENS = 256, V = 1024 };

/* The 110M shape with fewer layers and tokens; on simt one narrow layer. */
static struct llama2_config config_of(bool modelled) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_110M);
    config.L = modelled ? 1 : 4;
    config.V = modelled ? 256 : V;
    config.T = modelled ? 16 : MOST_TOKENS;
    if (modelled) {
        config.C = 256;
        config.hidden = 512;
        config.NH = config.KVH = 4;
        config.HS = 64;
    }
    return config;
}

/* Decodes T tokens; *ms: all of them. */
static enum status decode(struct llama2 *llama2, float *logits, double *ms) {
    const struct llama2_config *c = llama2_config(llama2);
    double start = device_now();
    for (size_t i = 0; i < c->T; i++) {
        int32_t token = (int32_t)((1 + 977 * i) % c->V);
        TRY(llama2_forward(llama2, &token, 1, i, logits));
    }
    *ms = 1e3 * (device_now() - start);
    return STATUS_OK;
}

/* Milliseconds of a text on an engine with these operators; logits (V) of its last token. */
static double time_model(const struct llama2_random *random, const struct kv_functions *functions,
                         int calls, float *logits) {
    struct engine engine;
    struct llama2 *llama2 = NULL;
    struct error error = {0};
    double best = INFINITY;
    grader_watch("Llama2, token by token", 2 * PATIENCE);
    enum status status = engine_kv_cache_create_with(&engine, functions, &error);
    if (status == STATUS_OK) {
        status = llama2_create(&llama2, &random->config, &random->weights, &engine, 1, &error);
    }
    for (int i = calls > 1 ? -1 : 0; i < calls && status == STATUS_OK; i++) {
        double ms;
        status = decode(llama2, logits, &ms);
        best = i < 0 || status != STATUS_OK ? best : fmin(best, ms);
    }
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2: %s", error_text(&error, status));
    }
    llama2_free(llama2);
    engine_destroy(&engine);
    return best;
}

C_TEST(speedup, end_to_end) {
    static const struct kv_functions baseline = {kv_linear_baseline, kv_attention_baseline},
                                     own = {kv_linear, kv_attention};
    struct grader_gpu gpu;
    struct llama2_random random;
    float want[V] = {0}, got[V] = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct llama2_config config = config_of(gpu.modelled);
    ASSERT_OK(llama2_random_create(&random, &config, grader_seed()));
    struct speedup speedup =
        grader_gpu_speedup(&gpu, lab, "end_to_end", GRADER_SUBJECT, GRADER_MARGIN);
    speedup.baseline_ms = time_model(&random, &baseline, gpu.modelled ? 1 : 2, want);
    speedup.subject_ms = time_model(&random, &own, gpu.modelled ? 1 : 3, got);
    if (!test_has_failed()) {
        grader_check_timed_logits(got, want, config.V, "Llama2 with your operators");
        printf("%s Llama2: %.0f tokens/s, the starter's way %.0f (%s)\n", lab,
               1e3 * (double)config.T / speedup.subject_ms,
               1e3 * (double)config.T / speedup.baseline_ms, gpu.clock);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    llama2_random_free(&random);
}
