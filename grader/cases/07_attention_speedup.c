/*
 * Lab 07, speedup: the kernel in fp32 and in bf16, and BERT with it, against the starter's kernel
 * in one run. On a GPU time is measured and the fastest of several calls counts, on both sides; on
 * simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "common/model/engine.h"
#include "common/testing/testing.h"
#include "grader/bert_batch.h"
#include "grader/cases/07_attention_baseline.h"
#include "grader/cases/07_attention_case.h"
#include "grader/foreign.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/logits.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/07_attention/attention.h"
#include "labs/07_attention/engine.h"

static const char lab[] = "07_attention";

enum { PATIENCE = 40 /* seconds */, CALLS = 7 };

/* A call, and who does it. */
struct timed_call {
    struct attention_case c;
    attention_function *run;
};

static enum status run_kernel(void *argument, device_stream stream, struct error *error) {
    const struct timed_call *t = argument;
    return t->run(&t->c.problem, stream, error);
}

/* Milliseconds of one call. */
static double time_call(void *argument, bool subject) {
    struct timed_call *t = argument;
    struct error error = {0};
    double ms;
    t->run = subject ? attention : attention_baseline;
    grader_watch(t->c.name, PATIENCE);
    enum status status = grader_gpu_time(run_kernel, t, NULL, &ms, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t->c.name, error_text(&error, status));
    }
    return ms;
}

/* A result of a call of its own, with nothing of an earlier one. */
static void check_result(struct attention_case *c) {
    struct error error = {0};
    char text[400] = "";
    enum status status = attention_case_run(c, attention, NULL, &error);
    if (status != STATUS_OK || !attention_case_check(c, text, sizeof text)) {
        TEST_FAIL("%s: %s %s", c->name, text, error.message);
    }
}

/* More than 25 times the fp32 units' work a second is more than tensor cores do. */
static void check_possible(const struct attention_spec *s, const struct grader_gpu *gpu,
                           double ms) {
    double flops = 4.0 * (double)s->B * (double)s->NH * (double)s->T * (double)s->S * (double)s->HS;
    double factor = s->dtype == NN_F32 ? 1.0 : 25.0;
    double least = 1e3 * flops / (factor * gpu->properties.peak_flops);
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done", ms,
                  least);
    }
}

static void compare_kernels(const char *measure, enum nn_dtype dtype) {
    struct grader_gpu gpu;
    struct timed_call t;
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct attention_spec spec = {.dtype = dtype,
                                        .B = gpu.modelled ? 1 : 8,
                                        .T = gpu.modelled ? 128 : 512,
                                        .S = gpu.modelled ? 128 : 512,
                                        .NH = gpu.modelled ? 132 : 12,
                                        .KVH = gpu.modelled ? 132 : 12,
                                        .HS = 64,
                                        .layout = LAYOUT_JOINED,
                                        .loudness = 1.0f};
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, measure, GRADER_SUBJECT, GRADER_MARGIN);
    if (attention_case_create(&t.c, &spec, grader_seed(), false, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
    } else {
        speedup_measure(&speedup, CALLS, time_call, &t);
    }
    if (!test_has_failed()) {
        check_result(&t.c);
        check_possible(&spec, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    attention_case_free(&t.c);
}

C_TEST(speedup, kernel) {
    compare_kernels("kernel", NN_F32);
}

C_TEST(speedup, kernel_bf16) {
    compare_kernels("kernel_bf16", NN_BF16);
}

/* BERT-base's layers on a GPU; on simt one narrow layer. Texts of up to T tokens, packed. */
struct bert_case {
    struct bert_config config;
    int32_t *ids, *starts; /* host */
    size_t B;
};

static enum status bert_case_create(struct bert_case *c, bool modelled) {
    c->B = modelled ? 2 : 16;
    c->config = (struct bert_config){.C = modelled ? 384 : 768,
                                     .hidden = modelled ? 64 : 3072,
                                     .L = modelled ? 1 : 3,
                                     .NH = modelled ? 6 : 12,
                                     .V = 1000,
                                     .T = 512,
                                     .types = 2,
                                     .labels = 2,
                                     .norm_eps = 1e-12f,
                                     .activation = NN_GELU};
    struct rng rng = rng_create(grader_seed());
    c->ids = malloc(c->B * c->config.T * sizeof *c->ids);
    c->starts = malloc((c->B + 1) * sizeof *c->starts);
    if (c->ids == NULL || c->starts == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < c->B * c->config.T; i++) {
        c->ids[i] = (int32_t)rng_below(&rng, c->config.V);
    }
    c->starts[0] = 0;
    for (size_t b = 0; b < c->B; b++) {
        /* from full down to half of that */
        c->starts[b + 1] = c->starts[b] + (int32_t)(c->config.T - b * c->config.T / (2 * c->B));
    }
    return STATUS_OK;
}

/* Milliseconds of one batch on an engine; logits receives (B, labels). */
static double time_batch(const struct bert_case *c, const struct bert_random *random,
                         attention_function *run, int calls, float *logits) {
    struct engine engine;
    struct error error = {0};
    double ms = INFINITY;
    const struct bert_input input = {.ids = c->ids, .starts = c->starts, .B = c->B};
    grader_watch("BERT, a batch of texts", 4 * PATIENCE);
    enum status status = engine_attention_create_with(&engine, run, &error);
    if (status == STATUS_OK) {
        status = bert_batch_time(random, &engine, &input, calls, logits, &ms, &error);
    }
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("BERT: %s", error_text(&error, status));
    }
    engine_destroy(&engine);
    return ms;
}

C_TEST(speedup, end_to_end) {
    enum { LOGITS = 16 * 2 };
    struct grader_gpu gpu;
    struct bert_random random;
    struct bert_case c = {0};
    float want[LOGITS] = {0}, got[LOGITS] = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    ASSERT_OK(bert_case_create(&c, gpu.modelled));
    ASSERT_OK(bert_random_create(&random, &c.config, grader_seed()));
    struct speedup speedup =
        grader_gpu_speedup(&gpu, lab, "end_to_end", GRADER_SUBJECT, GRADER_MARGIN);
    int calls = gpu.modelled ? 1 : CALLS;
    speedup.baseline_ms = time_batch(&c, &random, attention_baseline, calls, want);
    speedup.subject_ms = time_batch(&c, &random, attention, calls, got);
    if (!test_has_failed()) {
        grader_check_timed_logits(got, want, c.B * c.config.labels, "BERT with your attention");
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    bert_random_free(&random);
    free(c.ids);
    free(c.starts);
}
