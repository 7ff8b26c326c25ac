/*
 * Lab 02, speedup: the kernel against the starter's, which has one thread an output, in one run;
 * and calls must allocate nothing. On a GPU the fastest of several runs counts, on simt the
 * modelled time of one.
 */
#include <math.h>
#include <stdlib.h>

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
enum { N = 1024, K = 11264, PATIENCE = 60 /* seconds */ };

/* One worker's memory. */
struct kernel_side {
    device_stream stream;
    struct gpu_matmul_buffers buffers;
};

/* One matmul of one row: the values here, and copies on both workers' devices. */
struct kernel_case {
    struct matmul_data data;
    float *got;
    struct kernel_side sides[REMOTE_SIDES];
};

static enum status side_create(struct kernel_side *side, const struct matmul_data *data,
                               bool guarded, struct error *error) {
    TRY(device_stream_create(&side->stream, error));
    TRY(gpu_matmul_buffers_create(&side->buffers, data->shape, 0, guarded, error));
    return gpu_matmul_buffers_put(&side->buffers, data, error);
}

static void side_free(struct kernel_side *side) {
    gpu_matmul_buffers_free(&side->buffers);
    device_stream_destroy(side->stream);
}

static enum status kernel_create(struct kernel_case *c, bool guarded, struct rng *rng,
                                 struct error *error) {
    const struct matmul_shape shape = {1, N, K};
    c->got = malloc(N * sizeof *c->got);
    if (c->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(matmul_data_create(&c->data, shape, 0, MATMUL_ROWS, rng, error));
    TRY(side_create(&c->sides[REMOTE_SUBJECT], &c->data, guarded, error));
    TRY(remote_open_side(REMOTE_BASELINE, error));
    return side_create(&c->sides[REMOTE_BASELINE], &c->data, guarded, error);
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

/* Fastest run in ms, starting from an L2 cache without the weights. */
static enum status run_kernel(struct kernel_side *side, double *ms, struct error *error) {
    struct gpu_matmul_buffers *b = &side->buffers;
    const struct launch_call call = {b->out.data, b->in.data, b->weight.data, 1,
                                     N,           K,          side->stream};
    struct device_bench_options options = device_bench_defaults();
    struct bench_timing timing;
    options.flush_l2 = true;
    options.max_runs = 50;
    TRY(device_buffer_put(&b->out, NULL, error));
    TRY(remote_bench(&options, "launch", &call, sizeof call, side->stream, &timing, error));
    *ms = timing.min_ms;
    return STATUS_OK;
}

static enum status run_watched(struct kernel_case *c, struct kernel_side *side, bool *intact,
                               double *ms, struct error *error) {
    bool changed;
    grader_watch("kernel, shape M=1 N=1024 K=11264", PATIENCE);
    enum status status = run_kernel(side, ms, error);
    grader_watch("", 0);
    TRY(status);
    return device_buffer_get(&side->buffers.out, c->got, intact, &changed, error);
}

/* The same for one side; its result is checked. */
static double kernel_time(struct kernel_case *c, enum remote_side which) {
    struct error error = {0};
    double ms = INFINITY;
    bool intact = true;
    remote_use(which);
    enum status status = run_watched(c, &c->sides[which], &intact, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("kernel, shape M=1 N=%d K=%d: %s", N, K, error_text(&error, status));
    } else if (!intact) {
        TEST_FAIL("kernel, shape M=1 N=%d K=%d: wrote outside of the output", N, K);
    } else {
        kernel_check(c);
        remote_check_counted(matmul_flops(c->data.shape));
    }
    return ms;
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
    struct rng rng = grader_rng();
    struct grader_gpu gpu;
    struct error error = {0};
    struct kernel_case c = {0};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    enum status status = kernel_create(&c, !gpu.modelled, &rng, &error);
    if (status == STATUS_OK) {
        struct speedup speedup =
            grader_gpu_speedup(&gpu, lab, "kernel", GRADER_SUBJECT, GRADER_MARGIN);
        speedup.baseline_ms = kernel_time(&c, REMOTE_BASELINE);
        speedup.subject_ms = kernel_time(&c, REMOTE_SUBJECT);
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
enum { PRODUCTS = sizeof token / sizeof *token, TOKENS = 4, MOST = 512 * 96 };

/* Runs `tokens` tokens; numbers lie in the arena. */
static enum status run_tokens(struct gpu_matmul *matmul, int tokens, float *numbers,
                              struct error *error) {
    for (int i = 0; i < tokens * PRODUCTS; i++) {
        struct matmul_call call = {.matmul = matmul,
                                   .out = numbers,
                                   .in = numbers + 512,
                                   .weight = numbers + 1024,
                                   .M = 1,
                                   .N = token[i % PRODUCTS].N,
                                   .K = token[i % PRODUCTS].K};
        TRY(remote_call("call", &call, sizeof call, error));
    }
    return STATUS_OK;
}

/* What the worker counted before some tokens and after them, once it has seen all sizes. */
static enum status count_tokens(struct device_traffic *before, struct device_traffic *after,
                                struct error *error) {
    struct matmul_call call = {0};
    void *numbers;
    TRY(remote_alloc(&numbers, (MOST + 1024) * sizeof(float), error));
    TRY(remote_call("create", &call, sizeof call, error));
    TRY(run_tokens(call.matmul, 1, numbers, error));
    *before = device_traffic();
    TRY(run_tokens(call.matmul, TOKENS, numbers, error));
    *after = device_traffic();
    return remote_call("destroy", &call, sizeof call, error);
}

/* How often calls allocate once they have seen all sizes. Counted, not timed: the same anywhere. */
C_TEST(speedup, calls_allocate_nothing) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct device_traffic before = {0}, after = {0};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    grader_watch("calls of one row", PATIENCE);
    enum status status = count_tokens(&before, &after, &error);
    grader_watch("", 0);
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
