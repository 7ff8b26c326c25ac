/* Lab 01, parity: the subject's matmul against the double oracle, alone and in both models. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "grader/01_cpu_matmul/calls.h"
#include "grader/harness/logits.h"
#include "grader/harness/own_work.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watch.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_buffer.h"

/* Seconds for a call that takes well under one, on the slowest machine and under sanitizers. */
enum { PATIENCE = 20 };

struct shape {
    size_t M, N, K;
};

/* One case: values, and what must come of them, here; what the subject sees, in its process. */
struct matmul_case {
    struct shape shape;
    int threads;
    size_t skew; /* 1: every pointer is 4 bytes past a cache line */
    float *in, *weight, *got;
    double *want;
    struct remote_buffer out, in_given, weight_given;
    char name[160];
};

static void describe_case(struct matmul_case *c) {
    snprintf(c->name, sizeof c->name, "shape M=%zu N=%zu K=%zu, %d thread%s%s", c->shape.M,
             c->shape.N, c->shape.K, c->threads, c->threads > 1 ? "s" : "",
             c->skew > 0 ? ", pointers 4 bytes past a cache line" : "");
}

static enum status make_values(struct matmul_case *c, struct rng *rng, struct error *error) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    c->in = malloc(M * K * sizeof(float) + 1);
    c->weight = malloc(N * K * sizeof(float) + 1);
    c->got = malloc(M * N * sizeof(float) + 1);
    c->want = malloc(M * N * sizeof(double) + 1);
    if (c->in == NULL || c->weight == NULL || c->got == NULL || c->want == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    rng_fill_rows(rng, c->in, M, K);
    rng_fill_rows(rng, c->weight, N, K);
    nn_matmul_f64(c->want, c->in, c->weight, M, N, K);
    return STATUS_OK;
}

static enum status hand_over(struct matmul_case *c, struct error *error) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    TRY(remote_buffer_create(&c->out, M * N, c->skew, error));
    TRY(remote_buffer_create(&c->in_given, M * K, c->skew, error));
    TRY(remote_buffer_create(&c->weight_given, N * K, c->skew, error));
    remote_buffer_put(&c->in_given, c->in);
    remote_buffer_put(&c->weight_given, c->weight);
    return STATUS_OK;
}

static void case_free(struct matmul_case *c) {
    remote_buffer_free(&c->out);
    remote_buffer_free(&c->in_given);
    remote_buffer_free(&c->weight_given);
    free(c->in);
    free(c->weight);
    free(c->got);
    free(c->want);
}

/* The subject's cpu_matmul(), in its own process. */
static enum status call(const struct matmul_case *c, struct error *error) {
    struct matmul_call m = {.out = c->out.data,
                            .in = c->in_given.data,
                            .weight = c->weight_given.data,
                            .M = c->shape.M,
                            .N = c->shape.N,
                            .K = c->shape.K,
                            .threads = c->threads};
    grader_watch(c->name, PATIENCE);
    enum status status = remote_call("matmul", &m, sizeof m, error);
    grader_watch("", 0);
    return status;
}

static void check_values(const struct matmul_case *c) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    /* Rows have a scale of about 1 and an offset of about 0.25. */
    double scale = sqrt(K > 0 ? (double)K : 1.0);
    struct comparison result = compare_f32(c->got, c->want, M * N, tolerance_dot_f32(K, scale));
    if (!result.pass) {
        char text[512];
        comparison_describe(&result, N, text, sizeof text);
        TEST_FAIL("%s: %s", c->name, text);
    }
}

/* Copies the result into c->got; inputs untouched, nothing written beside the output. */
static enum status check_buffers(struct matmul_case *c, struct error *error) {
    bool intact[3], changed[3];
    TRY(remote_buffer_get(&c->out, c->got, &intact[0], &changed[0], error));
    TRY(remote_buffer_get(&c->in_given, NULL, &intact[1], &changed[1], error));
    TRY(remote_buffer_get(&c->weight_given, NULL, &intact[2], &changed[2], error));
    if (!intact[0]) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    if (!intact[1] || !intact[2] || changed[1] || changed[2]) {
        TEST_FAIL("%s: changed its input", c->name);
    }
    return STATUS_OK;
}

static void run_case(struct shape shape, int threads, size_t skew, struct rng *rng) {
    struct matmul_case c = {.shape = shape, .threads = threads, .skew = skew};
    struct error error = {0};
    describe_case(&c);
    enum status status = make_values(&c, rng, &error);
    if (status == STATUS_OK) {
        status = hand_over(&c, &error);
    }
    if (status == STATUS_OK) {
        status = call(&c, &error);
        if (status == STATUS_OK) {
            status = check_buffers(&c, &error);
        }
        if (status == STATUS_OK) {
            check_values(&c);
        }
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    }
    case_free(&c);
}

static void run_shapes(const struct shape *shapes, size_t count, int threads, size_t skew,
                       struct rng *rng) {
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        run_case(shapes[i], threads, skew, rng);
    }
}

static const struct shape small_shapes[] = {
    {1, 1, 1},   {1, 1, 2},    {2, 1, 1},    {1, 2, 1},    {3, 5, 7},     {7, 3, 5},
    {8, 8, 8},   {16, 16, 16}, {15, 17, 31}, {31, 33, 29}, {64, 64, 64},  {65, 63, 67},
    {1, 97, 61}, {2, 61, 97},  {5, 13, 257}, {127, 1, 31}, {13, 131, 11}, {128, 31, 1},
};

static const struct shape large_shapes[] = {
    {256, 256, 256}, {257, 251, 263}, {1, 4096, 288},  {1, 1031, 769}, {4, 1024, 512},
    {97, 769, 255},  {300, 64, 1000}, {33, 129, 2053}, {512, 96, 384},
};

static const struct shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {1, 1, 0}, {0, 7, 0},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A process of the test's own, when it is first called; the run's seed. */
static struct rng begin(void) {
    remote_close();
    return rng_create(grader_seed());
}

C_TEST(parity, small_and_odd_sizes) {
    struct rng rng = begin();
    run_shapes(small_shapes, COUNT(small_shapes), 1, 0, &rng);
    grader_check_own_work();
}

C_TEST(parity, large_sizes) {
    struct rng rng = begin();
    run_shapes(large_shapes, COUNT(large_shapes), 1, 0, &rng);
    grader_check_own_work();
}

C_TEST(parity, empty_sizes) {
    struct rng rng = begin();
    run_shapes(empty_shapes, COUNT(empty_shapes), 1, 0, &rng);
    run_shapes(empty_shapes, COUNT(empty_shapes), 2, 0, &rng);
    grader_check_own_work();
}

C_TEST(parity, unaligned_pointers) {
    struct rng rng = begin();
    run_shapes(small_shapes, COUNT(small_shapes), 1, 1, &rng);
    run_shapes(large_shapes, COUNT(large_shapes), 2, 1, &rng);
    grader_check_own_work();
}

C_TEST(parity, several_threads) {
    struct rng rng = begin();
    for (int threads = 2; threads <= 5 && !test_has_failed(); threads++) {
        run_shapes(large_shapes, COUNT(large_shapes), threads, 0, &rng);
        run_shapes(small_shapes, COUNT(small_shapes), threads, 0, &rng);
    }
    grader_check_own_work();
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, random_sizes) {
    struct rng rng = begin();
    for (int i = 0; i < 60 && !test_has_failed(); i++) {
        struct shape shape = {1 + rng_below(&rng, 150), 1 + rng_below(&rng, 150),
                              1 + rng_below(&rng, 300)};
        run_case(shape, 1 + (int)rng_below(&rng, 4), rng_below(&rng, 2), &rng);
    }
    grader_check_own_work();
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your matmul", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your matmul");
    }
    grader_check_own_work();
}
