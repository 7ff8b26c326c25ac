/* Lab 04, parity: the subject's sgemm against the double oracle, alone and in Llama2. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/device_buffer.h"
#include "common/testing/testing.h"
#include "grader/04_sgemm/calls.h"
#include "grader/harness/bed.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/watch.h"
#include "grader/isolation/remote.h"
#include "labs/04_sgemm/sgemm.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

struct shape {
    size_t M, N, K;
};

/* How a list of shapes is run. */
struct variant {
    enum sgemm_form form;
    float alpha, beta;
    size_t skew; /* 1: every pointer is 4 bytes past a 256-byte boundary */
};

static const struct variant plain = {SGEMM_B_PLAIN, 1.0f, 0.0f, 0};
static const struct variant transposed = {SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0};

/* One case: host values of A, B as (N, K), and C; device buffers; the oracle's result. */
struct sgemm_case {
    struct shape shape;
    struct variant variant;
    float *A, *weight, *B, *C;
    double *want;
    struct device_buffer a, b, c;
    char name[200];
};

/* B as (K, N) from the weight (N, K). */
static void turn(float *B, const float *weight, size_t N, size_t K) {
    for (size_t k = 0; k < K; k++) {
        for (size_t n = 0; n < N; n++) {
            B[k * N + n] = weight[n * K + k];
        }
    }
}

static void make_values(struct sgemm_case *c, struct rng *rng) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    double alpha = (double)c->variant.alpha, beta = (double)c->variant.beta;
    rng_fill_rows(rng, c->A, M, K);
    rng_fill_rows(rng, c->weight, N, K);
    rng_fill_rows(rng, c->C, M, N);
    turn(c->B, c->weight, N, K);
    nn_matmul_f64(c->want, c->A, c->weight, M, N, K);
    for (size_t i = 0; i < M * N; i++) {
        c->want[i] = alpha * c->want[i] + (beta == 0.0 ? 0.0 : beta * (double)c->C[i]);
    }
}

static enum status make_buffers(struct sgemm_case *c, bool guarded, struct error *error) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K, skew = c->variant.skew;
    bool is_plain = c->variant.form == SGEMM_B_PLAIN;
    enum status status = device_buffer_create(&c->a, M * K, guarded, skew, error);
    if (status == STATUS_OK) {
        status = device_buffer_create(&c->b, N * K, guarded, skew, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_create(&c->c, M * N, guarded, skew, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&c->a, c->A, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&c->b, is_plain ? c->B : c->weight, error);
    }
    /* With beta = 0, C stays NaN. */
    if (status == STATUS_OK && c->variant.beta != 0.0f) {
        status = device_buffer_put(&c->c, c->C, error);
    }
    return status;
}

static enum status case_create(struct sgemm_case *c, struct bed *bed, struct error *error) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    const struct variant *v = &c->variant;
    snprintf(c->name, sizeof c->name, "shape M=%zu N=%zu K=%zu, B %s, alpha %g, beta %g%s", M, N, K,
             v->form == SGEMM_B_PLAIN ? "plain" : "transposed", (double)v->alpha, (double)v->beta,
             v->skew > 0 ? ", pointers 4 bytes past a boundary" : "");
    c->A = malloc(M * K * sizeof(float) + 1);
    c->weight = malloc(N * K * sizeof(float) + 1);
    c->B = malloc(N * K * sizeof(float) + 1);
    c->C = malloc(M * N * sizeof(float) + 1);
    c->want = malloc(M * N * sizeof(double) + 1);
    if (c->A == NULL || c->weight == NULL || c->B == NULL || c->C == NULL || c->want == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    make_values(c, &bed->rng);
    return make_buffers(c, bed_guards(bed), error);
}

static void case_free(struct sgemm_case *c) {
    device_buffer_free(&c->a);
    device_buffer_free(&c->b);
    device_buffer_free(&c->c);
    free(c->A);
    free(c->weight);
    free(c->B);
    free(c->C);
    free(c->want);
}

/* The subject's sgemm(), in its own process. */
static enum status remote_sgemm(const struct sgemm_problem *problem, const struct bed *bed,
                                struct error *error) {
    struct sgemm_call c = {*problem, bed->workspace, bed->stream};
    return remote_call("sgemm", &c, sizeof c, error);
}

static enum status call(const struct sgemm_case *c, const struct bed *bed, struct error *error) {
    const struct sgemm_problem problem = {.M = c->shape.M,
                                          .N = c->shape.N,
                                          .K = c->shape.K,
                                          .form = c->variant.form,
                                          .alpha = c->variant.alpha,
                                          .beta = c->variant.beta,
                                          .A = c->a.data,
                                          .B = c->b.data,
                                          .C = c->c.data};
    grader_watch(c->name, PATIENCE);
    enum status status = remote_sgemm(&problem, bed, error);
    if (status == STATUS_OK) {
        status = device_synchronize(bed->stream, error);
    }
    grader_watch("", 0);
    return status;
}

static void check_values(const struct sgemm_case *c) {
    size_t M = c->shape.M, N = c->shape.N, K = c->shape.K;
    /* Elements have a scale of about 1: K products, and C once. */
    double scale = fabs((double)c->variant.alpha) * sqrt((double)K) + fabs((double)c->variant.beta);
    struct comparison result =
        compare_f32(c->C, c->want, M * N, tolerance_dot_f32(K, scale > 0.0 ? scale : 1.0));
    if (!result.pass) {
        char text[512];
        comparison_describe(&result, N, text, sizeof text);
        TEST_FAIL("%s: %s", c->name, text);
    }
}

/* Reads everything back: the result into c->C, and who wrote where. */
static enum status check_buffers(struct sgemm_case *c, struct error *error) {
    bool intact[3], changed[3];
    enum status status = device_buffer_get(&c->c, c->C, &intact[0], &changed[0], error);
    if (status == STATUS_OK) {
        status = device_buffer_get(&c->a, NULL, &intact[1], &changed[1], error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_get(&c->b, NULL, &intact[2], &changed[2], error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (!intact[0] || !intact[1] || !intact[2]) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    if (changed[1] || changed[2]) {
        TEST_FAIL("%s: changed its input %s", c->name, changed[1] ? "A" : "B");
    }
    return STATUS_OK;
}

static void run_case(struct shape shape, struct variant variant, struct bed *bed) {
    struct sgemm_case c = {.shape = shape, .variant = variant};
    struct error error = {0};
    enum status status = case_create(&c, bed, &error);
    if (status == STATUS_OK) {
        status = call(&c, bed, &error);
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

static void run_shapes(const struct shape *shapes, size_t count, struct variant variant,
                       struct bed *bed) {
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        run_case(shapes[i], variant, bed);
    }
}

static const struct shape small_shapes[] = {
    {1, 1, 1},   {1, 1, 2},    {2, 1, 1},    {1, 2, 1},    {3, 5, 7},     {7, 3, 5},
    {8, 8, 8},   {16, 16, 16}, {15, 17, 31}, {31, 33, 29}, {64, 64, 64},  {65, 63, 67},
    {1, 97, 61}, {2, 61, 97},  {5, 13, 257}, {127, 1, 31}, {13, 131, 11}, {128, 31, 1},
};

static const struct shape large_shapes[] = {
    {128, 128, 128}, {129, 127, 131}, {257, 251, 63}, {1, 1031, 769},
    {97, 769, 35},   {300, 64, 500},  {33, 129, 977}, {256, 96, 192},
};

/* Seconds each on a GPU, minutes on simt. */
static const struct shape gpu_shapes[] = {
    {1024, 1024, 1024}, {2048, 768, 768}, {1021, 1031, 1033}, {7, 30011, 4096}, {4099, 65, 2053},
};

/* More rows and columns than a grid takes blocks in y and z; on a GPU more tiles of 128, too. */
static const struct shape long_shapes[] = {
    {1, 70001, 1}, {70001, 1, 1}, {1, 8388737, 1}, {8388737, 1, 1}};

static const struct shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {1, 1, 0}, {0, 7, 0}, {130, 70, 0},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void run_lists(struct variant variant) {
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES)) {
        run_shapes(small_shapes, COUNT(small_shapes), variant, &bed);
        run_shapes(large_shapes, COUNT(large_shapes), variant, &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, transposed_b) {
    run_lists(transposed);
}

C_TEST(parity, plain_b) {
    run_lists(plain);
}

C_TEST(parity, alpha_and_beta) {
    static const float factors[][2] = {{1.0f, 1.0f},  {-0.75f, 0.5f}, {2.5f, 0.0f},
                                       {0.0f, -1.5f}, {0.0f, 0.0f},   {1.0f, -2.0f}};
    static const struct shape shapes[] = {{1, 1, 1}, {37, 41, 43}, {130, 129, 33}};
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES)) {
        for (size_t i = 0; i < COUNT(factors); i++) {
            struct variant v = {i % 2 == 0 ? SGEMM_B_TRANSPOSED : SGEMM_B_PLAIN, factors[i][0],
                                factors[i][1], 0};
            run_shapes(shapes, COUNT(shapes), v, &bed);
        }
    }
    bed_close(&bed);
}

C_TEST(parity, empty_sizes) {
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES)) {
        run_shapes(empty_shapes, COUNT(empty_shapes), transposed, &bed);
        run_shapes(empty_shapes, COUNT(empty_shapes), (struct variant){SGEMM_B_PLAIN, 1, 0.5f, 0},
                   &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, unaligned_pointers) {
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES)) {
        run_shapes(small_shapes, COUNT(small_shapes),
                   (struct variant){SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 1}, &bed);
        run_shapes(large_shapes, 4, (struct variant){SGEMM_B_PLAIN, 1.0f, 1.0f, 1}, &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, long_sizes) {
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES)) {
        run_shapes(long_shapes, bed.modelled ? 2 : COUNT(long_shapes), transposed, &bed);
    }
    bed_close(&bed);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, random_sizes) {
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES)) {
        for (int i = 0; i < 24 && !test_has_failed(); i++) {
            struct shape shape = {1 + rng_below(&bed.rng, 150), 1 + rng_below(&bed.rng, 150),
                                  1 + rng_below(&bed.rng, 200)};
            struct variant v = {rng_below(&bed.rng, 2) == 0 ? SGEMM_B_PLAIN : SGEMM_B_TRANSPOSED,
                                1.0f, rng_below(&bed.rng, 2) == 0 ? 0.0f : 1.0f,
                                rng_below(&bed.rng, 2)};
            run_case(shape, v, &bed);
        }
    }
    bed_close(&bed);
}

C_TEST(parity, large_sizes_on_a_gpu) {
    struct bed bed;
    if (bed_open(&bed, SGEMM_WORKSPACE_BYTES) && !bed.modelled) {
        run_shapes(gpu_shapes, COUNT(gpu_shapes), transposed, &bed);
        run_shapes(gpu_shapes, COUNT(gpu_shapes), plain, &bed);
    }
    bool modelled = bed.modelled;
    bed_close(&bed);
    if (modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
}

C_TEST(parity, too_large_is_refused) {
    struct bed bed;
    struct device_buffer c;
    struct error error = {0};
    float before = 3.0f, after = 0.0f;
    bool intact, changed;
    ASSERT_TRUE(bed_open(&bed, SGEMM_WORKSPACE_BYTES));
    ASSERT_OK(device_buffer_create(&c, 1, false, 0, &error));
    ASSERT_OK(device_buffer_put(&c, &before, &error));
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
        enum status status = remote_sgemm(&problem, &bed, &error);
        grader_watch("", 0);
        if (status != STATUS_INVALID_ARGUMENT || strstr(error.message, "536870913") == NULL) {
            TEST_FAIL("M=%zu N=%zu K=%zu: must be refused with STATUS_INVALID_ARGUMENT and a line "
                      "that names the size; got %s, '%s'",
                      problem.M, problem.N, problem.K, status_name(status), error.message);
        }
    }
    EXPECT_OK(device_synchronize(bed.stream, &error));
    EXPECT_OK(device_buffer_get(&c, &after, &intact, &changed, &error));
    EXPECT_TRUE(!changed);
    device_buffer_free(&c);
    bed_close(&bed);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your sgemm", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your sgemm");
    }
}
