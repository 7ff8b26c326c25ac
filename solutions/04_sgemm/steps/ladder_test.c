/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "labs/04_sgemm/sgemm.h"

enum { GUARD = 64 }; /* floats on both sides of C, on a GPU */

struct shape {
    size_t M, N, K;
};

/* Around the sizes where kernels take another way: 4, 8, 16, 32, 64, 128, 256. K beyond 500: where
   its parts go to blocks of their own, the last of them shorter. */
static const struct shape shapes[] = {
    {0, 3, 3},     {3, 0, 3},     {3, 3, 0},     {130, 140, 0},  {1, 1, 1},
    {2, 3, 1},     {1, 33, 17},   {3, 4, 16},    {15, 9, 31},    {17, 33, 129},
    {31, 129, 7},  {64, 64, 64},  {65, 63, 66},  {127, 131, 13}, {128, 128, 64},
    {129, 257, 9}, {16, 132, 68}, {3, 140, 300}, {140, 1, 300},  {530, 70, 20},
    {5, 132, 530}, {132, 5, 530}, {8, 8, 531},   {256, 64, 20},  {192, 320, 20},
};

/* What becomes of the sums does not depend on K, but where they are added up does. */
static const struct shape short_shapes[] = {
    {130, 140, 0}, {131, 141, 0},  {1, 33, 17},   {3, 4, 16},   {17, 33, 9},   {65, 63, 6},
    {129, 257, 9}, {192, 320, 20}, {16, 132, 20}, {140, 1, 12}, {20, 68, 530},
};

/* Shapes of which a row or a column begins at 16 bytes wherever the matrix does. */
static const struct shape aligned_shapes[] = {
    {130, 140, 0}, {3, 4, 16},    {64, 64, 64},  {127, 132, 13}, {128, 128, 20}, {16, 132, 68},
    {3, 140, 300}, {140, 1, 300}, {530, 70, 20}, {20, 68, 532},  {192, 320, 20},
};

static const struct shape gpu_shapes[] = {
    {1024, 1024, 1024}, {1021, 1031, 1033}, {2048, 768, 768}, {8192, 768, 128},
    {4099, 65, 2053},   {7, 30011, 4096},   {8388737, 1, 1},  {1, 8388737, 1},
};

struct variant {
    enum sgemm_form form;
    float alpha, beta;
    size_t skew; /* 1: every pointer is 4 bytes past a 256-byte boundary */
};

/* Host values with B as (N, K), the oracle's result, device copies: one shape's, for all steps. */
struct operands {
    float *A, *weight, *B;
    float *old; /* C and what lies around it, before a step */
    float *C;   /* and after it */
    double *want;
    void *d_A, *d_B, *d_C, *workspace;
    size_t guard; /* floats before and behind C */
    size_t C_floats;
};

static enum status send(void **d, const float *values, size_t count, size_t skew,
                        struct error *error) {
    enum status status = device_alloc(d, (count + skew) * sizeof(float), error);
    if (status == STATUS_OK && count > 0) {
        status = device_write((float *)*d + skew, values, count * sizeof(float), NULL, error);
    }
    return status;
}

static void make_values(struct operands *o, struct shape s, struct variant v) {
    struct rng rng = rng_create(s.M * 31 + s.N * 7 + s.K);
    rng_fill_normal(&rng, o->A, s.M * s.K, 1.0f);
    rng_fill_normal(&rng, o->weight, s.N * s.K, 1.0f);
    for (size_t n = 0; n < s.N; n++) {
        for (size_t k = 0; k < s.K; k++) {
            o->B[k * s.N + n] = o->weight[n * s.K + k];
        }
    }
    nn_matmul_f64(o->want, o->A, o->weight, s.M, s.N, s.K);
    for (size_t i = 0; i < o->C_floats; i++) {
        o->old[i] = NAN; /* also around C, and in C when beta is 0 */
    }
    float *C = o->old + o->guard + v.skew;
    for (size_t i = 0; i < s.M * s.N; i++) {
        float old = v.beta == 0.0f ? NAN : rng_normal(&rng);
        C[i] = old;
        o->want[i] = (double)v.alpha * o->want[i] + (v.beta == 0.0f ? 0.0 : (double)v.beta * old);
    }
}

static enum status operands_create(struct operands *o, struct shape s, struct variant v,
                                   bool modelled, struct error *error) {
    *o = (struct operands){.guard = modelled ? 0 : GUARD};
    o->C_floats = s.M * s.N + v.skew + 2 * o->guard;
    o->A = malloc(s.M * s.K * sizeof(float) + 1);
    o->weight = malloc(s.N * s.K * sizeof(float) + 1);
    o->B = malloc(s.N * s.K * sizeof(float) + 1);
    o->old = malloc(o->C_floats * sizeof(float) + 1);
    o->C = malloc(o->C_floats * sizeof(float) + 1);
    o->want = malloc(s.M * s.N * sizeof(double) + 1);
    if (o->A == NULL || o->weight == NULL || o->B == NULL || o->old == NULL || o->C == NULL ||
        o->want == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    make_values(o, s, v);
    const float *B = v.form == SGEMM_B_PLAIN ? o->B : o->weight;
    enum status status = device_alloc(&o->workspace, SGEMM_WORKSPACE_BYTES, error);
    if (status == STATUS_OK) {
        status = send(&o->d_A, o->A, s.M * s.K, v.skew, error);
    }
    if (status == STATUS_OK) {
        status = send(&o->d_B, B, s.N * s.K, v.skew, error);
    }
    return status == STATUS_OK ? send(&o->d_C, o->old, o->C_floats, 0, error) : status;
}

static void operands_free(struct operands *o) {
    device_free(o->d_A);
    device_free(o->d_B);
    device_free(o->d_C);
    device_free(o->workspace);
    free(o->A);
    free(o->weight);
    free(o->B);
    free(o->old);
    free(o->C);
    free(o->want);
}

/* Puts the old C back, runs the step and reads all of C's memory. */
static enum status run_step(const struct sgemm_step *step, struct operands *o, struct shape s,
                            struct variant v, struct error *error) {
    const struct sgemm_problem problem = {
        .M = s.M,
        .N = s.N,
        .K = s.K,
        .form = v.form,
        .alpha = v.alpha,
        .beta = v.beta,
        .A = (const float *)o->d_A + (o->d_A != NULL ? v.skew : 0),
        .B = (const float *)o->d_B + (o->d_B != NULL ? v.skew : 0),
        .C = (float *)o->d_C + (o->d_C != NULL ? o->guard + v.skew : 0),
    };
    enum status status = STATUS_OK;
    if (o->C_floats > 0) {
        status = device_write(o->d_C, o->old, o->C_floats * sizeof(float), NULL, error);
    }
    if (status == STATUS_OK) {
        status = step->run(&problem, o->workspace, NULL, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, error);
    }
    if (status == STATUS_OK && o->C_floats > 0) {
        status = device_read(o->C, o->d_C, o->C_floats * sizeof(float), NULL, error);
    }
    return status;
}

/* What lies around C was NaN and must still be. */
static bool is_intact(const struct operands *o, struct shape s, struct variant v) {
    for (size_t i = 0; i < o->C_floats; i++) {
        bool inside = i >= o->guard + v.skew && i < o->guard + v.skew + s.M * s.N;
        if (!inside && !isnan(o->C[i])) {
            return false;
        }
    }
    return true;
}

static void check_step(const struct sgemm_step *step, struct operands *o, struct shape s,
                       struct variant v) {
    struct error error = {0};
    char text[300] = "";
    enum status status = run_step(step, o, s, v, &error);
    bool good = status == STATUS_OK;
    if (good) {
        double scale = fabs((double)v.alpha) * sqrt((double)s.K) + fabs((double)v.beta);
        struct comparison c = compare_f32(o->C + o->guard + v.skew, o->want, s.M * s.N,
                                          tolerance_dot_f32(s.K, scale > 0.0 ? scale : 1.0));
        good = c.pass && is_intact(o, s, v);
        comparison_describe(&c, s.N, text, sizeof text);
    }
    if (!good) {
        TEST_FAIL("%s M=%zu N=%zu K=%zu %s alpha=%g beta=%g skew=%zu: %s %s", step->name, s.M, s.N,
                  s.K, v.form == SGEMM_B_PLAIN ? "plain" : "transposed", (double)v.alpha,
                  (double)v.beta, v.skew, text, error.message);
    }
}

static void check_steps(struct shape s, struct variant v, bool modelled) {
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    struct operands o;
    struct error error = {0};
    if (operands_create(&o, s, v, modelled, &error) != STATUS_OK) {
        TEST_FAIL("M=%zu N=%zu K=%zu: %s", s.M, s.N, s.K, error.message);
        count = 0;
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        check_step(&steps[i], &o, s, v);
    }
    operands_free(&o);
}

/* Every step, every shape of a list. */
static void check_ladder(struct variant v, const struct shape *list, size_t count) {
    struct device_properties gpu;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(device_properties(&gpu, &error));
    if (list == gpu_shapes && gpu.modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        check_steps(list[i], v, gpu.modelled);
    }
}

#define CHECK_LADDER(list, ...) \
    check_ladder((struct variant){__VA_ARGS__}, list, sizeof(list) / sizeof *(list))

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)sgemm_ladder(&count);
    EXPECT_INT_EQ(10, count);
}

C_TEST(ladder, transposed) {
    CHECK_LADDER(shapes, SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0);
}

C_TEST(ladder, plain) {
    CHECK_LADDER(shapes, SGEMM_B_PLAIN, 1.0f, 0.0f, 0);
}

C_TEST(ladder, alpha_and_beta_transposed) {
    CHECK_LADDER(short_shapes, SGEMM_B_TRANSPOSED, -0.75f, 0.5f, 0);
}

C_TEST(ladder, alpha_without_beta_plain) {
    CHECK_LADDER(short_shapes, SGEMM_B_PLAIN, 2.5f, 0.0f, 0);
}

C_TEST(ladder, unaligned_pointers_plain) {
    CHECK_LADDER(aligned_shapes, SGEMM_B_PLAIN, 1.0f, -1.0f, 1);
}

C_TEST(ladder, unaligned_pointers_transposed) {
    CHECK_LADDER(aligned_shapes, SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 1);
}

C_TEST(ladder, large_transposed) {
    CHECK_LADDER(gpu_shapes, SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0);
}

C_TEST(ladder, large_plain) {
    CHECK_LADDER(gpu_shapes, SGEMM_B_PLAIN, 1.0f, 1.0f, 0);
}

/* One size too many is refused by every step, with nothing launched. */
C_TEST(ladder, sizes_above_the_largest_are_refused) {
    size_t count;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    const struct sgemm_step *steps = sgemm_ladder(&count);
    for (size_t i = 0; i < count; i++) {
        for (int which = 0; which < 3; which++) {
            size_t size = SGEMM_MAX_SIZE + 1;
            const struct sgemm_problem problem = {.M = which == 0 ? size : 1,
                                                  .N = which == 1 ? size : 1,
                                                  .K = which == 2 ? size : 1,
                                                  .alpha = 1.0f};
            EXPECT_STATUS(STATUS_INVALID_ARGUMENT, steps[i].run(&problem, NULL, NULL, &error));
        }
    }
    EXPECT_OK(device_synchronize(NULL, &error));
}
