/*
 * Lab 06, speedup: launches of each operation, what the linear layers of a BERT layer take beyond
 * their matmuls, and BERT. On a GPU time is measured and the fastest of several calls counts, on
 * both sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/device_launches.h"
#include "common/device/device.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "common/testing/testing.h"
#include "grader/bert_batch.h"
#include "grader/cases/06_fused_epilogues_baseline.h"
#include "grader/cases/06_fused_epilogues_case.h"
#include "grader/foreign.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/06_fused_epilogues/engine.h"

static const char lab[] = "06_fused_epilogues";

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATIENCE = 40 /* seconds */, CALLS = 9, SENTENCES = 16, TOKENS = 32, LABELS = 2 };

/* Different rows, how often each is there, and a BERT layer's width. */
enum { ROWS = 32, GPU_COPIES = 256, GPU_C = 768, SIMT_COPIES = 16, SIMT_C = 128 };

/* A model counts as slower below this: five in a hundred are noise. */
static const double SLOWEST_MODEL = 0.95;

static const struct fused_flavour flavour = {.f = NN_GELU, .eps = 1e-5f};

/* One operation on the device, and what to call. */
struct timed_call {
    struct fused_case c;
    fused_function *run;
    void *workspace;
};

static enum status call_create(struct timed_call *t, struct rng *rng, bool guarded,
                               struct error *error) {
    TRY(device_alloc(&t->workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(t->workspace, 0, FUSED_ZERO_BYTES, NULL, error));
    TRY(device_synchronize(NULL, error));
    return fused_case_create(&t->c, rng, guarded, error);
}

static void call_free(struct timed_call *t) {
    fused_case_free(&t->c);
    device_free(t->workspace);
    grader_check_own_work();
}

static enum status run_call(void *argument, device_stream stream, struct error *error) {
    const struct timed_call *t = argument;
    return t->run(&t->c.problem, t->workspace, stream, error);
}

/* The most launches of each operation, as the contract says. */
static const size_t most_launches[FUSED_OPS] = {2, 2, 2, 2, 2, 1, 1};

/* With many rows, and with so few that K may be split. */
static const struct fused_shape launch_shapes[] = {{256, 96, 64}, {24, 96, 384}, {1, 64, 64}};

static enum status count_launches(struct timed_call *t, struct rng *rng, size_t *launches,
                                  struct error *error) {
    TRY(call_create(t, rng, false, error));
    grader_watch(t->c.name, PATIENCE);
    TRY(run_call(t, NULL, error));
    TRY(device_synchronize(NULL, error));
    TRY(fused_case_check(&t->c, error));
    return device_count_launches(run_call, t, launches, error);
}

static void check_launches(enum fused_op op, struct fused_shape shape, struct rng *rng) {
    struct timed_call t = {.c = {.op = op, .shape = shape, .flavour = flavour},
                           .run = fused_epilogues};
    struct error error = {0};
    size_t launches = 0;
    enum status status = count_launches(&t, rng, &launches, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t.c.name, error_text(&error, status));
    } else if (launches > most_launches[op]) {
        TEST_FAIL("%s launches too often: %s: %zu launches, at most %zu", lab, t.c.name, launches,
                  most_launches[op]);
    } else {
        printf("%s launches, %s: %zu, at most %zu\n", lab, t.c.name, launches, most_launches[op]);
    }
    call_free(&t);
}

C_TEST(speedup, launches) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    struct rng rng = rng_create(grader_seed());
    for (int op = 0; op < FUSED_OPS; op++) {
        for (size_t i = 0; i < COUNT(launch_shapes); i++) {
            check_launches((enum fused_op)op, launch_shapes[i], &rng);
        }
    }
}

/* Milliseconds of a call: the median of many on a GPU, modelled on simt. */
static enum status time_call(struct timed_call *t, fused_function *run, double *ms,
                             struct error *error) {
    struct bench_timing timing;
    struct device_bench_options options = device_bench_defaults();
    t->run = run;
    TRY(device_bench_run(&options, run_call, t, NULL, &timing, error));
    *ms += timing.median_ms;
    return STATUS_OK;
}

/* Milliseconds of the matmuls alone, of single operators, and of the subject. */
struct times {
    double matmul, baseline, subject;
};

static enum status time_layer(struct timed_call *t, struct rng *rng, bool modelled,
                              struct times *times, struct error *error) {
    TRY(call_create(t, rng, !modelled, error));
    grader_watch(t->c.name, PATIENCE);
    TRY(time_call(t, fused_plain_matmul, &times->matmul, error));
    TRY(time_call(t, fused_baseline, &times->baseline, error));
    TRY(time_call(t, fused_epilogues, &times->subject, error));
    return fused_case_check(&t->c, error);
}

/* The four linear layers of a BERT layer of width C, for copies * ROWS tokens. */
static enum status time_layers(size_t C, size_t copies, bool modelled, struct times *times,
                               struct error *error) {
    const struct {
        enum fused_op op;
        size_t N, K;
    } layers[] = {{FUSED_LINEAR, 3 * C, C},
                  {FUSED_LINEAR_ADD_NORM, C, C},
                  {FUSED_LINEAR_ACTIVATION, 4 * C, C},
                  {FUSED_LINEAR_ADD_NORM, C, 4 * C}};
    struct rng rng = rng_create(grader_seed());
    enum status status = STATUS_OK;
    for (size_t i = 0; i < COUNT(layers) && status == STATUS_OK; i++) {
        struct timed_call t = {.c = {.op = layers[i].op,
                                     .shape = {ROWS, layers[i].N, layers[i].K},
                                     .flavour = flavour,
                                     .copies = copies}};
        status = time_layer(&t, &rng, modelled, times, error);
        grader_watch("", 0);
        call_free(&t);
    }
    return status;
}

C_TEST(speedup, epilogues) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct times times = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    enum status status =
        time_layers(gpu.modelled ? SIMT_C : GPU_C, gpu.modelled ? SIMT_COPIES : GPU_COPIES,
                    gpu.modelled, &times, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return;
    }
    struct speedup speedup =
        grader_gpu_speedup(&gpu, lab, "epilogues", GRADER_SUBJECT, GRADER_MARGIN);
    printf("the matmuls alone: %.4g ms, with single operators %.4g ms, with yours %.4g ms\n",
           times.matmul, times.baseline, times.subject);
    /* Differences below a hundredth of the matmuls are noise. */
    speedup.baseline_ms = times.baseline - times.matmul;
    speedup.subject_ms = fmax(times.subject - times.matmul, 0.01 * times.matmul);
    speedup_check(&speedup, __FILE__, __LINE__);
}

/* BERT's width and feed-forward part; layers and tokens as the time allows. */
static struct bert_config bert_config_of(bool modelled) {
    return (struct bert_config){.C = modelled ? 192 : 768,
                                .hidden = modelled ? 768 : 3072,
                                .L = modelled ? 1 : 4,
                                .NH = modelled ? 3 : 12,
                                .V = 1000,
                                .T = TOKENS,
                                .types = 2,
                                .labels = LABELS,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

struct batch {
    double ms;
    float logits[SENTENCES * LABELS];
};

/* One batch with the stage below, one with the subject's operations. */
static enum status time_models(const struct bert_random *random, const struct bert_input *input,
                               bool modelled, struct batch *below, struct batch *subject,
                               struct error *error) {
    struct engine engine;
    int calls = modelled ? 1 : CALLS;
    TRY(engine_unfused_create(&engine, error));
    enum status status =
        bert_batch_time(random, &engine, input, calls, below->logits, &below->ms, error);
    engine_destroy(&engine);
    TRY(status);
    TRY(engine_fused_create(&engine, error));
    status = bert_batch_time(random, &engine, input, calls, subject->logits, &subject->ms, error);
    engine_destroy(&engine);
    return status;
}

static enum status compare_models(const struct grader_gpu *gpu, struct error *error) {
    int32_t ids[SENTENCES * TOKENS];
    struct batch below, subject;
    struct bert_random random;
    const struct bert_config config = bert_config_of(gpu->modelled);
    struct rng rng = rng_create(grader_seed());
    for (int i = 0; i < SENTENCES * TOKENS; i++) {
        ids[i] = (int32_t)rng_below(&rng, config.V);
    }
    const struct bert_input input = {.ids = ids, .B = SENTENCES, .T = TOKENS};
    TRY(bert_random_create(&random, &config, 3));
    grader_watch("BERT, a batch", 4 * PATIENCE);
    enum status status = time_models(&random, &input, gpu->modelled, &below, &subject, error);
    grader_watch("", 0);
    bert_random_free(&random);
    TRY(status);
    grader_check_logits(subject.logits, below.logits, SENTENCES * LABELS, "your fused operations");
    double ratio = below.ms / subject.ms;
    printf("%s BERT: the stage below %.4g ms, yours %.4g ms: %.2fx (%s)\n", lab, below.ms,
           subject.ms, ratio, gpu->clock);
    if (ratio < SLOWEST_MODEL) {
        TEST_FAIL("%s slows BERT down: the stage below, which fuses nothing, takes %.4g ms, yours "
                  "%.4g ms (%s)",
                  lab, below.ms, subject.ms, gpu->clock);
    }
    return STATUS_OK;
}

/* What is faster alone and slower in the model is not faster. */
C_TEST(speedup, model_is_not_slower) {
    struct grader_gpu gpu;
    struct error error = {0};
    if (grader_gpu_open_for_timing(&gpu)) {
        enum status status = compare_models(&gpu, &error);
        if (status != STATUS_OK) {
            TEST_FAIL("BERT: %s", error_text(&error, status));
        }
    }
}
