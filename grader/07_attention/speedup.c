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
#include "common/testing/testing.h"
#include "grader/07_attention/calls.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/07_attention/attention.h"
#include "labs/07_attention/problem/case.h"

static const char lab[] = "07_attention";

enum { PATIENCE = 40 /* seconds */, CALLS = 7 };

/* One problem in the memory of both workers; host memory, with the result, is the subject's. */
struct timed_case {
    struct attention_case sides[REMOTE_SIDES];
    struct rng rng;
};

static enum status timed_create(struct timed_case *t, const struct attention_spec *spec,
                                struct error *error) {
    struct attention_case *subject = &t->sides[REMOTE_SUBJECT];
    t->rng = grader_rng();
    TRY(attention_case_create(subject, spec, rng_u64(&t->rng), false, error));
    TRY(remote_open_side(REMOTE_BASELINE, error));
    t->sides[REMOTE_BASELINE] = *subject;
    return attention_case_place(&t->sides[REMOTE_BASELINE], error);
}

static void timed_free(struct timed_case *t) {
    remote_use(REMOTE_BASELINE);
    attention_case_unplace(&t->sides[REMOTE_BASELINE]);
    remote_use(REMOTE_SUBJECT);
    attention_case_free(&t->sides[REMOTE_SUBJECT]);
}

static enum status run_kernel(const struct attention_case *c, double *ms, struct error *error) {
    struct attention_call call = {c->problem, NULL};
    return remote_call_timed("attention", &call, sizeof call, NULL, ms, error);
}

static enum status check_result(struct attention_case *c, struct error *error) {
    char text[400] = "";
    TRY(attention_case_read(c, NULL, error));
    if (!attention_case_check(c, text, sizeof text)) {
        TEST_FAIL("a timed result is wrong: %s: %s", c->name, text);
    }
    return STATUS_OK;
}

/* Of both products. */
static double flops_of(const struct attention_spec *s) {
    return 4.0 * (double)s->B * (double)s->NH * (double)s->T * (double)s->S * (double)s->HS;
}

static enum remote_products products_of(const struct attention_spec *s) {
    return s->dtype == NN_F32 ? REMOTE_FP32_PRODUCTS : REMOTE_16_BIT_PRODUCTS;
}

/* q, k and v are read once, the result is written. */
static double bytes_of(const struct attention_spec *s) {
    double heads = (double)(s->B * s->HS) * (double)nn_dtype_bytes(s->dtype);
    return heads * (double)(2 * s->T * s->NH + 2 * s->S * s->KVH);
}

/* One call with fresh inputs; the subject's result is checked. */
static enum status renew_and_run(struct attention_case *c, struct rng *rng, bool subject,
                                 double *ms, struct error *error) {
    TRY(attention_case_renew(c, rng, error));
    TRY(attention_case_poison(c, NULL, error));
    grader_watch(c->name, PATIENCE);
    enum status status = run_kernel(c, ms, error);
    grader_watch("", 0);
    TRY(status);
    if (subject) {
        TRY(check_result(c, error));
        if (!test_has_failed()) {
            remote_check_counted(flops_of(&c->spec), products_of(&c->spec));
            remote_check_counted_bytes(bytes_of(&c->spec));
        }
    }
    return STATUS_OK;
}

/* Milliseconds of that call. */
static double time_call(void *argument, bool subject) {
    struct timed_case *t = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct attention_case *c = &t->sides[which];
    struct error error = {0};
    double ms = INFINITY;
    remote_use(which);
    enum status status = renew_and_run(c, &t->rng, subject, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c->name, error_text(&error, status));
    }
    return ms;
}

/* More than 25 times the fp32 units' work a second is more than tensor cores do. */
static void check_possible(const struct attention_spec *s, const struct grader_gpu *gpu,
                           double ms) {
    double factor = s->dtype == NN_F32 ? 1.0 : 25.0;
    double least = 1e3 * flops_of(s) / (factor * gpu->properties.peak_flops);
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done", ms,
                  least);
    }
}

/* Its two products, on the units for its type; q, k and v read once, the result written. */
static struct work work_of(const struct attention_spec *s) {
    double heads = (double)(s->B * s->HS) * (double)nn_dtype_bytes(s->dtype);
    double flops = flops_of(s);
    return (struct work){.fp32_flops = s->dtype == NN_F32 ? flops : 0.0,
                         .tensor_flops = s->dtype == NN_F32 ? 0.0 : flops,
                         .read_bytes = heads * (double)(s->T * s->NH + 2 * s->S * s->KVH),
                         .written_bytes = heads * (double)(s->T * s->NH),
                         .warm = true};
}

/* On a GPU a batch of texts; on simt short ones, as many heads as there are multiprocessors. */
static struct attention_spec timed_spec(const struct grader_gpu *gpu, enum nn_dtype dtype) {
    const size_t T = gpu->modelled ? 128 : 512;
    const size_t heads = gpu->modelled ? (size_t)gpu->properties.multiprocessors : 12;
    return (struct attention_spec){.dtype = dtype,
                                   .B = gpu->modelled ? 1 : 8,
                                   .T = T,
                                   .S = T,
                                   .NH = heads,
                                   .KVH = heads,
                                   .HS = 64,
                                   .layout = LAYOUT_JOINED,
                                   .loudness = 1.0f};
}

static void compare_kernels(const char *measure, enum nn_dtype dtype) {
    struct grader_gpu gpu;
    struct timed_case t = {0};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct attention_spec spec = timed_spec(&gpu, dtype);
    const struct work work = work_of(&spec);
    if (!grader_gpu_can(&gpu, &work)) {
        return;
    }
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, measure);
    enum status status = timed_create(&t, &spec, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        speedup.least = grader_gpu_least_time(&work);
        speedup_measure(&speedup, CALLS, time_call, &t);
        if (gpu.modelled && speedup.subject_ms < 0.5 * speedup.baseline_ms) {
            /* Warm caches, as on a GPU: where a call is short, the first one's misses count. */
            speedup.subject_ms = time_call(&t, true);
        }
    }
    if (!test_has_failed()) {
        check_possible(&spec, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    timed_free(&t);
}

C_TEST(speedup, kernel) {
    compare_kernels("kernel", NN_F32);
}

C_TEST(speedup, kernel_bf16) {
    compare_kernels("kernel_bf16", NN_BF16);
}

/* BERT-base's layers on a GPU; on simt one narrow layer. */
static struct bert_config bert_config_of(bool modelled) {
    const struct bert_config narrow = {
        .C = 384, .hidden = 64, .L = 1, .NH = 6, .V = 1000, .T = 384, .labels = 2};
    const struct bert_config base = {
        .C = 768, .hidden = 3072, .L = 3, .NH = 12, .V = 1000, .T = 512, .labels = 2};
    return remote_bert_config(modelled ? narrow : base);
}

/* Packed texts, from T tokens down to half of that. */
static void place_texts(const struct bert_config *config, size_t B, int32_t *starts) {
    starts[0] = 0;
    for (size_t b = 0; b < B; b++) {
        starts[b + 1] = starts[b] + (int32_t)(config->T - b * config->T / (2 * B));
    }
}

/* Of all layers' attention: one launch a layer, as texts are packed. */
static struct work work_of_texts(const struct bert_config *config, const int32_t *starts,
                                 size_t B) {
    double pairs = 0.0;
    for (size_t b = 0; b < B; b++) {
        double T = (double)(starts[b + 1] - starts[b]);
        pairs += T * T;
    }
    return (struct work){.fp32_flops = 4.0 * pairs * (double)(config->L * config->C),
                         .launches = (int)config->L};
}

C_TEST(speedup, end_to_end) {
    enum { MOST_TEXTS = 16, MOST_TOKENS = MOST_TEXTS * 512 };
    struct grader_gpu gpu;
    int32_t ids[MOST_TOKENS], starts[MOST_TEXTS + 1];
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    size_t B = gpu.modelled ? 2 : MOST_TEXTS;
    struct remote_bert_job job = {.config = bert_config_of(gpu.modelled),
                                  .input = {.ids = ids, .starts = starts, .B = B},
                                  .what = "BERT, a batch of texts",
                                  .seconds = 4 * PATIENCE,
                                  .own = WORKER_NO_ATTENTION};
    remote_bert_draw(&job, ids, B * job.config.T);
    place_texts(&job.config, B, starts);
    job.work = work_of_texts(&job.config, starts, B);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "end_to_end");
    remote_bert_compare(&job, &gpu, &speedup, gpu.modelled ? 1 : CALLS, "BERT with your attention");
}
