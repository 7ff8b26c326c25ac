/* Lab 01, parity: the subject's matmul against the double oracle, alone and in both models. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"
#include "grader/01_cpu_matmul/calls.h"
#include "grader/01_cpu_matmul/remote.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

/* Seconds for a call that takes well under one, on the slowest machine and under sanitizers. */
enum { PATIENCE = 20 };

/* One problem: the values in this process, and copies in the subject's. */
struct matmul_case {
    struct matmul_data data;
    struct remote_matmul given;
    float *got;
    int threads;
    size_t skew; /* 1: every pointer is 4 bytes past a cache line */
    char name[160];
};

static void describe_case(struct matmul_case *c, struct matmul_shape s) {
    snprintf(c->name, sizeof c->name, "shape M=%zu N=%zu K=%zu, %d thread%s%s", s.M, s.N, s.K,
             c->threads, c->threads > 1 ? "s" : "",
             c->skew > 0 ? ", pointers 4 bytes past a cache line" : "");
}

static enum status case_create(struct matmul_case *c, struct matmul_shape s, struct rng *rng,
                               struct error *error) {
    c->got = malloc(s.M * s.N * sizeof(float) + 1);
    if (c->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(matmul_data_create(&c->data, s, 0, MATMUL_ROWS, rng, error));
    TRY(remote_matmul_create(&c->given, s, c->skew, error));
    remote_matmul_put(&c->given, &c->data);
    return STATUS_OK;
}

static void case_free(struct matmul_case *c) {
    remote_matmul_free(&c->given);
    matmul_data_free(&c->data);
    free(c->got);
}

/* The subject's cpu_matmul(), in its own process. */
static enum status call(const struct matmul_case *c, struct error *error) {
    struct matmul_call m = {.out = c->given.out.data,
                            .in = c->given.in.data,
                            .weight = c->given.weight.data,
                            .M = c->data.shape.M,
                            .N = c->data.shape.N,
                            .K = c->data.shape.K,
                            .threads = c->threads};
    grader_watch(c->name, PATIENCE);
    enum status status = remote_call("matmul", &m, sizeof m, error);
    grader_watch("", 0);
    return status;
}

/* Calls once; checks the values, and that nothing else was written. */
static enum status check_call(struct matmul_case *c, struct error *error) {
    char text[512];
    const char *wrong;
    TRY(call(c, error));
    TRY(remote_matmul_get(&c->given, c->got, &wrong, error));
    if (wrong != NULL) {
        TEST_FAIL("%s: %s", c->name, wrong);
    }
    if (!matmul_check(&c->data, c->got, text, sizeof text)) {
        TEST_FAIL("%s: %s", c->name, text);
    }
    return STATUS_OK;
}

static void run_case(struct matmul_shape shape, int threads, size_t skew, struct rng *rng) {
    struct matmul_case c = {.threads = threads, .skew = skew};
    struct error error = {0};
    describe_case(&c, shape);
    enum status status = case_create(&c, shape, rng, &error);
    if (status == STATUS_OK) {
        status = check_call(&c, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    }
    case_free(&c);
}

static void run_shapes(const struct matmul_shape *shapes, size_t count, int threads, size_t skew,
                       struct rng *rng) {
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        run_case(shapes[i], threads, skew, rng);
    }
}

static const struct matmul_shape small_shapes[] = {
    {1, 1, 1},   {1, 1, 2},    {2, 1, 1},    {1, 2, 1},    {3, 5, 7},     {7, 3, 5},
    {8, 8, 8},   {16, 16, 16}, {15, 17, 31}, {31, 33, 29}, {64, 64, 64},  {65, 63, 67},
    {1, 97, 61}, {2, 61, 97},  {5, 13, 257}, {127, 1, 31}, {13, 131, 11}, {128, 31, 1},
};

static const struct matmul_shape large_shapes[] = {
    {256, 256, 256}, {257, 251, 263}, {1, 4096, 288},  {1, 1031, 769}, {4, 1024, 512},
    {97, 769, 255},  {300, 64, 1000}, {33, 129, 2053}, {512, 96, 384},
};

static const struct matmul_shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {1, 1, 0}, {0, 7, 0},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Ends the worker of the test before, so that the first call starts a fresh one; the run's seed. */
static struct rng fresh_worker(void) {
    remote_close();
    return grader_rng();
}

C_TEST(parity, small_and_odd_sizes) {
    struct rng rng = fresh_worker();
    run_shapes(small_shapes, COUNT(small_shapes), 1, 0, &rng);
}

C_TEST(parity, large_sizes) {
    struct rng rng = fresh_worker();
    run_shapes(large_shapes, COUNT(large_shapes), 1, 0, &rng);
}

C_TEST(parity, empty_sizes) {
    struct rng rng = fresh_worker();
    run_shapes(empty_shapes, COUNT(empty_shapes), 1, 0, &rng);
    run_shapes(empty_shapes, COUNT(empty_shapes), 2, 0, &rng);
}

C_TEST(parity, unaligned_pointers) {
    struct rng rng = fresh_worker();
    run_shapes(small_shapes, COUNT(small_shapes), 1, 1, &rng);
    run_shapes(large_shapes, COUNT(large_shapes), 2, 1, &rng);
}

C_TEST(parity, several_threads) {
    struct rng rng = fresh_worker();
    for (int threads = 2; threads <= 5 && !test_has_failed(); threads++) {
        run_shapes(large_shapes, COUNT(large_shapes), threads, 0, &rng);
        run_shapes(small_shapes, COUNT(small_shapes), threads, 0, &rng);
    }
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, random_sizes) {
    struct rng rng = fresh_worker();
    for (int i = 0; i < 60 && !test_has_failed(); i++) {
        struct matmul_shape shape = {1 + rng_below(&rng, 150), 1 + rng_below(&rng, 150),
                                     1 + rng_below(&rng, 300)};
        run_case(shape, 1 + (int)rng_below(&rng, 4), rng_below(&rng, 2), &rng);
    }
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your matmul", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your matmul");
    }
}
