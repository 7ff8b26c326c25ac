/* Lab 01, parity: the subject's matmul against the double oracle, alone and in both models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/rng.h"
#include "common/model/engine.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "grader/inputs.h"
#include "grader/logits.h"
#include "grader/small_llama2.h"
#include "grader/watch.h"
#include "labs/01_cpu_matmul/engine.h"
#include "labs/01_cpu_matmul/matmul.h"

/* Seconds for a call that takes well under one, on the slowest machine and under sanitizers. */
enum { PATIENCE = 20 };

struct shape {
    size_t M, N, K;
};

/* Buffers of one case. The oracle's copies are out of the submission's sight. */
struct matmul_case {
    struct shape shape;
    int threads;
    struct guarded out, in, weight;
    float *in_kept, *weight_kept;
    double *want;
    size_t skew; /* 1: every pointer is 4 bytes past a cache line */
};

static float *copy_of(const float *values, size_t count) {
    float *copy = malloc(count * sizeof(float) + 1);
    if (copy != NULL) {
        memcpy(copy, values, count * sizeof(float));
    }
    return copy;
}

static bool case_create(struct matmul_case *c, struct rng *rng) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    if (guarded_create(&c->out, M * N + c->skew) != STATUS_OK ||
        guarded_create(&c->in, M * K + c->skew) != STATUS_OK ||
        guarded_create(&c->weight, N * K + c->skew) != STATUS_OK) {
        return false;
    }
    grader_fill(rng, c->in.data + c->skew, M, K);
    grader_fill(rng, c->weight.data + c->skew, N, K);
    c->in_kept = copy_of(c->in.data, c->in.count);
    c->weight_kept = copy_of(c->weight.data, c->weight.count);
    c->want = malloc(M * N * sizeof(double) + 1);
    if (c->in_kept == NULL || c->weight_kept == NULL || c->want == NULL) {
        return false;
    }
    nn_matmul_f64(c->want, c->in_kept + c->skew, c->weight_kept + c->skew, M, N, K);
    return true;
}

static void case_free(struct matmul_case *c) {
    guarded_free(&c->out);
    guarded_free(&c->in);
    guarded_free(&c->weight);
    free(c->in_kept);
    free(c->weight_kept);
    free(c->want);
}

static void describe_case(const struct matmul_case *c, char *text, size_t size) {
    snprintf(text, size, "shape M=%zu N=%zu K=%zu, %d thread%s%s", c->shape.M, c->shape.N,
             c->shape.K, c->threads, c->threads > 1 ? "s" : "",
             c->skew > 0 ? ", pointers 4 bytes past a cache line" : "");
}

static void check_values(const struct matmul_case *c, const char *name) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    /* Rows have a scale of about 1 and an offset of about 0.25. */
    double scale = sqrt(K > 0 ? (double)K : 1.0);
    struct comparison result =
        compare_f32(c->out.data + c->skew, c->want, M * N, tolerance_dot_f32(K, scale));
    if (!result.pass) {
        char text[512];
        comparison_describe(&result, N, text, sizeof text);
        TEST_FAIL("%s: %s", name, text);
    }
}

/* Inputs untouched, nothing written beside the output. */
static void check_bounds(const struct matmul_case *c, const char *name) {
    if (!guarded_intact(&c->out) || (c->skew > 0 && !isnan(c->out.data[0]))) {
        TEST_FAIL("%s: wrote outside of the output", name);
    }
    if (!guarded_intact(&c->in) || !guarded_intact(&c->weight) ||
        memcmp(c->in.data + c->skew, c->in_kept + c->skew,
               (c->in.count - c->skew) * sizeof(float)) != 0 ||
        memcmp(c->weight.data + c->skew, c->weight_kept + c->skew,
               (c->weight.count - c->skew) * sizeof(float)) != 0) {
        TEST_FAIL("%s: changed its input", name);
    }
}

static void run_case(struct shape shape, int threads, size_t skew, struct rng *rng) {
    struct matmul_case c = {.shape = shape, .threads = threads, .skew = skew};
    char name[160];
    describe_case(&c, name, sizeof name);
    if (!case_create(&c, rng)) {
        TEST_FAIL("%s: the grader is out of memory", name);
    } else {
        grader_watch(name, PATIENCE);
        enum status status = cpu_matmul(c.out.data + skew, c.in.data + skew, c.weight.data + skew,
                                        shape.M, shape.N, shape.K, threads);
        grader_watch("", 0);
        if (status != STATUS_OK) {
            TEST_FAIL("%s: returned %s (%s)", name, status_name(status), status_message(status));
        } else {
            check_values(&c, name);
        }
        check_bounds(&c, name);
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

C_TEST(parity, small_and_odd_sizes) {
    struct rng rng = rng_create(grader_seed());
    run_shapes(small_shapes, COUNT(small_shapes), 1, 0, &rng);
}

C_TEST(parity, large_sizes) {
    struct rng rng = rng_create(grader_seed());
    run_shapes(large_shapes, COUNT(large_shapes), 1, 0, &rng);
}

C_TEST(parity, empty_sizes) {
    struct rng rng = rng_create(grader_seed());
    run_shapes(empty_shapes, COUNT(empty_shapes), 1, 0, &rng);
    run_shapes(empty_shapes, COUNT(empty_shapes), 2, 0, &rng);
}

C_TEST(parity, unaligned_pointers) {
    struct rng rng = rng_create(grader_seed());
    run_shapes(small_shapes, COUNT(small_shapes), 1, 1, &rng);
    run_shapes(large_shapes, COUNT(large_shapes), 2, 1, &rng);
}

C_TEST(parity, several_threads) {
    struct rng rng = rng_create(grader_seed());
    for (int threads = 2; threads <= 5 && !test_has_failed(); threads++) {
        run_shapes(large_shapes, COUNT(large_shapes), threads, 0, &rng);
        run_shapes(small_shapes, COUNT(small_shapes), threads, 0, &rng);
    }
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, random_sizes) {
    struct rng rng = rng_create(grader_seed());
    for (int i = 0; i < 60 && !test_has_failed(); i++) {
        struct shape shape = {1 + rng_below(&rng, 150), 1 + rng_below(&rng, 150),
                              1 + rng_below(&rng, 300)};
        run_case(shape, 1 + (int)rng_below(&rng, 4), rng_below(&rng, 2), &rng);
    }
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    struct engine subject;
    ASSERT_OK(engine_cpu_matmul_create(&subject, 2));
    if (small_llama2_run(&l, &subject, "a small Llama2 with your matmul", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your matmul");
    }
    engine_destroy(&subject);
}
