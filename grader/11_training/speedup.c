/*
 * Lab 11, speedup: the gradients of LayerNorm and of attention in bf16, AdamW, and whole training
 * steps of BERT, against the starter's functions in one run. On a GPU time is measured and the
 * fastest of several calls counts, on both sides; on simt it is modelled, and one call is as good
 * as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/11_training/calls.h"
#include "grader/11_training/model.h"
#include "grader/11_training/remote.h"
#include "grader/harness/done.h"
#include "grader/harness/gpu.h"
#include "grader/harness/record.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/11_training/problem/adamw.h"
#include "labs/11_training/problem/attention.h"
#include "labs/11_training/problem/norm.h"

static const char lab[] = "11_training";

enum { PATIENCE = 60 /* seconds */, CALLS = 7 };

/* The grader's own tests do not want times: less will do. A head of attention on simt for so many
 * multiprocessors. */
#ifdef GRADER_SMALL
enum { FOR_A_HEAD = 64, TOKENS = 48, SIMT_C = 128 };
#else
enum { FOR_A_HEAD = 8, TOKENS = 256, SIMT_C = 256 };
#endif

static void fail(const char *what, enum status status, const struct error *error,
                 const char *text) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", what, error_text(error, status));
    } else if (text[0] != '\0') {
        TEST_FAIL("a timed result is wrong: %s", text);
    }
}

/* Fails a time in which the bytes could not be written even to a cache three times as fast as
 * memory. */
static void check_bytes(const struct grader_gpu *gpu, double bytes, double ms) {
    double bandwidth = gpu->properties.memory_bandwidth;
    if (bandwidth > 0.0 && ms < 1e3 * bytes / (3.0 * bandwidth)) {
        TEST_FAIL("%.4g ms is less than writing the results takes: the work was not done", ms);
    }
}

/* ---- LayerNorm ---- */

struct norm_race {
    struct norm_case sides[REMOTE_SIDES];
    void *workspace[REMOTE_SIDES];
    struct rng rng;
};

static enum status run_norm(struct norm_race *race, enum remote_side which, double *ms,
                            struct error *error) {
    struct norm_case *c = &race->sides[which];
    TRY(norm_case_draw(c, &race->rng, error));
    const struct layernorm_backward_call call = {norm_case_problem(c), race->workspace[which],
                                                 NULL};
    return remote_call_timed("layernorm_backward", &call, sizeof call, NULL, ms, error);
}

static double time_norm(void *argument, bool subject) {
    struct norm_race *race = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct norm_case *c = &race->sides[which];
    struct error error = {0};
    char text[600] = "";
    double ms = INFINITY;
    remote_use(which);
    grader_watch(c->name, PATIENCE);
    enum status status = run_norm(race, which, &ms, &error);
    grader_watch("", 0);
    if (status == STATUS_OK && subject) {
        const double elements = (double)(c->spec.rows * c->spec.C);
        /* Of an element: part of two sums, and its gradient. */
        remote_check_counted(4.0 * elements, REMOTE_FP32_PRODUCTS);
        remote_check_counted_bytes(6.0 * elements);
        remote_check_sent(0.0, 2.0 * elements);
        status = norm_case_check(c, text, sizeof text, &error);
    }
    fail(c->name, status, &error, text);
    return ms;
}

/*
 * In bf16: dout and in are read once, din is written. On simt rows are few: L2 holds them from what
 * has just written them.
 */
static struct work work_of_norm(const struct grader_gpu *gpu, size_t rows, size_t C) {
    double bytes = 2.0 * (double)(rows * C);
    return (struct work){.read_bytes = 2.0 * bytes, .written_bytes = bytes, .warm = gpu->modelled};
}

C_TEST(speedup, layernorm) {
    struct grader_gpu gpu;
    struct norm_race race = {.rng = grader_rng()};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    /* On simt eight rows a multiprocessor: each GPU has as much to do. */
    const size_t few = 8 * (size_t)gpu.properties.multiprocessors;
    const struct norm_spec spec = {
        .dtype = NN_BF16, .rows = gpu.modelled ? few : 8192, .C = 768, .mean = 0.3};
    for (int i = 0; i < REMOTE_SIDES; i++) {
        ASSERT_DONE(remote_open_side((enum remote_side)i, &error), &error);
        ASSERT_DONE(norm_case_create(&race.sides[i], &spec, false, &error), &error);
        ASSERT_DONE(device_alloc(&race.workspace[i], TRAINING_WORKSPACE_BYTES, &error), &error);
    }
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "layernorm");
    const struct work work = work_of_norm(&gpu, spec.rows, spec.C);
    speedup.least = grader_gpu_least_time(&work);
    if (gpu.modelled) { /* warm caches, as on a GPU */
        (void)time_norm(&race, false);
        (void)time_norm(&race, true);
    }
    speedup_measure(&speedup, CALLS, time_norm, &race);
    if (!test_has_failed()) {
        check_bytes(&gpu, (double)(spec.rows * spec.C) * 2.0, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        norm_case_free(&race.sides[i]);
        device_free(race.workspace[i]);
    }
}

/* ---- Attention ---- */

struct attention_race {
    struct attention_gradient_case sides[REMOTE_SIDES]; /* host memory is the subject's */
    struct rng rng;
};

/* FLOPs of the five products, which every algorithm needs. @param lengths (B): tokens of a text */
static double attention_flops(const int32_t *lengths, size_t B, size_t C) {
    double pairs = 0.0;
    for (size_t b = 0; b < B; b++) {
        pairs += (double)lengths[b] * (double)lengths[b];
    }
    return 5.0 * 2.0 * pairs * (double)C;
}

static double flops_of(const struct attention_gradient_spec *s) {
    return attention_flops(s->lengths, s->B, s->NH * s->HS);
}

static enum status run_attention(struct attention_gradient_case *c, double *ms,
                                 struct error *error) {
    struct attention_backward_call call = {attention_gradient_problem(c), c->scratch, NULL};
    TRY(attention_gradient_send(c, error));
    TRY(remote_attention_backward_problem(&call.problem, error));
    return remote_call_timed("attention_backward", &call, sizeof call, NULL, ms, error);
}

static double time_attention(void *argument, bool subject) {
    struct attention_race *race = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct attention_gradient_case *c = &race->sides[which];
    struct error error = {0};
    char text[700] = "";
    double ms = INFINITY;
    remote_use(which);
    if (!subject) {
        attention_gradient_renew(c, &race->rng);
    }
    grader_watch(c->name, PATIENCE);
    enum status status = run_attention(c, &ms, &error);
    grader_watch("", 0);
    if (status == STATUS_OK && subject) {
        remote_check_counted(flops_of(&c->spec), REMOTE_16_BIT_PRODUCTS);
        remote_check_sent(0.0, 6.0 * (double)(c->rows * c->spec.NH * c->spec.HS));
        status = attention_gradient_check(c, text, sizeof text, &error);
    }
    fail(c->name, status, &error, text);
    return ms;
}

/* By which an element of a gradient may be off, as a share of the largest one: a right one was by
 * 0.0041 in one of four runs on an H200, operands as signed bytes are by 0.0125 on simt. */
static const double ATTENTION_OFF = 0.006;
/* The norm-relative error that a gradient may have: it averages, and has no such outliers. */
static const double ATTENTION_NORM_OFF = 0.008;

/* On simt one text, with a tile of 64 queries for every second multiprocessor. */
static struct attention_gradient_spec timed_attention(const struct grader_gpu *gpu) {
    const bool modelled = gpu->modelled;
    const size_t heads = modelled ? (size_t)gpu->properties.multiprocessors / FOR_A_HEAD : 12;
    struct attention_gradient_spec spec = {.dtype = NN_BF16,
                                           .NH = heads,
                                           .KVH = heads,
                                           .HS = 64,
                                           .joined = true,
                                           .B = modelled ? 1 : 16,
                                           .loudness = 1.0,
                                           .share = ATTENTION_OFF,
                                           .norm = ATTENTION_NORM_OFF};
    for (size_t b = 0; b < spec.B; b++) {
        spec.lengths[b] = 256;
    }
    return spec;
}

C_TEST(speedup, attention) {
    struct grader_gpu gpu;
    struct attention_race race = {.rng = grader_rng()};
    struct attention_gradient_case *sides = race.sides;
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct attention_gradient_spec spec = timed_attention(&gpu);
    const struct work work = {.tensor_flops = flops_of(&spec)};
    if (!grader_gpu_can(&gpu, &work)) {
        return;
    }
    ASSERT_DONE(attention_gradient_create(&sides[REMOTE_SUBJECT], &spec, &race.rng, false, &error),
                &error);
    sides[REMOTE_BASELINE] = sides[REMOTE_SUBJECT];
    ASSERT_DONE(remote_open_side(REMOTE_BASELINE, &error), &error);
    ASSERT_DONE(attention_gradient_place(&sides[REMOTE_BASELINE], &error), &error);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "attention");
    speedup.least = grader_gpu_least_time(&work);
    speedup_measure(&speedup, CALLS, time_attention, &race);
    if (!test_has_failed()) {
        check_bytes(&gpu, 6.0 * (double)(sides[0].rows * spec.NH * spec.HS), speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    remote_use(REMOTE_BASELINE);
    attention_gradient_unplace(&sides[REMOTE_BASELINE]);
    remote_use(REMOTE_SUBJECT);
    attention_gradient_free(&sides[REMOTE_SUBJECT]);
}

/* ---- AdamW ---- */

/* The baseline's turn, which comes first, draws for both. */
struct adamw_race {
    struct adamw_case sides[REMOTE_SIDES]; /* host memory is the subject's */
    struct rng rng;
    double launched; /* the most that a timed call of the subject's took; simt counts it */
};

/* What is written for each call lies in L2, on both sides alike. */
static enum status run_adamw(struct adamw_case *c, double *ms, struct error *error) {
    const struct adamw_call call = {adamw_case_problem(c), NULL};
    TRY(adamw_case_send(c, error));
    return remote_call_timed("adamw", &call, sizeof call, NULL, ms, error);
}

static double time_adamw(void *argument, bool subject) {
    struct adamw_race *race = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct adamw_case *c = &race->sides[which];
    struct error error = {0};
    char text[400] = "";
    double ms = INFINITY;
    remote_use(which);
    if (!subject) {
        adamw_case_renew(c, &race->rng);
    }
    grader_watch(c->name, PATIENCE);
    enum status status = run_adamw(c, &ms, &error);
    grader_watch("", 0);
    if (status == STATUS_OK && subject) {
        const double count = (double)c->spec.count;
        race->launched = fmax(race->launched, remote_counted().launched);
        /* Two moments, a root, a quotient and the decay. */
        remote_check_counted(10.0 * count, REMOTE_FP32_PRODUCTS);
        remote_check_counted_bytes(30.0 * count);
        remote_check_sent(0.0, 14.0 * count);
        status = adamw_case_check(c, text, sizeof text, &error);
    }
    fail(c->name, status, &error, text);
    return ms;
}

/*
 * Gradient, weight and both moments are read, weight, moments and the bf16 copy written: 30 bytes a
 * parameter.
 */
static struct work work_of_adamw(size_t count) {
    return (struct work){.read_bytes = 16.0 * (double)count, .written_bytes = 14.0 * (double)count};
}

/* One step on new numbers. */
static enum status count_and_check(struct adamw_case *c, struct rng *rng, device_stream stream,
                                   size_t *launches, char *text, size_t size, struct error *error) {
    TRY(adamw_case_draw(c, rng, error));
    const struct adamw_call call = {adamw_case_problem(c), stream};
    TRY(remote_count_launches("adamw", &call, sizeof call, stream, launches, error));
    return adamw_case_check(c, text, size, error);
}

/*
 * A GPU with little bandwidth and much L2 runs several passes nearly as fast as one, so time alone
 * does not tell them apart everywhere: launches are counted, too.
 */
static void check_one_pass(struct adamw_case *c, struct rng *rng) {
    struct error error = {0};
    device_stream stream = NULL;
    char text[400] = "";
    size_t launches = 0;
    remote_use(REMOTE_SUBJECT);
    grader_watch(c->name, PATIENCE);
    enum status status = device_stream_create(&stream, &error);
    if (status == STATUS_OK) {
        status = count_and_check(c, rng, stream, &launches, text, sizeof text, &error);
    }
    device_stream_destroy(stream);
    grader_watch("", 0);
    fail(c->name, status, &error, text);
    if (status == STATUS_OK) {
        grade_record_count(launches, 1);
    }
    if (status == STATUS_OK && launches > 1) {
        TEST_FAIL("%s adamw launches too often: %zu launches, at most 1", lab, launches);
    }
}

/* In a graph they cost little, and the call above is not a timed one. */
static void check_timed_launches(double launched) {
    if (!test_has_failed() && launched > 1.0) {
        TEST_FAIL("%s adamw launches too often where it is timed: %.0f launches, at most 1", lab,
                  launched);
    }
}

/*
 * On simt as many as the GPU's memory moves in three microseconds: each GPU has as long to do,
 * about as long as a launch takes. What is larger, and lies in L2 on one GPU but not on another,
 * would compare their caches.
 */
static size_t timed_parameters(const struct grader_gpu *gpu) {
    const double in_time = 3e-6 * gpu->properties.memory_bandwidth / 30.0;
    return gpu->modelled ? (size_t)in_time / 1024 * 1024 : (size_t)1 << 24;
}

C_TEST(speedup, adamw) {
    struct grader_gpu gpu;
    struct adamw_race race = {.rng = grader_rng()};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const size_t count = timed_parameters(&gpu);
    struct adamw_spec spec = adamw_spec_usual(count, count - count / 16);
    spec.step = 7;
    spec.scale = 0.5;
    ASSERT_DONE(adamw_case_create(&race.sides[REMOTE_SUBJECT], &spec, false, &error), &error);
    adamw_case_renew(&race.sides[REMOTE_SUBJECT], &race.rng); /* a recorded baseline has no turn */
    race.sides[REMOTE_BASELINE] = race.sides[REMOTE_SUBJECT];
    ASSERT_DONE(remote_open_side(REMOTE_BASELINE, &error), &error);
    ASSERT_DONE(adamw_case_place(&race.sides[REMOTE_BASELINE], &error), &error);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "adamw");
    const struct work work = work_of_adamw(count);
    speedup.least = grader_gpu_least_time(&work);
    speedup_measure(&speedup, CALLS, time_adamw, &race);
    if (!test_has_failed()) {
        check_bytes(&gpu, (double)count * 14.0, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
        check_timed_launches(race.launched);
        check_one_pass(&race.sides[REMOTE_SUBJECT], &race.rng);
    }
    remote_use(REMOTE_BASELINE);
    adamw_case_unplace(&race.sides[REMOTE_BASELINE]);
    remote_use(REMOTE_SUBJECT);
    adamw_case_free(&race.sides[REMOTE_SUBJECT]);
}

/* ---- Training steps ---- */

struct training_race {
    struct training_job job;
    void *models[REMOTE_SIDES];
    uint64_t first[REMOTE_SIDES]; /* number of the next update */
    struct training_result results[REMOTE_SIDES];
    void *rest;          /* the baseline's model without the lab's functions */
    uint64_t rest_first; /* number of its next update */
    uint64_t calls;      /* of the subject, timed or not */
    uint64_t look_at;    /* the one behind which moments are compared; drawn */
    struct rng rng;
};

/* Weights of the layers' matrices; embeddings, pooler and classifier are few. */
static double matrices_of(const struct bert_config *b) {
    return (double)b->L * (4.0 * (double)(b->C * b->C) + 2.0 * (double)(b->C * b->hidden));
}

/* FLOPs of their products, once forward and twice backward. */
static double flops_of_training(const struct training_job *job) {
    double rows = (double)(job->rows * job->spec.steps);
    return 3.0 * 2.0 * rows * matrices_of(&job->spec.config.bert);
}

static enum status run_training(struct training_race *race, enum remote_side which, double *ms,
                                struct error *error) {
    TRY(training_job_steps(&race->job, race->models[which], race->first[which], ms, error));
    if (which == REMOTE_SUBJECT) {
        remote_check_counted(flops_of_training(&race->job), REMOTE_16_BIT_PRODUCTS);
        remote_check_fetched(sizeof(float) * matrices_of(&race->job.spec.config.bert));
    }
    /* Parameters are compared behind the first updates: later, two right ones drift apart. */
    training_result_free(&race->results[which]);
    return training_job_result(&race->job, race->models[which], race->first[which] == 1,
                               &race->results[which], error);
}

/* One update of a new model by the worker in use, and all that comes of it. */
static enum status run_one_step(const struct training_job *job, struct training_result *result,
                                struct error *error) {
    void *model;
    double ms;
    TRY(training_job_place(job, false, false, &model, error));
    TRY(training_job_steps(job, model, 1, &ms, error));
    return training_job_result(job, model, true, result, error);
}

/*
 * Whether gradients are as fine as the baseline's: a step's size says nothing of them, moments do.
 * Behind one update, as two right ones drift apart in several; and at a call that the submission
 * does not know.
 */
static enum status compare_moments(struct training_race *race, char *text, size_t size,
                                   struct error *error) {
    struct training_job one = race->job;
    struct training_result results[REMOTE_SIDES] = {{0}};
    one.spec.steps = 1;
    one.seed = grader_secret(&race->rng);
    enum status status = STATUS_OK;
    for (int i = 0; i < REMOTE_SIDES && status == STATUS_OK; i++) {
        remote_use((enum remote_side)i);
        status = run_one_step(&one, &results[i], error);
    }
    if (status == STATUS_OK) {
        (void)training_result_close(&one, &results[REMOTE_SUBJECT], &results[REMOTE_BASELINE], text,
                                    size);
    }
    for (int i = 0; i < REMOTE_SIDES; i++) {
        training_result_free(&results[i]);
    }
    remote_use(REMOTE_SUBJECT);
    return status;
}

/*
 * Both sides have trained on the same batches for as many steps, so their losses must agree, and
 * where the first steps moved the parameters: the loss of a step says nothing of its update.
 */
static double time_training(void *argument, bool subject) {
    struct training_race *race = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct error error = {0};
    char text[400] = "";
    double ms = INFINITY;
    remote_use(which);
    if (!subject) {
        training_job_renew(&race->job, &race->rng);
    }
    grader_watch("training steps", PATIENCE);
    enum status status = run_training(race, which, &ms, &error);
    grader_watch("", 0);
    race->first[which] += race->job.spec.steps;
    if (status == STATUS_OK && subject) {
        (void)training_result_close(&race->job, &race->results[which],
                                    &race->results[REMOTE_BASELINE], text, sizeof text);
    }
    if (status == STATUS_OK && subject && text[0] == '\0' && race->job.spec.steps > 1 &&
        race->calls++ == race->look_at) {
        grader_watch("training steps", PATIENCE);
        status = compare_moments(race, text, sizeof text, &error);
        grader_watch("", 0);
    }
    fail("training steps", status, &error, text);
    return ms / (double)race->job.spec.steps;
}

/* On a GPU BERT-base with fewer layers and a narrower feed-forward part; on simt a tiny one. */
static struct training_spec timed_training(bool modelled) {
    const size_t C = modelled ? SIMT_C : 768;
    struct training_spec spec = {.config = {.task = TRAIN_CLASSIFY,
                                            .bert = {.C = C,
                                                     .hidden = modelled ? C : 2 * C,
                                                     .L = modelled ? 1 : 4,
                                                     .NH = C / 64,
                                                     .V = 1000,
                                                     .T = TOKENS,
                                                     .types = 2,
                                                     .labels = 2,
                                                     .norm_eps = 1e-12f,
                                                     .activation = NN_GELU},
                                            .dropout = 0.1f,
                                            .most_rows = 4096,
                                            .most_sequences = 16},
                                 .dtype = NN_BF16,
                                 .B = modelled ? 3 : 16,
                                 .steps = modelled ? 1 : 4,
                                 .rate = 1e-4f};
    for (size_t b = 0; b < spec.B; b++) {
        spec.lengths[b] = TOKENS;
    }
    return spec;
}

/* A step's time without the lab's functions: what a submission cannot change. */
static double time_rest(struct training_race *race, int calls) {
    struct error error = {0};
    double best = INFINITY;
    remote_use(REMOTE_BASELINE);
    grader_watch("training steps without the gradients", PATIENCE);
    for (int i = 0; i < calls && !test_has_failed(); i++) {
        double ms = INFINITY;
        enum status status =
            training_job_steps(&race->job, race->rest, race->rest_first, &ms, &error);
        race->rest_first += race->job.spec.steps;
        fail("training steps without the gradients", status, &error, "");
        best = fmin(best, ms);
    }
    grader_watch("", 0);
    return best / (double)race->job.spec.steps;
}

static void check_copy(const struct training_race *race) {
    struct error error = {0};
    char text[400] = "";
    remote_use(REMOTE_SUBJECT);
    enum status status = training_job_check_copy(&race->job, race->models[REMOTE_SUBJECT], text,
                                                 sizeof text, &error);
    fail("training steps", status, &error, text);
}

/* Of a step: two norms a layer and the embeddings', attention of each layer, and AdamW once. */
static struct least_time least_time_of_step(const struct training_race *race,
                                            const struct grader_gpu *gpu, double rest_ms) {
    const struct training_spec *s = &race->job.spec;
    const struct bert_config *b = &s->config.bert;
    struct work norms = work_of_norm(gpu, race->job.rows, b->C);
    struct work attention = {.tensor_flops = attention_flops(s->lengths, s->B, b->C)};
    const double embeddings = (double)((b->V + b->T + b->types) * b->C);
    struct work adamw = work_of_adamw((size_t)(matrices_of(b) + embeddings));
    norms.times = (int)(2 * b->L + 1);
    attention.times = (int)b->L;
    norms.rest_ms = attention.rest_ms = adamw.rest_ms = rest_ms;
    return least_time_sum(
        least_time_sum(grader_gpu_least_time(&norms), grader_gpu_least_time(&attention)),
        grader_gpu_least_time(&adamw));
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    struct training_race race = {.first = {1, 1}, .rest_first = 1, .rng = grader_rng()};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct training_spec spec = timed_training(gpu.modelled);
    const struct work any = {.tensor_flops = 1.0};
    if (!grader_gpu_can(&gpu, &any)) {
        return;
    }
    ASSERT_DONE(training_job_create(&race.job, &spec, &race.rng, &error), &error);
    race.look_at = rng_below(&race.rng, (uint64_t)speedup_calls(CALLS) + 1);
    for (int i = 0; i < REMOTE_SIDES; i++) {
        ASSERT_DONE(remote_open_side((enum remote_side)i, &error), &error);
        ASSERT_DONE(
            training_job_place(&race.job, false, i == REMOTE_SUBJECT, &race.models[i], &error),
            &error);
    }
    ASSERT_DONE(training_job_place(&race.job, true, false, &race.rest, &error),
                &error); /* the baseline's worker */
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "end_to_end");
    speedup.rest_ms = time_rest(&race, gpu.modelled ? 1 : speedup_calls(CALLS) + 1);
    speedup.least = least_time_of_step(&race, &gpu, speedup.rest_ms);
    speedup_measure(&speedup, CALLS, time_training, &race);
    if (!test_has_failed()) {
        check_copy(&race);
    }
    if (!test_has_failed()) { /* AdamW writes weights, copy and moments */
        check_bytes(&gpu, 14.0 * matrices_of(&spec.config.bert), speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    for (int i = 0; i < REMOTE_SIDES; i++) {
        training_result_free(&race.results[i]);
    }
    training_job_free(&race.job);
}
