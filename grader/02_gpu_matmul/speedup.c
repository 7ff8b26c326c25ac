/*
 * Lab 02, speedup: the kernel against the starter's, which has one thread an output, in one run;
 * and calls must allocate nothing. On a GPU the fastest of several runs counts, on simt the
 * modelled time of one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/bench/device/device_bench.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/02_gpu_matmul/calls.h"
#include "grader/harness/gpu.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/02_gpu_matmul/problem/case.h"

static const char lab[] = "02_gpu_matmul";

/*
 * As many bytes as the first matrix of the feed-forward network in the 1.1B shape, in few long
 * rows: one thread an output is then slow on GPUs with little bandwidth, too.
 */
enum { N = 1024, K = 11264, RUNS = 20, PATIENCE = 60 /* seconds */ };

/* One worker's memory. */
struct kernel_side {
    device_stream stream;
    struct gpu_matmul_buffers buffers;
};

/* One matmul of one row: the values here, and copies on both workers' devices. */
struct kernel_case {
    struct matmul_data data;
    struct rng rng;
    float *got;
    struct kernel_side sides[REMOTE_SIDES];
};

static enum status side_create(struct kernel_side *side, struct matmul_shape shape, bool guarded,
                               struct error *error) {
    TRY(device_stream_create(&side->stream, error));
    return gpu_matmul_buffers_create(&side->buffers, shape, 0, guarded, error);
}

static void side_free(struct kernel_side *side) {
    gpu_matmul_buffers_free(&side->buffers);
    device_stream_destroy(side->stream);
}

static enum status kernel_create(struct kernel_case *c, bool guarded, struct error *error) {
    const struct matmul_shape shape = {1, N, K};
    c->got = malloc(N * sizeof *c->got);
    if (c->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(matmul_data_allocate(&c->data, shape, 0, error));
    TRY(side_create(&c->sides[REMOTE_SUBJECT], shape, guarded, error));
    TRY(remote_open_side(REMOTE_BASELINE, error));
    return side_create(&c->sides[REMOTE_BASELINE], shape, guarded, error);
}

static void kernel_free(struct kernel_case *c) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        side_free(&c->sides[i]);
    }
    matmul_data_free(&c->data);
    free(c->got);
}

static void kernel_check(const struct kernel_case *c) {
    char text[512];
    if (!matmul_check(&c->data, c->got, text, sizeof text)) {
        TEST_FAIL("a timed result is wrong: shape M=1 N=%d K=%d: %s", N, K, text);
    }
}

/* One run on values that are new, in ms, starting from an L2 cache without the weights. */
static enum status run_kernel(struct kernel_case *c, struct kernel_side *side, double *ms,
                              struct error *error) {
    struct gpu_matmul_buffers *b = &side->buffers;
    const struct launch_call call = {b->out.data, b->in.data, b->weight.data, 1,
                                     N,           K,          side->stream};
    const struct device_bench_options once = {.min_runs = 1, .max_runs = 1, .flush_l2 = true};
    struct bench_timing timing;
    matmul_data_draw(&c->data, MATMUL_ROWS, &c->rng);
    TRY(gpu_matmul_buffers_put(b, &c->data, error));
    TRY(remote_bench(&once, "launch", &call, sizeof call, side->stream, &timing, error));
    *ms = timing.min_ms;
    return STATUS_OK;
}

static enum status run_watched(struct kernel_case *c, struct kernel_side *side, const char **wrong,
                               double *ms, struct error *error) {
    grader_watch("kernel, shape M=1 N=1024 K=11264", PATIENCE);
    enum status status = run_kernel(c, side, ms, error);
    grader_watch("", 0);
    TRY(status);
    return gpu_matmul_buffers_get(&side->buffers, c->got, wrong, error);
}

/* The same by the worker in use; its result is checked. */
static double time_run(struct kernel_case *c, struct kernel_side *side) {
    struct error error = {0};
    double ms = INFINITY;
    const char *wrong = NULL;
    enum status status = run_watched(c, side, &wrong, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("kernel, shape M=1 N=%d K=%d: %s", N, K, error_text(&error, status));
    } else if (wrong != NULL) {
        TEST_FAIL("kernel, shape M=1 N=%d K=%d: %s", N, K, wrong);
    } else {
        matmul_data_calculate(&c->data);
        kernel_check(c);
        remote_check_counted(matmul_flops(c->data.shape), REMOTE_FP32_PRODUCTS);
        remote_check_counted_bytes(sizeof(float) * (double)N * (double)K); /* the weights */
        remote_check_sent(0.0, sizeof(float) * (double)N);
    }
    return ms;
}

/* On simt one run; on a GPU the fastest of some, behind one that loads the kernel. */
static double kernel_time(struct kernel_case *c, enum remote_side which, bool modelled) {
    const int runs = modelled ? 1 : speedup_calls(RUNS);
    double best = INFINITY;
    remote_use(which);
    for (int i = modelled ? 0 : -1; i < runs && !test_has_failed(); i++) {
        double ms = time_run(c, &c->sides[which]);
        best = i < 0 ? best : fmin(best, ms);
    }
    return best;
}

/* A time in which memory cannot deliver the weights is no record; work was left out. */
static void check_possible(const struct grader_gpu *gpu, double ms) {
    double bytes = matmul_bytes((struct matmul_shape){1, N, K});
    double bandwidth = gpu->properties.memory_bandwidth;
    if (bandwidth > 0.0 && ms < 0.9 * 1e3 * bytes / bandwidth) {
        TEST_FAIL("%.4g ms is less than this GPU's memory allows, %.4g ms: the work was not done",
                  ms, 1e3 * bytes / bandwidth);
    }
}

/* Memory is read once, from a cache without the weights. */
static struct work work_of_kernel(void) {
    const struct matmul_shape shape = {1, N, K};
    return (struct work){.fp32_flops = matmul_flops(shape),
                         .read_bytes = matmul_bytes(shape),
                         .between_events = true};
}

C_TEST(speedup, kernel) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct kernel_case c = {.rng = grader_rng()};
    if (!grader_gpu_probe() || !grader_gpu_open(&gpu)) {
        return;
    }
    enum status status = kernel_create(&c, !gpu.modelled, &error);
    if (status == STATUS_OK) {
        struct speedup speedup = grader_gpu_speedup(&gpu, lab, "kernel");
        speedup.baseline_ms = kernel_time(&c, REMOTE_BASELINE, gpu.modelled);
        speedup.subject_ms = kernel_time(&c, REMOTE_SUBJECT, gpu.modelled);
        if (!test_has_failed()) {
            const struct work work = work_of_kernel();
            speedup.least = grader_gpu_least_time(&work);
            check_possible(&gpu, speedup.subject_ms);
            speedup_check(&speedup, __FILE__, __LINE__);
        }
    } else {
        TEST_FAIL("%s", error_text(&error, status));
    }
    kernel_free(&c);
}

/* The products of one token of a small model, in its order. */
static const struct {
    size_t N, K;
} token[] = {{96, 96}, {48, 96}, {48, 96}, {96, 96}, {256, 96}, {256, 96}, {96, 256}, {512, 96}};
enum { PRODUCTS = sizeof token / sizeof *token, TOKENS = 4, MOST_OUT = 512, MOST = 512 * 96 };

/* The arena's part that calls use: result, input row, weights. */
struct numbers {
    float *out, *in, *weight;
};

/* One product of new numbers, whose result is checked. */
static enum status run_product(struct gpu_matmul *matmul, int which, const struct numbers *numbers,
                               struct rng *rng, struct error *error) {
    const struct matmul_shape shape = {1, token[which].N, token[which].K};
    struct matmul_data data;
    float got[MOST_OUT];
    char text[512];
    struct matmul_call call = {.matmul = matmul,
                               .out = numbers->out,
                               .in = numbers->in,
                               .weight = numbers->weight,
                               .M = 1,
                               .N = shape.N,
                               .K = shape.K};
    TRY(matmul_data_create(&data, shape, 0, MATMUL_ROWS, rng, error));
    memset(numbers->out, 0xff, shape.N * sizeof *got); /* NaN */
    memcpy(numbers->in, data.in, shape.K * sizeof *data.in);
    memcpy(numbers->weight, data.weight, shape.N * shape.K * sizeof *data.weight);
    enum status status = remote_call("call", &call, sizeof call, error);
    memcpy(got, numbers->out, shape.N * sizeof *got);
    if (status == STATUS_OK && !matmul_check(&data, got, text, sizeof text)) {
        TEST_FAIL("call, shape M=1 N=%zu K=%zu: %s", shape.N, shape.K, text);
    }
    matmul_data_free(&data);
    return status;
}

static enum status run_tokens(struct gpu_matmul *matmul, int tokens, const struct numbers *numbers,
                              struct rng *rng, struct error *error) {
    for (int i = 0; i < tokens * PRODUCTS; i++) {
        TRY(run_product(matmul, i % PRODUCTS, numbers, rng, error));
    }
    return STATUS_OK;
}

/* What the worker counted before some tokens and after them, once it has seen all sizes. */
static enum status count_tokens(struct device_traffic *before, struct device_traffic *after,
                                struct error *error) {
    struct matmul_call call = {0};
    struct rng rng = grader_rng();
    void *memory;
    TRY(remote_alloc(&memory, (MOST + 2 * MOST_OUT) * sizeof(float), error));
    float *floats = memory;
    const struct numbers numbers = {floats, floats + MOST_OUT, floats + 2 * MOST_OUT};
    TRY(remote_call("create", &call, sizeof call, error));
    TRY(run_tokens(call.matmul, 1, &numbers, &rng, error));
    *before = device_traffic();
    TRY(run_tokens(call.matmul, TOKENS, &numbers, &rng, error));
    *after = device_traffic();
    return remote_call("destroy", &call, sizeof call, error);
}

/* How often calls allocate once they have seen all sizes. Counted, not timed: the same anywhere. */
C_TEST(speedup, calls_allocate_nothing) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct device_traffic before = {0}, after = {0};
    if (!grader_gpu_probe() || !grader_gpu_open(&gpu)) {
        return;
    }
    grader_watch("calls of one row", PATIENCE);
    enum status status = count_tokens(&before, &after, &error);
    grader_watch("", 0);
    unsigned long long allocations = after.allocations - before.allocations;
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else if (test_has_failed()) {
        return; /* the device could not be asked */
    } else if (after.copies_to_host == before.copies_to_host) {
        TEST_FAIL("calls copied no result from device memory to the host: where it was computed "
                  "cannot be told; copy it with device_read()");
    } else if (allocations > 0) {
        TEST_FAIL(
            "%s calls allocate: %llu allocation%s in %d calls of sizes seen before, allowed 0", lab,
            allocations, plural(allocations), TOKENS * PRODUCTS);
    }
}
