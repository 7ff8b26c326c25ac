/* Lab 04, parity: the subject's sgemm against the double oracle, alone and in Llama2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/device_buffer.h"
#include "common/testing/testing.h"
#include "grader/04_sgemm/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/04_sgemm/problem/case.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

static const struct sgemm_variant plain = {SGEMM_B_PLAIN, 1.0f, 0.0f, 0};
static const struct sgemm_variant transposed = {SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0};

/* One case: the problem on the host and in the worker's GPU. */
struct sgemm_case {
    struct sgemm_data data;
    struct sgemm_buffers buffers;
    float *C; /* host, the result */
    char name[200];
};

static enum status case_create(struct sgemm_case *c, struct sgemm_shape s, struct sgemm_variant v,
                               struct fixture *fixture, struct error *error) {
    snprintf(c->name, sizeof c->name, "shape M=%zu N=%zu K=%zu, B %s, alpha %g, beta %g%s", s.M,
             s.N, s.K, v.form == SGEMM_B_PLAIN ? "plain" : "transposed", (double)v.alpha,
             (double)v.beta, v.skew > 0 ? ", pointers 4 bytes past a boundary" : "");
    c->C = malloc(s.M * s.N * sizeof(float) + 1);
    if (c->C == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(sgemm_data_create(&c->data, s, v, SGEMM_ROWS, SGEMM_ALL_ROWS, &fixture->rng, error));
    TRY(sgemm_buffers_create(&c->buffers, s, v.skew, fixture_has_guards(fixture), error));
    return sgemm_buffers_put(&c->buffers, &c->data, error);
}

static void case_free(struct sgemm_case *c) {
    sgemm_buffers_free(&c->buffers);
    sgemm_data_free(&c->data);
    free(c->C);
}

/* The subject's sgemm(), in its own process. */
static enum status remote_sgemm(const struct sgemm_problem *problem, const struct fixture *fixture,
                                struct error *error) {
    struct sgemm_call c = {*problem, fixture->workspace, fixture->stream};
    return remote_call("sgemm", &c, sizeof c, error);
}

static enum status call(const struct sgemm_case *c, const struct fixture *fixture,
                        struct error *error) {
    const struct sgemm_problem problem = sgemm_buffers_problem(&c->buffers, &c->data);
    grader_watch(c->name, PATIENCE);
    return remote_finish_watched(remote_sgemm(&problem, fixture, error), fixture->stream, error);
}

static enum status check_case(struct sgemm_case *c, struct sgemm_shape s, struct sgemm_variant v,
                              struct fixture *fixture, struct error *error) {
    char text[512];
    const char *wrong;
    TRY(case_create(c, s, v, fixture, error));
    TRY(call(c, fixture, error));
    TRY(sgemm_buffers_get(&c->buffers, c->C, &wrong, error));
    if (wrong != NULL) {
        TEST_FAIL("%s: %s", c->name, wrong);
    }
    if (!sgemm_check(&c->data, c->C, text, sizeof text)) {
        TEST_FAIL("%s: %s", c->name, text);
    }
    return STATUS_OK;
}

static void run_case(struct sgemm_shape shape, struct sgemm_variant variant,
                     struct fixture *fixture) {
    struct sgemm_case c = {0};
    struct error error = {0};
    enum status status = check_case(&c, shape, variant, fixture, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    }
    case_free(&c);
}

static void run_shapes(const struct sgemm_shape *shapes, size_t count, struct sgemm_variant variant,
                       struct fixture *fixture) {
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        run_case(shapes[i], variant, fixture);
    }
}

static const struct sgemm_shape small_shapes[] = {
    {1, 1, 1},   {1, 1, 2},    {2, 1, 1},    {1, 2, 1},    {3, 5, 7},     {7, 3, 5},
    {8, 8, 8},   {16, 16, 16}, {15, 17, 31}, {31, 33, 29}, {64, 64, 64},  {65, 63, 67},
    {1, 97, 61}, {2, 61, 97},  {5, 13, 257}, {127, 1, 31}, {13, 131, 11}, {128, 31, 1},
};

static const struct sgemm_shape large_shapes[] = {
    {128, 128, 128}, {129, 127, 131}, {257, 251, 63}, {1, 1031, 769},
    {97, 769, 35},   {300, 64, 500},  {33, 129, 977}, {256, 96, 192},
};

/* Seconds each on a GPU, minutes on simt. */
static const struct sgemm_shape gpu_shapes[] = {
    {1024, 1024, 1024}, {2048, 768, 768}, {1021, 1031, 1033}, {7, 30011, 4096}, {4099, 65, 2053},
};

/* More rows and columns than a grid takes blocks in y and z; on a GPU more tiles of 128, too. */
static const struct sgemm_shape long_shapes[] = {
    {1, 70001, 1}, {70001, 1, 1}, {1, 8388737, 1}, {8388737, 1, 1}};

static const struct sgemm_shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {1, 1, 0}, {0, 7, 0}, {130, 70, 0},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void run_lists(struct sgemm_variant variant) {
    struct fixture fixture;
    if (fixture_open(&fixture, SGEMM_WORKSPACE_BYTES)) {
        run_shapes(small_shapes, COUNT(small_shapes), variant, &fixture);
        run_shapes(large_shapes, COUNT(large_shapes), variant, &fixture);
    }
    fixture_close(&fixture);
}

C_TEST(parity, transposed_b) {
    run_lists(transposed);
}

C_TEST(parity, plain_b) {
    run_lists(plain);
}

FIXTURE_TEST(parity, alpha_and_beta, SGEMM_WORKSPACE_BYTES) {
    static const float factors[][2] = {{1.0f, 1.0f},  {-0.75f, 0.5f}, {2.5f, 0.0f},
                                       {0.0f, -1.5f}, {0.0f, 0.0f},   {1.0f, -2.0f}};
    static const struct sgemm_shape shapes[] = {{1, 1, 1}, {37, 41, 43}, {130, 129, 33}};
    for (size_t i = 0; i < COUNT(factors); i++) {
        struct sgemm_variant v = {i % 2 == 0 ? SGEMM_B_TRANSPOSED : SGEMM_B_PLAIN, factors[i][0],
                                  factors[i][1], 0};
        run_shapes(shapes, COUNT(shapes), v, fixture);
    }
}

FIXTURE_TEST(parity, empty_sizes, SGEMM_WORKSPACE_BYTES) {
    run_shapes(empty_shapes, COUNT(empty_shapes), transposed, fixture);
    run_shapes(empty_shapes, COUNT(empty_shapes), (struct sgemm_variant){SGEMM_B_PLAIN, 1, 0.5f, 0},
               fixture);
}

FIXTURE_TEST(parity, unaligned_pointers, SGEMM_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes),
               (struct sgemm_variant){SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 1}, fixture);
    run_shapes(large_shapes, 4, (struct sgemm_variant){SGEMM_B_PLAIN, 1.0f, 1.0f, 1}, fixture);
}

FIXTURE_TEST(parity, long_sizes, SGEMM_WORKSPACE_BYTES) {
    run_shapes(long_shapes, fixture->modelled ? 2 : COUNT(long_shapes), transposed, fixture);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, SGEMM_WORKSPACE_BYTES) {
    for (int i = 0; i < 24 && !test_has_failed(); i++) {
        struct sgemm_shape shape = {1 + rng_below(&fixture->rng, 150),
                                    1 + rng_below(&fixture->rng, 150),
                                    1 + rng_below(&fixture->rng, 200)};
        struct sgemm_variant v = {
            rng_below(&fixture->rng, 2) == 0 ? SGEMM_B_PLAIN : SGEMM_B_TRANSPOSED, 1.0f,
            rng_below(&fixture->rng, 2) == 0 ? 0.0f : 1.0f, rng_below(&fixture->rng, 2)};
        run_case(shape, v, fixture);
    }
}

FIXTURE_TEST(parity, large_sizes_on_a_gpu, SGEMM_WORKSPACE_BYTES) {
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    run_shapes(gpu_shapes, COUNT(gpu_shapes), transposed, fixture);
    run_shapes(gpu_shapes, COUNT(gpu_shapes), plain, fixture);
}

FIXTURE_TEST(parity, too_large_is_refused, SGEMM_WORKSPACE_BYTES) {
    struct device_buffer c;
    struct error error = {0};
    float before = 3.0f, after = 0.0f;
    bool intact, changed;
    ASSERT_DONE(device_buffer_create(&c, 1, false, 0, &error), &error);
    ASSERT_DONE(device_buffer_put(&c, &before, &error), &error);
    for (int i = 0; i < 3; i++) {
        size_t size = SGEMM_MAX_SIZE + 1;
        struct sgemm_problem problem = {.M = i == 0 ? size : 1,
                                        .N = i == 1 ? size : 1,
                                        .K = i == 2 ? size : 1,
                                        .alpha = 1.0f,
                                        .A = c.data,
                                        .B = c.data,
                                        .C = c.data};
        grader_watch("a size above SGEMM_MAX_SIZE", PATIENCE);
        enum status status = remote_sgemm(&problem, fixture, &error);
        grader_watch("", 0);
        if (status != STATUS_INVALID_ARGUMENT || strstr(error.message, "536870913") == NULL) {
            TEST_FAIL("M=%zu N=%zu K=%zu: must be refused with STATUS_INVALID_ARGUMENT and a line "
                      "that names the size; got %s, '%s'",
                      problem.M, problem.N, problem.K, status_name(status), error.message);
        }
    }
    EXPECT_DONE(device_synchronize(fixture->stream, &error), &error);
    EXPECT_DONE(device_buffer_get(&c, &after, &intact, &changed, &error), &error);
    EXPECT_TRUE(!changed);
    device_buffer_free(&c);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your sgemm", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your sgemm");
    }
}
