/*
 * Lab 06, speedup: launches of each operation, time of the linear layers of a BERT layer beyond
 * their matmuls, and BERT. On a GPU time is measured and the fastest of several calls counts, on
 * both sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/bench.h"
#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/06_fused_epilogues/calls.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/06_fused_epilogues/problem/case.h"

static const char lab[] = "06_fused_epilogues";

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PATIENCE = 40 /* seconds */, CALLS = 7, SENTENCES = 16, TOKENS = 32, LABELS = 2 };

/* Rows whose products are computed here, of which all others are mixes; a BERT layer's rows and
   width. */
enum { COMPUTED_ROWS = 32, GPU_ROWS = 8192, GPU_C = 768, SIMT_ROWS = 512, SIMT_C = 128 };

/* A model counts as slower below this: five in a hundred are noise. */
static const double SLOWEST_MODEL = 0.95;

static const struct fused_flavour flavour = {.f = NN_GELU, .eps = 1e-5f};
static const struct fused_flavour coarse = {.f = NN_GELU, .eps = 1e-5f, .coarse = true};

/* One operation on the device of the worker in use. */
struct timed_call {
    struct fused_case c;
    void *workspace;
    device_stream stream;
};

static enum status call_create(struct timed_call *t, struct rng *rng, bool guarded,
                               struct error *error) {
    TRY(device_stream_create(&t->stream, error));
    TRY(device_alloc(&t->workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(t->workspace, 0, FUSED_ZERO_BYTES, NULL, error));
    TRY(device_synchronize(NULL, error));
    return fused_case_create(&t->c, rng, guarded, error);
}

static void call_free(struct timed_call *t) {
    fused_case_free(&t->c);
    device_free(t->workspace);
    device_stream_destroy(t->stream);
}

static struct fused_call arguments_of(const struct timed_call *t) {
    return (struct fused_call){t->c.problem, t->workspace, t->stream};
}

/* A wrong result fails the test. */
static enum status check_result(struct timed_call *t, struct error *error) {
    char wrong[400];
    TRY(fused_case_check(&t->c, wrong, sizeof wrong, error));
    if (wrong[0] != '\0') {
        TEST_FAIL("%s: %s", t->c.name, wrong);
    }
    return STATUS_OK;
}

/* The most launches of each operation, as the contract says. */
static const size_t most_launches[FUSED_OPS] = {2, 2, 2, 2, 2, 1, 1};

/* With many rows, and with so few that K may be split. */
static const struct fused_shape launch_shapes[] = {{256, 96, 64}, {24, 96, 384}, {1, 64, 64}};

/* Runs a problem that is new. @param launches receives how many it took, or NULL */
static enum status run_and_check(struct timed_call *t, struct rng *rng, size_t *launches,
                                 struct error *error) {
    TRY(call_create(t, rng, false, error));
    struct fused_call call = arguments_of(t);
    grader_watch(t->c.name, PATIENCE);
    if (launches == NULL) {
        TRY(remote_call("fused", &call, sizeof call, error));
        TRY(device_synchronize(t->stream, error));
    } else {
        TRY(remote_count_launches("fused", &call, sizeof call, t->stream, launches, error));
    }
    return check_result(t, error);
}

/* A first call may do what none behind it has to. */
static void check_launches(enum fused_op op, struct fused_shape shape, struct rng *rng) {
    const struct timed_call pattern = {.c = {.op = op, .shape = shape, .flavour = flavour}};
    struct timed_call first = pattern, t = pattern;
    struct error error = {0};
    size_t launches = 0;
    enum status status = run_and_check(&first, rng, NULL, &error);
    if (status == STATUS_OK) {
        status = run_and_check(&t, rng, &launches, &error);
    }
    grader_watch("", 0);
    call_free(&first);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t.c.name, error_text(&error, status));
    } else if (launches == 0) {
        TEST_FAIL("%s, %s: no launch was seen: the work was not done on the GPU", lab, t.c.name);
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
    struct rng rng = grader_rng();
    for (int op = 0; op < FUSED_OPS; op++) {
        for (size_t i = 0; i < COUNT(launch_shapes); i++) {
            check_launches((enum fused_op)op, launch_shapes[i], &rng);
        }
    }
}

/* One linear layer; both sides have values of their own. */
struct layer {
    struct fused_case pattern;
    struct rng rng;
    bool modelled;
};

/*
 * One call; its output's place holds NaN before. The subject's is on values that no call has had,
 * and what it computes is checked. The baseline's own values are only written again: who draws them
 * is us, and the L2 cache holds as much of them.
 */
static enum status time_once(struct timed_call *t, const char *name, struct layer *layer,
                             bool subject, double *ms, struct error *error) {
    const struct device_bench_options once = {.min_runs = 1, .max_runs = 1};
    const struct fused_call call = arguments_of(t);
    struct bench_timing timing;
    TRY(subject ? fused_case_redraw(&t->c, &layer->rng, error) : fused_case_put(&t->c, error));
    TRY(remote_bench(&once, name, &call, sizeof call, t->stream, &timing, error));
    *ms = timing.median_ms;
    return subject ? check_result(t, error) : STATUS_OK;
}

/* Adds the milliseconds of a call: the median of some on a GPU, modelled on simt; a first one warms
   up. */
static enum status time_call(struct timed_call *t, const char *name, struct layer *layer,
                             bool subject, double *ms, struct error *error) {
    double seconds[2 * CALLS + 1];
    const int runs = layer->modelled ? 1 : 2 * speedup_calls(CALLS) + 1; /* the median is one */
    for (int i = -1; i < runs; i++) {
        double one = 0.0;
        TRY(time_once(t, name, layer, subject, &one, error));
        seconds[i < 0 ? 0 : i] = 1e-3 * one;
    }
    *ms += bench_summarise(seconds, runs).median_ms;
    return STATUS_OK;
}

/* Milliseconds of the matmuls alone, of single operators, and of the subject. */
struct times {
    double matmul, baseline, subject;
    const char *often; /* what took more launches than it may, or NULL; simt counts them */
    double launches;
    size_t most;
};

static double flops_of(const struct fused_problem *p) {
    return 2.0 * (double)p->M * (double)p->N * (double)p->K;
}

/* Input and weight are read once, the result is written. */
static double bytes_of(const struct fused_problem *p) {
    return sizeof(float) * (double)(p->M * p->K + p->N * p->K + p->M * p->N);
}

/* The shortest time that the GPU's fp32 units allow for the product. */
static double least_ms(const struct fused_problem *p, const struct grader_gpu *gpu) {
    return 1e3 * flops_of(p) / gpu->properties.peak_flops;
}

static enum status time_baseline(struct timed_call *t, struct layer *layer, struct times *times,
                                 struct error *error) {
    TRY(remote_open_side(REMOTE_BASELINE, error));
    TRY(call_create(t, &layer->rng, !layer->modelled, error));
    TRY(time_call(t, "plain_matmul", layer, false, &times->matmul, error));
    return time_call(t, "fused", layer, false, &times->baseline, error);
}

/* A graph's nodes cost little; but launches are what these operations are to save. */
static void note_launches(struct times *times, const struct fused_case *c) {
    double launches = remote_counted().launched;
    if (launches > (double)most_launches[c->op]) {
        times->often = c->name;
        times->launches = launches;
        times->most = most_launches[c->op];
    }
}

static enum status time_subject(struct timed_call *t, struct layer *layer,
                                const struct grader_gpu *gpu, struct times *times,
                                struct error *error) {
    double ms = 0.0;
    remote_use(REMOTE_SUBJECT);
    TRY(call_create(t, &layer->rng, !layer->modelled, error));
    grader_watch(t->c.name, PATIENCE);
    TRY(time_call(t, "fused", layer, true, &ms, error));
    remote_check_most_counted(flops_of(&t->c.problem), REMOTE_FP32_PRODUCTS); /* rows are mixes */
    remote_check_counted_bytes(bytes_of(&t->c.problem));
    remote_check_sent(0.0, sizeof(float) * (double)(t->c.problem.M * t->c.problem.N));
    double least = least_ms(&t->c.problem, gpu);
    if (ms < 0.9 * least) {
        TEST_FAIL("%s: %.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done",
                  t->c.name, ms, least);
    }
    times->subject += ms;
    note_launches(times, &t->c);
    return STATUS_OK;
}

static enum status time_layer(struct layer *layer, const struct grader_gpu *gpu,
                              struct times *times, struct error *error) {
    struct timed_call baseline = {.c = layer->pattern}, subject = {.c = layer->pattern};
    enum status status = time_baseline(&baseline, layer, times, error);
    call_free(&baseline);
    if (status == STATUS_OK) {
        status = time_subject(&subject, layer, gpu, times, error);
        grader_watch("", 0);
        call_free(&subject);
    }
    return status;
}

/* The four linear layers of a BERT layer of width C, for as many tokens as rows. */
static enum status time_layers(size_t C, size_t rows, const struct grader_gpu *gpu,
                               struct times *times, struct error *error) {
    const struct {
        enum fused_op op;
        size_t N, K;
    } layers[] = {{FUSED_LINEAR, 3 * C, C},
                  {FUSED_LINEAR_ADD_NORM, C, C},
                  {FUSED_LINEAR_ACTIVATION, 4 * C, C},
                  {FUSED_LINEAR_ADD_NORM, C, 4 * C}};
    struct rng rng = grader_rng();
    for (size_t i = 0; i < COUNT(layers); i++) {
        struct layer layer = {.pattern = {.op = layers[i].op,
                                          .shape = {COMPUTED_ROWS, layers[i].N, layers[i].K},
                                          .flavour = coarse,
                                          .rows = rows,
                                          .mixed = true},
                              .rng = rng_create(rng_u64(&rng)),
                              .modelled = gpu->modelled};
        TRY(time_layer(&layer, gpu, times, error));
    }
    return STATUS_OK;
}

/*
 * What the four layers do beyond their matmuls, which write the same outputs: two of them read the
 * residual stream, and may take a launch more between them. Biases and norms' weights are few.
 */
static struct work work_beyond_matmuls(const struct grader_gpu *gpu) {
    double C = gpu->modelled ? SIMT_C : GPU_C, rows = gpu->modelled ? SIMT_ROWS : GPU_ROWS;
    return (struct work){.read_bytes = 2.0 * rows * C * sizeof(float), .warm = true, .launches = 2};
}

C_TEST(speedup, epilogues) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct times times = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    enum status status = time_layers(gpu.modelled ? SIMT_C : GPU_C,
                                     gpu.modelled ? SIMT_ROWS : GPU_ROWS, &gpu, &times, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    if (test_has_failed()) {
        return;
    }
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "epilogues");
    printf("the matmuls alone: %.4g ms, with single operators %.4g ms, with yours %.4g ms\n",
           times.matmul, times.baseline, times.subject);
    /* Differences below a hundredth of the matmuls are noise. */
    speedup.baseline_ms = times.baseline - times.matmul;
    speedup.subject_ms = fmax(times.subject - times.matmul, 0.01 * times.matmul);
    const struct work work = work_beyond_matmuls(&gpu);
    speedup.least = grader_gpu_least_time(&work);
    speedup.least.fixed_ms = 0.01 * times.matmul;
    speedup_check(&speedup, __FILE__, __LINE__);
    if (!test_has_failed() && times.often != NULL) {
        TEST_FAIL("%s launches too often where it is timed: %s: %.0f launches and copies, at most "
                  "%zu",
                  lab, times.often, times.launches, times.most);
    }
}

/* BERT's width and feed-forward part; layers and tokens as the time allows. */
static struct bert_config bert_config_of(bool modelled) {
    const struct bert_config narrow = {
        .C = 192, .hidden = 768, .L = 1, .NH = 3, .V = 1000, .T = TOKENS, .labels = LABELS};
    const struct bert_config base = {
        .C = 768, .hidden = 3072, .L = 4, .NH = 12, .V = 1000, .T = TOKENS, .labels = LABELS};
    return remote_bert_config(modelled ? narrow : base);
}

/* One batch with the stage below, one with the subject's operations. */
static void compare_models(const struct remote_bert_job *job, const struct grader_gpu *gpu) {
    float want[CALLS * SENTENCES * LABELS] = {0}, got[CALLS * SENTENCES * LABELS] = {0};
    int calls = gpu->modelled ? 1 : speedup_calls(CALLS);
    double below = remote_bert_fastest(job, REMOTE_BASELINE, calls, want);
    double subject = remote_bert_fastest(job, REMOTE_SUBJECT, calls, got);
    if (test_has_failed()) {
        return;
    }
    grader_check_logits(got, want, (size_t)calls * SENTENCES * LABELS, "your fused operations");
    remote_bert_check_possible(job, gpu, subject);
    if (test_has_failed()) {
        return;
    }
    printf("%s BERT: the stage below %.4g ms, yours %.4g ms: %.2fx (%s)\n", lab, below, subject,
           below / subject, gpu->clock);
    if (below / subject < SLOWEST_MODEL) {
        TEST_FAIL("%s slows BERT down: the stage below, which fuses nothing, takes %.4g ms, yours "
                  "%.4g ms (%s)",
                  lab, below, subject, gpu->clock);
    }
}

/* Operations that are faster alone must not make the model slower. */
C_TEST(speedup, model_is_not_slower) {
    struct grader_gpu gpu;
    int32_t ids[SENTENCES * TOKENS];
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    struct remote_bert_job job = {.config = bert_config_of(gpu.modelled),
                                  .input = {.ids = ids, .B = SENTENCES, .T = TOKENS},
                                  .what = "BERT, a batch",
                                  .seconds = 4 * PATIENCE};
    remote_bert_draw(&job, ids, SENTENCES * TOKENS);
    compare_models(&job, &gpu);
}
