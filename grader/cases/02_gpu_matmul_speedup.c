/*
 * Lab 02, speedup: the kernel against one thread an output, in one run; and calls that allocate
 * nothing. On a GPU the fastest of several runs counts, on simt the modelled time of one.
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/bench/device_bench.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/cases/02_gpu_matmul_baseline.h"
#include "grader/device_buffer.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/02_gpu_matmul/engine.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

static const char lab[] = "02_gpu_matmul";

/* Decoding with the 1.1B shape: the first matrix of the feed-forward network. */
enum { N = 5632, K = 2048, PATIENCE = 60 /* seconds */ };

/* One matmul of one row, in device memory; and who computes it. */
struct kernel_case {
    struct device_buffer out, in, weight;
    gpu_matmul_kernel *run;
    double *want;
    float *got, *values;
};

static void kernel_free(struct kernel_case *c) {
    device_buffer_free(&c->out);
    device_buffer_free(&c->in);
    device_buffer_free(&c->weight);
    free(c->want);
    free(c->got);
    free(c->values);
}

/* Random values, out of the submission's sight but for the device's copy. */
static enum status kernel_create(struct kernel_case *c, bool guarded, struct rng *rng,
                                 struct error *error) {
    c->want = malloc(N * sizeof *c->want);
    c->got = malloc(N * sizeof *c->got);
    c->values = malloc(((size_t)N * K + K) * sizeof *c->values);
    if (c->want == NULL || c->got == NULL || c->values == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    grader_fill(rng, c->values, 1, K);
    grader_fill(rng, c->values + K, N, K);
    nn_matmul_f64(c->want, c->values, c->values + K, 1, N, K);
    enum status status = device_buffer_create(&c->out, N, guarded, 0, error);
    if (status == STATUS_OK) {
        status = device_buffer_create(&c->in, K, guarded, 0, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_create(&c->weight, (size_t)N * K, guarded, 0, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&c->in, c->values, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&c->weight, c->values + K, error);
    }
    return status;
}

static enum status kernel_run(void *argument, device_stream stream, struct error *error) {
    struct kernel_case *c = argument;
    return c->run(c->out.data, c->in.data, c->weight.data, 1, N, K, stream, error);
}

static void kernel_check(const struct kernel_case *c) {
    struct comparison result = compare_f32(c->got, c->want, N, tolerance_dot_f32(K, sqrt(K)));
    if (!result.pass) {
        char text[512];
        comparison_describe(&result, N, text, sizeof text);
        TEST_FAIL("a timed result is wrong: shape M=1 N=%d K=%d: %s", N, K, text);
    }
}

/* Fastest run in ms, starting from an L2 cache without the weights; the result is checked. */
static double kernel_time(struct kernel_case *c, gpu_matmul_kernel *run, device_stream stream) {
    struct device_bench_options options = device_bench_defaults();
    struct bench_timing timing = {.min_ms = NAN};
    struct error error = {0};
    bool intact = true, changed;
    options.flush_l2 = true;
    options.max_runs = 50;
    c->run = run;
    grader_watch("kernel, shape M=1 N=5632 K=2048", PATIENCE);
    enum status status = device_buffer_put(&c->out, NULL, &error);
    if (status == STATUS_OK) {
        status = device_bench_run(&options, kernel_run, c, stream, &timing, &error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_get(&c->out, c->got, &intact, &changed, &error);
    }
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("kernel, shape M=1 N=%d K=%d: %s", N, K, error_text(&error, status));
    } else if (!intact) {
        TEST_FAIL("kernel, shape M=1 N=%d K=%d: wrote outside of the output", N, K);
    } else {
        kernel_check(c);
    }
    return timing.min_ms;
}

C_TEST(speedup, kernel) {
    struct rng rng = rng_create(grader_seed());
    struct grader_gpu gpu;
    struct error error = {0};
    device_stream stream = NULL;
    struct kernel_case c = {0};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    enum status status = device_stream_create(&stream, &error);
    if (status == STATUS_OK) {
        status = kernel_create(&c, !gpu.modelled, &rng, &error);
    }
    if (status == STATUS_OK) {
        struct speedup speedup =
            grader_gpu_speedup(&gpu, lab, "kernel", GRADER_SUBJECT, GRADER_MARGIN);
        speedup.baseline_ms = kernel_time(&c, gpu_matmul_baseline, stream);
        speedup.subject_ms = kernel_time(&c, gpu_matmul_launch, stream);
        if (!test_has_failed()) {
            speedup_check(&speedup, __FILE__, __LINE__);
        }
    } else {
        TEST_FAIL("%s", error_text(&error, status));
    }
    kernel_free(&c);
    device_stream_destroy(stream);
}

/* The products of one token of a small model, in its order. */
static const struct {
    size_t N, K;
} token[] = {{96, 96}, {48, 96}, {48, 96}, {96, 96}, {256, 96}, {256, 96}, {96, 256}, {512, 96}};
enum { PRODUCTS = sizeof token / sizeof *token, TOKENS = 4, MOST = 512 * 96 };

/* Runs `tokens` tokens. */
static enum status run_tokens(struct gpu_matmul *matmul, int tokens, float *numbers,
                              struct error *error) {
    enum status status = STATUS_OK;
    for (int i = 0; i < tokens * PRODUCTS && status == STATUS_OK; i++) {
        status = gpu_matmul(matmul, numbers, numbers + 512, numbers + 1024, 1,
                            token[i % PRODUCTS].N, token[i % PRODUCTS].K, error);
    }
    return status;
}

/* How often calls allocate once they have seen all sizes. Counted, not timed: the same anywhere. */
C_TEST(speedup, calls_allocate_nothing) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct gpu_matmul *matmul = NULL;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    float *numbers = calloc(MOST + 1024, sizeof *numbers);
    ASSERT_TRUE(numbers != NULL);
    grader_watch("calls of one row", PATIENCE);
    enum status status = gpu_matmul_create(&matmul, &error);
    if (status == STATUS_OK) {
        status = run_tokens(matmul, 1, numbers, &error);
    }
    struct device_traffic before = device_traffic();
    if (status == STATUS_OK) {
        status = run_tokens(matmul, TOKENS, numbers, &error);
    }
    struct device_traffic after = device_traffic();
    grader_watch("", 0);
    gpu_matmul_destroy(matmul);
    free(numbers);
    unsigned long long allocations = after.allocations - before.allocations;
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else if (after.copies_to_host == before.copies_to_host) {
        TEST_FAIL("calls copied no result through device_read(): it cannot be told what they do");
    } else if (allocations > 0) {
        TEST_FAIL(
            "%s calls allocate: %llu allocation%s in %d calls of sizes seen before, allowed 0", lab,
            allocations, plural(allocations), TOKENS * PRODUCTS);
    }
}
