/*
 * Lab 12, speedup: the product alone, with an epilogue, and BERT in bf16 with it, against the
 * starter's kernel in one run. On a GPU time is measured and the fastest of several calls counts,
 * on both sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>

#include "common/testing/testing.h"
#include "grader/12_tensor_cores/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/12_tensor_cores/problem/problem.h"

static const char lab[] = "12_tensor_cores";

enum { PATIENCE = 60 /* seconds */, CALLS = 7, CHECKED_ROWS = 32 /* on a GPU */ };

#ifndef GRADER_SMALL
#define OF_SIMT(size, small) (size)
#else /* the grader's own tests, of submissions that are not about how fast they are */
#define OF_SIMT(size, small) (small)
#endif

enum { SIMT_C = OF_SIMT(512, 64), SIMT_T = OF_SIMT(32, 8) };

static const struct gemm16_case gpu_plain = {.M = 4096, .N = 4096, .K = 4096};
/* A tile of 128 x 128 for each multiprocessor of an H200. */
static const struct gemm16_case simt_plain = {
    .M = OF_SIMT(1536, 128), .N = OF_SIMT(1408, 128), .K = OF_SIMT(256, 64)};
/* BERT's up-projection. */
static const struct gemm16_case gpu_fused = {.M = 8192, .N = 3072, .K = 768};
/* On GPUs from an A100 on, one wave of two blocks a multiprocessor by tiles of 64 x 64. */
static const struct gemm16_case simt_fused = {
    .M = OF_SIMT(768, 64), .N = OF_SIMT(1024, 128), .K = OF_SIMT(768, 128)};

struct race {
    struct gemm16_case c;
    struct rng rng;
    struct gemm16_data sides[REMOTE_SIDES];
    device_stream streams[REMOTE_SIDES];
};

/* Fresh inputs, and nothing of an earlier result, in the worker in use. */
static enum status renew(struct race *race, enum remote_side which, struct error *error) {
    struct gemm16_case c = race->c;
    c.seed = grader_secret(&race->rng) | 1;
    gemm16_data_free(&race->sides[which]);
    TRY(gemm16_data_create(&race->sides[which], &c, 0, error));
    gemm16_name_tensors(&race->sides[which].problem);
    return gemm16_data_reset(&race->sides[which], error);
}

static enum status time_side(struct race *race, enum remote_side which, double *ms,
                             struct error *error) {
    if (race->streams[which] == NULL) {
        TRY(device_stream_create(&race->streams[which], error));
    }
    TRY(renew(race, which, error));
    const struct gemm16_data *data = &race->sides[which];
    struct gemm16_call call = {data->problem, data->workspace, race->streams[which]};
    return remote_call_timed("gemm16", &call, sizeof call, race->streams[which], ms, error);
}

static void check_result(struct race *race) {
    struct error error = {0};
    char wrong[400];
    enum status status =
        gemm16_data_check(&race->sides[REMOTE_SUBJECT], wrong, sizeof wrong, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else if (wrong[0] != '\0') {
        TEST_FAIL("a timed result is wrong: %s", wrong);
    } else {
        remote_check_counted(gemm16_flops(&race->c), REMOTE_16_BIT_PRODUCTS);
        remote_check_counted_bytes(gemm16_bytes(&race->c));
        remote_check_sent(0.0, (double)race->c.M * (double)race->c.N *
                                   (double)nn_dtype_bytes(race->c.out_dtype));
    }
}

/* Milliseconds of one call with fresh inputs; the subject's result is checked. */
static double time_call(void *argument, bool subject) {
    struct race *race = argument;
    struct error error = {0};
    double ms = INFINITY;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    remote_use(which);
    grader_watch(subject ? "product, timed" : "product, baseline", PATIENCE);
    enum status status = time_side(race, which, &ms, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%zux%zux%zu: %s", race->c.M, race->c.N, race->c.K, error_text(&error, status));
    } else if (subject) {
        check_result(race);
    }
    return ms;
}

/* No GPU multiplies more than 16 times as fast in 16 bits as in fp32. */
static void check_possible(const struct race *race, const struct grader_gpu *gpu, double ms) {
    double least = 1e3 * gemm16_flops(&race->c) / (16.0 * gpu->properties.peak_flops);
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done", ms,
                  least);
    }
}

static void free_race(struct race *race) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        gemm16_data_free(&race->sides[i]);
        device_stream_destroy(race->streams[i]);
    }
}

static void compare(const char *measure, const struct gemm16_case *on_gpu,
                    const struct gemm16_case *on_simt, bool epilogue) {
    struct grader_gpu gpu;
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    struct race race = {.c = gpu.modelled ? *on_simt : *on_gpu, .rng = grader_rng()};
    race.c.dtype = race.c.out_dtype = NN_BF16;
    race.c.bias = race.c.activate = race.c.residual = epilogue;
    race.c.f = NN_GELU_TANH;
    race.c.rows = gpu.modelled ? 0 : CHECKED_ROWS;
    const struct work work = {.tensor_flops = gemm16_flops(&race.c)};
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, measure);
    ASSERT_DONE(remote_open_side(REMOTE_BASELINE, &error), &error);
    if (!grader_gpu_can(&gpu, &work)) {
        return;
    }
    speedup.least = grader_gpu_least_time(&work);
    speedup_measure(&speedup, CALLS, time_call, &race);
    if (!test_has_failed()) {
        check_possible(&race, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    free_race(&race);
}

C_TEST(speedup, kernel) {
    compare("kernel", &gpu_plain, &simt_plain, false);
}

C_TEST(speedup, fused) {
    compare("fused", &gpu_fused, &simt_fused, true);
}

/* Logits of a batch are many, so that all together tell products of fewer bits from those of 16. */
enum { LABELS = 64 };

/* BERT-base's layers on a GPU; narrow ones on simt. */
static struct bert_config bert_config_of(bool modelled) {
    const struct bert_config base = {
        .C = 768, .hidden = 3072, .L = 4, .NH = 12, .V = 1000, .T = 128, .labels = LABELS};
    const struct bert_config narrow = {.C = SIMT_C,
                                       .hidden = 4 * SIMT_C,
                                       .L = 2,
                                       .NH = 4,
                                       .V = 1000,
                                       .T = SIMT_T,
                                       .labels = LABELS};
    return remote_bert_config(modelled ? narrow : base);
}

/* Of the layers' products: q, k and v in one, the output product, and the feed-forward part's two.
   The last layer needs only q, k and v of all rows, and then the first row of each text. */
static struct work work_of_products(const struct bert_config *c, size_t B, size_t T) {
    double C = (double)c->C, layers = (double)c->L, rows = (double)(B * T);
    double qkv = 3.0 * C * C, others = C * C + 2.0 * C * (double)c->hidden;
    return (struct work){
        .tensor_flops = 2.0 * (rows * layers * qkv + (rows * (layers - 1) + (double)B) * others),
        .launches = (int)(4 * c->L)};
}

C_TEST(speedup, end_to_end) {
    enum { MOST_TOKENS = 16 * 128 };
    static int32_t ids[MOST_TOKENS];
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_config config = bert_config_of(gpu.modelled);
    const size_t B = 16, rows = B * config.T;
    struct remote_bert_job job = {.config = config,
                                  .input = {.ids = ids, .B = B, .T = config.T},
                                  .what = "BERT, a batch of sentences",
                                  .seconds = 4 * PATIENCE,
                                  .own = WORKER_NO_MATMUL,
                                  .products = REMOTE_16_BIT_PRODUCTS,
                                  .work = work_of_products(&config, B, config.T)};
    if (!grader_gpu_can(&gpu, &job.work)) {
        return;
    }
    remote_bert_draw(&job, ids, rows);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "end_to_end");
    remote_bert_compare(&job, &gpu, &speedup, gpu.modelled ? 1 : CALLS, "BERT with your gemm16");
}
