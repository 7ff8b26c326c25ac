/*
 * Lab 04, speedup: the kernel, and BERT with it, against the starter's kernel in one run. On a GPU
 * time is measured and the fastest of several calls counts, on both sides; on simt it is modelled,
 * and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/models/bert.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "grader/04_sgemm/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/04_sgemm/problem/case.h"

static const char lab[] = "04_sgemm";

enum { PATIENCE = 40 /* seconds */, CALLS = 7, CHECKED_ROWS = 8 };

/* The kernel's shape: many tiles, and on simt a short K, to be done in seconds. */
static const struct sgemm_shape gpu_shape = {2048, 2048, 2048};
#ifndef GRADER_SMALL
static const struct sgemm_shape simt_shape = {2048, 2048, 256};
enum { SIMT_C = 384, SIMT_T = 32, SIMT_CALLS = 1 };
#else /* the grader's own tests, of submissions that are not about how fast they are */
static const struct sgemm_shape simt_shape = {256, 256, 64};
enum { SIMT_C = 64, SIMT_T = 8, SIMT_CALLS = 2 };
#endif

/* One worker's memory. */
struct kernel_side {
    device_stream stream;
    void *workspace;
    struct sgemm_buffers buffers;
};

/* Weights as B, alpha 1, beta 0; host copies that the submission never sees. */
struct kernel_case {
    struct sgemm_shape shape;
    struct rng rng;
    struct sgemm_data data; /* of the last call */
    float *C;               /* and its result */
    struct kernel_side sides[REMOTE_SIDES];
};

static enum status side_create(struct kernel_side *side, struct sgemm_shape s, bool guarded,
                               struct error *error) {
    TRY(device_stream_create(&side->stream, error));
    TRY(device_alloc(&side->workspace, SGEMM_WORKSPACE_BYTES, error));
    return sgemm_buffers_create(&side->buffers, s, 0, guarded, error);
}

static void side_free(struct kernel_side *side) {
    sgemm_buffers_free(&side->buffers);
    device_free(side->workspace);
    device_stream_destroy(side->stream);
}

static enum status kernel_create(struct kernel_case *k, struct sgemm_shape s, bool guarded,
                                 struct error *error) {
    *k = (struct kernel_case){.shape = s, .rng = grader_rng()};
    k->C = malloc(s.M * s.N * sizeof(float));
    if (k->C == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(side_create(&k->sides[REMOTE_SUBJECT], s, guarded, error));
    TRY(remote_open_side(REMOTE_BASELINE, error));
    return side_create(&k->sides[REMOTE_BASELINE], s, guarded, error);
}

static void kernel_free(struct kernel_case *k) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        side_free(&k->sides[i]);
    }
    sgemm_data_free(&k->data);
    free(k->C);
}

/* Fresh inputs, and nothing of an earlier result, in the worker in use. */
static enum status kernel_renew(struct kernel_case *k, struct kernel_side *side,
                                struct error *error) {
    const struct sgemm_variant weights = {SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0};
    sgemm_data_free(&k->data);
    TRY(sgemm_data_create(&k->data, k->shape, weights, SGEMM_ROWS, CHECKED_ROWS, &k->rng, error));
    return sgemm_buffers_put(&side->buffers, &k->data, error);
}

static double dot(const float *a, const float *b, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

/* The first row, the last one and some drawn at random, element by element. */
static void check_rows(const struct kernel_case *k) {
    const struct sgemm_shape *s = &k->shape;
    for (size_t i = 0; i < k->data.rows && !test_has_failed(); i++) {
        char text[512];
        size_t m = k->data.row[i];
        if (!sgemm_check_row(&k->data, i, k->C + m * s->N, text, sizeof text)) {
            TEST_FAIL("a timed result is wrong: row %zu of %zux%zux%zu: %s", m, s->M, s->N, s->K,
                      text);
        }
    }
}

/* y (K) = x (N) * weight (N, K). */
static void combine_weights(double *y, const struct kernel_case *k, const float *x) {
    memset(y, 0, k->shape.K * sizeof *y);
    for (size_t n = 0; n < k->shape.N; n++) {
        for (size_t i = 0; i < k->shape.K; i++) {
            y[i] += (double)x[n] * (double)k->data.B[n * k->shape.K + i];
        }
    }
}

/*
 * Every element at once: for random x, C * x must be A * (B * x) (Freivalds 1977). One wrong
 * element moves one sum by its own error.
 */
static void check_sums(struct kernel_case *k) {
    const struct sgemm_shape *s = &k->shape;
    float *x = malloc(s->N * sizeof *x), *got = malloc(s->M * sizeof *got);
    double *y = malloc(s->K * sizeof *y), *want = malloc(s->M * sizeof *want);
    EXPECT_TRUE(x != NULL && got != NULL && y != NULL && want != NULL);
    if (x != NULL && got != NULL && y != NULL && want != NULL) {
        rng_fill_normal(&k->rng, x, s->N, 1.0f);
        combine_weights(y, k, x);
        for (size_t m = 0; m < s->M; m++) {
            got[m] = (float)dot(k->C + m * s->N, x, s->N);
            want[m] = 0.0;
            for (size_t i = 0; i < s->K; i++) {
                want[m] += (double)k->data.A[m * s->K + i] * y[i];
            }
        }
        double scale = sqrt((double)s->K * (double)s->N);
        struct comparison result = compare_f32(got, want, s->M, tolerance_dot_f32(s->K, scale));
        if (!result.pass) {
            char text[512];
            comparison_describe(&result, 1, text, sizeof text);
            TEST_FAIL("a timed result is wrong: rows, each summed with random factors: %s", text);
        }
    }
    free(x);
    free(got);
    free(y);
    free(want);
}

static enum status check_result(struct kernel_case *k, struct error *error) {
    const char *wrong;
    TRY(sgemm_buffers_get(&k->sides[REMOTE_SUBJECT].buffers, k->C, &wrong, error));
    if (wrong != NULL) {
        TEST_FAIL("a timed call %s", wrong);
    }
    check_rows(k);
    check_sums(k);
    return STATUS_OK;
}

/* One call by the worker in use. */
static enum status run_kernel(const struct kernel_case *k, const struct kernel_side *side,
                              double *ms, struct error *error) {
    struct sgemm_call call = {.problem = sgemm_buffers_problem(&side->buffers, &k->data),
                              .workspace = side->workspace,
                              .stream = side->stream};
    return remote_call_timed("sgemm", &call, sizeof call, side->stream, ms, error);
}

/* Milliseconds of one call with fresh inputs; the subject's result is checked. */
static double time_call(void *argument, bool subject) {
    struct kernel_case *k = argument;
    const struct sgemm_shape *s = &k->shape;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct kernel_side *side = &k->sides[which];
    struct error error = {0};
    double ms = INFINITY;
    remote_use(which);
    enum status status = kernel_renew(k, side, &error);
    grader_watch(subject ? "kernel, timed" : "kernel, baseline", PATIENCE);
    if (status == STATUS_OK) {
        status = run_kernel(k, side, &ms, &error);
    }
    grader_watch("", 0);
    if (status == STATUS_OK && subject) {
        status = check_result(k, &error);
    }
    if (status == STATUS_OK && subject && !test_has_failed()) {
        remote_check_counted(sgemm_flops(*s), REMOTE_FP32_PRODUCTS);
        remote_check_counted_bytes(sizeof(float) *
                                   (double)(s->M * s->K + s->N * s->K + s->M * s->N));
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%zux%zux%zu: %s", s->M, s->N, s->K, error_text(&error, status));
    }
    return ms;
}

/* Faster than the GPU can multiply: not a record, a mistake. */
static void check_possible(const struct sgemm_shape *s, const struct grader_gpu *gpu, double ms) {
    double flops = sgemm_flops(*s);
    double least = 1e3 * flops / gpu->properties.peak_flops;
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done", ms,
                  least);
    }
}

C_TEST(speedup, kernel) {
    struct grader_gpu gpu;
    struct kernel_case k;
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    ASSERT_DONE(kernel_create(&k, gpu.modelled ? simt_shape : gpu_shape, !gpu.modelled, &error),
                &error);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "kernel");
    const struct work work = {.fp32_flops = sgemm_flops(k.shape)};
    speedup.least = grader_gpu_least_time(&work);
    speedup_measure(&speedup, CALLS, time_call, &k);
    if (!test_has_failed()) {
        check_possible(&k.shape, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    kernel_free(&k);
}

/* BERT-base's layers on a GPU; narrower and fewer on simt. A batch of short sentences. */
struct bert_case {
    struct bert_config config;
    size_t B, T;
};

static struct bert_case bert_case_of(bool modelled) {
    struct bert_config config = remote_bert_config((struct bert_config){
        .C = 768, .hidden = 3072, .L = 6, .NH = 12, .V = 1000, .T = 128, .labels = 2});
    if (modelled) {
        config.C = SIMT_C;
        config.hidden = 2 * SIMT_C;
        config.L = 1;
        config.NH = 8;
        config.T = SIMT_T;
    }
    return (struct bert_case){.config = config, .B = 16, .T = config.T};
}

/* Of the layers' matmuls: q, k and v in one, the output product, and the feed-forward part's two.
 */
static struct work work_of_matmuls(const struct bert_case *c) {
    double C = (double)c->config.C, weights = 4.0 * C * C + 2.0 * C * (double)c->config.hidden;
    double rows = (double)(c->B * c->T), layers = (double)c->config.L;
    return (struct work){.fp32_flops = 2.0 * rows * layers * weights,
                         .launches = (int)(4 * c->config.L + 2)};
}

C_TEST(speedup, end_to_end) {
    enum { MOST_TOKENS = 16 * 128 };
    struct grader_gpu gpu;
    int32_t ids[MOST_TOKENS];
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_case c = bert_case_of(gpu.modelled);
    struct remote_bert_job job = {.config = c.config,
                                  .input = {.ids = ids, .B = c.B, .T = c.T},
                                  .what = "BERT, a batch of sentences",
                                  .seconds = 4 * PATIENCE,
                                  .own = WORKER_NO_MATMUL,
                                  .work = work_of_matmuls(&c)};
    remote_bert_draw(&job, ids, c.B * c.T);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "end_to_end");
    remote_bert_compare(&job, &gpu, &speedup, gpu.modelled ? SIMT_CALLS : CALLS,
                        "BERT with your sgemm");
}
