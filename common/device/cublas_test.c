/*
 * cuBLAS as it is called, on a library that stands in for it and calculates on the host; and what
 * is said where there is none. On a GPU with cuBLAS, cublas_gpu_test goes on from here.
 */
#include "common/device/cublas.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/nn/dtype.h"
#include "common/testing/testing.h"

enum { M = 5, N = 7, K = 11 };

/* The state that the fake library had at a call; its stream is a pointer to this struct. */
struct seen {
    const void *workspace;
    int mode;
};

struct operands {
    float A[M * K], B[K * N], C[M * N], old[M * N];
};

static void fill(struct operands *o) {
    struct rng rng = rng_create(3);
    rng_fill_normal(&rng, o->A, M * K, 1.0f);
    rng_fill_normal(&rng, o->B, K * N, 1.0f);
    rng_fill_normal(&rng, o->C, M * N, 1.0f);
    memcpy(o->old, o->C, sizeof o->C);
}

static double want(const struct operands *o, const struct cublas_problem *p, size_t m, size_t n) {
    double sum = 0.0;
    for (size_t k = 0; k < p->K; k++) {
        sum += (double)o->A[m * K + k] * o->B[p->b_transposed ? n * K + k : k * N + n];
    }
    return p->alpha * sum + (p->beta != 0.0f ? (double)p->beta * o->old[m * N + n] : 0.0);
}

static struct cublas *open_fake(void) {
    struct cublas *cublas = NULL;
    setenv("WARPBOOK_CUBLAS", getenv("FAKE_CUBLAS"), 1);
    EXPECT_OK(cublas_open(&cublas, NULL));
    return cublas;
}

static void check_form(struct cublas *cublas, bool transposed, size_t depth, float beta) {
    struct operands o;
    char workspace[64];
    struct seen seen = {NULL, -1};
    fill(&o);
    const struct cublas_problem problem = {.M = M,
                                           .N = N,
                                           .K = depth,
                                           .b_transposed = transposed,
                                           .alpha = 0.5f,
                                           .beta = beta,
                                           .A = o.A,
                                           .B = o.B,
                                           .C = o.C};
    if (beta == 0.0f) {
        o.C[3] = NAN;
    }
    EXPECT_OK(
        cublas_sgemm(cublas, &problem, workspace, sizeof workspace, (device_stream)&seen, NULL));
    EXPECT_TRUE(seen.workspace == workspace);
    EXPECT_INT_EQ(0, seen.mode);
    for (size_t i = 0; i < M * N; i++) {
        EXPECT_NEAR(want(&o, &problem, i / N, i % N), o.C[i], 1e-5);
    }
}

C_TEST(cublas, multiplies_16_bit_matrices) {
    struct cublas *cublas = open_fake();
    struct operands o;
    uint16_t A[M * K], B[N * K];
    fill(&o);
    nn_dtype_store(A, o.A, M * K, NN_BF16);
    nn_dtype_store(B, o.B, N * K, NN_BF16);
    nn_dtype_load(o.A, A, M * K, NN_BF16);
    nn_dtype_load(o.B, B, N * K, NN_BF16);
    struct cublas_gemm16 p = {
        .M = M, .N = N, .K = K, .dtype = NN_BF16, .out_dtype = NN_F32, .A = A, .B = B, .C = o.C};
    ASSERT_TRUE(cublas != NULL);
    EXPECT_OK(cublas_gemm16(cublas, &p, NULL, 0, NULL, NULL));
    const struct cublas_problem same = {.K = K, .b_transposed = true, .alpha = 1.0f};
    for (size_t i = 0; i < M * N; i++) {
        EXPECT_NEAR(want(&o, &same, i / N, i % N), o.C[i], 1e-5);
    }
    struct error error = {0};
    p.dtype = NN_F32;
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT,
                 "cublas_gemm16 multiplies fp16 or bf16; the result has that type or fp32",
                 cublas_gemm16(cublas, &p, NULL, 0, NULL, &error));
    p.dtype = NN_BF16;
    p.K = (size_t)INT_MAX + 1;
    EXPECT_STATUS(STATUS_OVERFLOW, cublas_gemm16(cublas, &p, NULL, 0, NULL, &error));
    cublas_close(cublas);
}

/* A as (M, K) or (K, M), B as (N, K) or (K, N), in each combination, with and without adding. */
C_TEST(cublas, takes_16_bit_matrices_either_way_round) {
    struct cublas *cublas = open_fake();
    struct operands o;
    uint16_t A[M * K], B[N * K];
    ASSERT_TRUE(cublas != NULL);
    for (int form = 0; form < 8; form++) {
        bool a = form & 1, b = form & 2, add = form & 4;
        fill(&o);
        nn_dtype_store(A, o.A, M * K, NN_BF16);
        nn_dtype_store(B, o.B, N * K, NN_BF16);
        nn_dtype_load(o.A, A, M * K, NN_BF16);
        nn_dtype_load(o.B, B, N * K, NN_BF16);
        const struct cublas_gemm16 p = {M, N, K, NN_BF16, NN_F32, A, B, a, b, add, o.C};
        EXPECT_OK(cublas_gemm16(cublas, &p, NULL, 0, NULL, NULL));
        for (size_t i = 0; i < M * N; i++) {
            double sum = add ? (double)o.old[i] : 0.0;
            for (size_t k = 0, m = i / N, n = i % N; k < K; k++) {
                sum += (double)o.A[a ? k * M + m : m * K + k] * o.B[b ? k * N + n : n * K + k];
            }
            EXPECT_NEAR(sum, o.C[i], 1e-5);
        }
    }
    cublas_close(cublas);
}

C_TEST(cublas, both_forms) {
    struct cublas *cublas = open_fake();
    ASSERT_TRUE(cublas != NULL);
    char name[64];
    EXPECT_STR_EQ("cuBLAS 10.11.12", cublas_name(cublas, name, sizeof name));
    check_form(cublas, false, K, 0.0f);
    check_form(cublas, true, K, 0.0f);
    check_form(cublas, false, K, 2.0f);
    check_form(cublas, true, K, 2.0f);
    check_form(cublas, false, 0, 2.0f);
    check_form(cublas, true, 0, 0.0f);
    cublas_close(cublas);
}

C_TEST(cublas, empty_and_oversized) {
    struct cublas *cublas = open_fake();
    ASSERT_TRUE(cublas != NULL);
    struct cublas_problem problem = {.M = 0, .N = 5, .K = 5};
    EXPECT_OK(cublas_sgemm(cublas, &problem, NULL, 0, NULL, NULL));
    problem = (struct cublas_problem){.M = 5, .N = 0, .K = 5};
    EXPECT_OK(cublas_sgemm(cublas, &problem, NULL, 0, NULL, NULL));
    problem = (struct cublas_problem){.M = 1, .N = 1, .K = (size_t)INT_MAX + 1};
    EXPECT_ERROR(STATUS_OVERFLOW, "1 x 1 x 2147483648 is beyond cuBLAS's 32-bit sizes",
                 cublas_sgemm(cublas, &problem, NULL, 0, NULL, &error));
    cublas_close(cublas);
    cublas_close(NULL);
}

static void expect_absent(const char *file, enum status status, const char *text) {
    struct cublas *cublas = (struct cublas *)1;
    struct error error = {0};
    setenv("WARPBOOK_CUBLAS", file, 1);
    EXPECT_STATUS(status, cublas_open(&cublas, &error));
    EXPECT_TRUE(cublas == NULL);
    if (strstr(error.message, text) == NULL) {
        TEST_FAIL("'%s' is not in: %s", text, error.message);
    }
}

C_TEST(cublas, says_why_it_is_not_there) {
    expect_absent("/absent/libcublas.so", STATUS_NOT_FOUND, "/absent/libcublas.so");
    expect_absent("libm.so.6", STATUS_NOT_FOUND, "has no cublasCreate_v2");
    setenv("FAKE_CUBLAS_FAILS", "1", 1);
    expect_absent(getenv("FAKE_CUBLAS"), STATUS_DEVICE,
                  "starting cuBLAS: the library was not initialized (cuBLAS status 1)");
    unsetenv("FAKE_CUBLAS_FAILS");
}
