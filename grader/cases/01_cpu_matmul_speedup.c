/*
 * Lab 01, speedup: the kernel and the model against the naive triple loop, in
 * one run. The fastest of several calls counts, on both sides: what else the
 * machine does can only add time.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/rng.h"
#include "common/bench/bench.h"
#include "common/model/engine.h"
#include "common/model/llama2.h"
#include "common/model/llama2_random.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "grader/inputs.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/01_cpu_matmul/engine.h"
#include "labs/01_cpu_matmul/matmul.h"

static const char lab[] = "01_cpu_matmul";

/* The baseline: what the starter does. */
static enum status naive_matmul(float *out, const float *in, const float *weight, size_t M,
                                size_t N, size_t K, int threads) {
    (void)threads;
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (size_t k = 0; k < K; k++) {
                sum += in[m * K + k] * weight[n * K + k];
            }
            out[m * N + n] = sum;
        }
    }
    return STATUS_OK;
}

enum { SIZE = 512, INPUTS = 3, CALLS = 9, PATIENCE = 20 /* seconds */ };

/* Inputs of the kernel measurement: a call never sees the input of the call before. */
struct kernel_case {
    struct guarded in[INPUTS], weight[INPUTS], out;
    double *want;
};

static bool kernel_create(struct kernel_case *c) {
    bool good = guarded_create(&c->out, SIZE * SIZE) == STATUS_OK;
    for (int i = 0; i < INPUTS && good; i++) {
        good = guarded_create(&c->in[i], SIZE * SIZE) == STATUS_OK &&
               guarded_create(&c->weight[i], SIZE * SIZE) == STATUS_OK;
    }
    c->want = malloc(SIZE * SIZE * sizeof(double));
    return good && c->want != NULL;
}

static void kernel_free(struct kernel_case *c) {
    guarded_free(&c->out);
    for (int i = 0; i < INPUTS; i++) {
        guarded_free(&c->in[i]);
        guarded_free(&c->weight[i]);
    }
    free(c->want);
}

/* Every timed result of the subject is checked against the oracle. */
static void check_result(const struct kernel_case *c, int input) {
    nn_matmul_f64(c->want, c->in[input].data, c->weight[input].data, SIZE, SIZE, SIZE);
    struct comparison result =
        compare_f32(c->out.data, c->want, SIZE * SIZE, tolerance_dot_f32(SIZE, sqrt((double)SIZE)));
    if (!result.pass || !guarded_intact(&c->out)) {
        char text[512];
        comparison_describe(&result, SIZE, text, sizeof text);
        TEST_FAIL("a timed result is wrong: shape M=%d N=%d K=%d: %s", SIZE, SIZE, SIZE, text);
    }
}

/* One call with fresh inputs, in seconds. */
static double time_call(struct kernel_case *c, cpu_matmul_function *matmul, struct rng *rng,
                        bool check) {
    int input = (int)rng_below(rng, INPUTS);
    grader_fill(rng, c->in[input].data, SIZE, SIZE);
    grader_fill(rng, c->weight[input].data, SIZE, SIZE);
    guarded_poison(&c->out);
    grader_watch("kernel, shape M=512 N=512 K=512", PATIENCE);
    double start = bench_now();
    enum status status = matmul(c->out.data, c->in[input].data, c->weight[input].data, SIZE, SIZE,
                                SIZE, bench_cpu_count());
    double seconds = bench_now() - start;
    grader_watch("", 0);
    EXPECT_OK(status);
    if (check) {
        check_result(c, input);
    }
    return seconds;
}

C_TEST(speedup, kernel) {
    struct rng rng = rng_create(grader_seed());
    struct kernel_case c = {0};
    ASSERT_TRUE(kernel_create(&c));
    EXPECT_OK(cpu_matmul(c.out.data, c.in[0].data, c.weight[0].data, 1, SIZE, SIZE,
                         bench_cpu_count())); /* starts the threads */
    double baseline[CALLS], subject[CALLS];
    for (int i = 0; i < CALLS && !test_has_failed(); i++) {
        baseline[i] = time_call(&c, naive_matmul, &rng, false);
        subject[i] = time_call(&c, cpu_matmul, &rng, true);
    }
    if (!test_has_failed()) {
        const struct speedup speedup = {.lab = lab,
                                        .subject = GRADER_SUBJECT,
                                        .measure = "kernel",
                                        .margin = GRADER_MARGIN,
                                        .baseline_ms = bench_summarise(baseline, CALLS).min_ms,
                                        .subject_ms = bench_summarise(subject, CALLS).min_ms};
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    kernel_free(&c);
}

static enum status naive_entry(void *context, float *out, const float *in, const float *weight,
                               size_t M, size_t N, size_t K) {
    (void)context;
    return naive_matmul(out, in, weight, M, N, K, 1);
}

enum { DECODE_TOKENS = 24, DECODE_ROUNDS = 5 };

/* Fastest decode step, in ms; logits receives those of the last step. */
static double time_decode(const struct engine *engine, const struct llama2_random *model,
                          float *logits) {
    struct llama2 *llama2;
    double seconds[DECODE_TOKENS];
    grader_watch("Llama2 decode, 15M shape", PATIENCE);
    enum status status = llama2_create(&llama2, &model->config, &model->weights, engine, 1, NULL);
    for (size_t i = 0; i < DECODE_TOKENS && status == STATUS_OK; i++) {
        int32_t token = (int32_t)(1 + 977 * (i % 32));
        double start = bench_now();
        status = llama2_forward(llama2, &token, 1, i, logits);
        seconds[i] = bench_now() - start;
    }
    grader_watch("", 0);
    EXPECT_OK(status);
    llama2_free(llama2);
    return status == STATUS_OK ? bench_summarise(seconds, DECODE_TOKENS).min_ms : NAN;
}

static void check_logits(const float *got, const float *want, size_t V) {
    double worst = 0.0;
    double largest = 0.0;
    for (size_t i = 0; i < V; i++) {
        double difference = isfinite(got[i]) ? fabs((double)got[i] - want[i]) : INFINITY;
        worst = difference > worst ? difference : worst;
        largest = fabs(want[i]) > largest ? fabs(want[i]) : largest;
    }
    if (!(worst <= 1e-4 * largest)) {
        TEST_FAIL("decoding with your matmul gives other logits: worst difference %.3g of %.3g",
                  worst, largest);
    }
}

/*
 * Threads that wait for each other suffer most from other work on the machine. So a speedup that
 * was missed is measured again a little later, on both sides; the fastest step of all rounds
 * counts.
 */
static void measure_decode(struct speedup *speedup, const struct engine *naive,
                           const struct engine *subject, const struct llama2_random *model,
                           float *want, float *got) {
    speedup->baseline_ms = INFINITY;
    speedup->subject_ms = INFINITY;
    for (int round = 0; round < DECODE_ROUNDS && !test_has_failed(); round++) {
        if (round > 0) {
            usleep(300000);
        }
        speedup->baseline_ms = fmin(speedup->baseline_ms, time_decode(naive, model, want));
        speedup->subject_ms = fmin(speedup->subject_ms, time_decode(subject, model, got));
        check_logits(got, want, model->config.V);
        if (speedup_reached(speedup)) {
            break;
        }
    }
}

C_TEST(speedup, end_to_end) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    struct llama2_random model;
    ASSERT_OK(llama2_random_create(&model, &config, grader_seed()));
    float *want = calloc(config.V, sizeof *want);
    float *got = calloc(config.V, sizeof *got);
    ASSERT_TRUE(want != NULL && got != NULL);
    struct engine naive, subject;
    ASSERT_OK(engine_reference_create(&naive));
    naive.matmul = naive_entry;
    ASSERT_OK(engine_cpu_matmul_create(&subject, bench_cpu_count()));
    struct speedup speedup = {
        .lab = lab, .subject = GRADER_SUBJECT, .measure = "end_to_end", .margin = GRADER_MARGIN};
    measure_decode(&speedup, &naive, &subject, &model, want, got);
    if (!test_has_failed()) {
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    engine_destroy(&naive);
    engine_destroy(&subject);
    free(want);
    free(got);
    llama2_random_free(&model);
}
