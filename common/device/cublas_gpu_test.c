/* cuBLAS on a GPU: both forms are right, and fp32 is not TF32. Skipped if there is no cuBLAS. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/device/cublas.h"
#include "common/device/device.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"

enum { M = 65, N = 130, K = 515 };

struct operands {
    float A[M * K], B[K * N], C[M * N];
    double want[M * N];
    void *d_A, *d_B, *d_C;
};

static enum status upload(void **memory, const float *host, size_t count) {
    enum status status = device_alloc(memory, count * sizeof *host, NULL);
    return status == STATUS_OK ? device_write(*memory, host, count * sizeof *host, NULL, NULL)
                               : status;
}

static void fill(struct operands *o, bool transposed) {
    struct rng rng = rng_create(5);
    rng_fill_normal(&rng, o->A, M * K, 1.0f);
    rng_fill_normal(&rng, o->B, K * N, 1.0f);
    for (size_t i = 0; i < M * N; i++) {
        size_t m = i / N, n = i % N;
        o->want[i] = 0.0;
        for (size_t k = 0; k < K; k++) {
            o->want[i] += (double)o->A[m * K + k] * o->B[transposed ? n * K + k : k * N + n];
        }
    }
}

static void check(struct cublas *cublas, struct operands *o, bool transposed) {
    char text[256];
    fill(o, transposed);
    EXPECT_OK(upload(&o->d_A, o->A, M * K));
    EXPECT_OK(upload(&o->d_B, o->B, K * N));
    EXPECT_OK(device_alloc(&o->d_C, sizeof o->C, NULL));
    const struct cublas_problem problem = {.M = M,
                                           .N = N,
                                           .K = K,
                                           .b_transposed = transposed,
                                           .alpha = 1.0f,
                                           .A = o->d_A,
                                           .B = o->d_B,
                                           .C = o->d_C};
    EXPECT_OK(cublas_sgemm(cublas, &problem, NULL, 0, NULL, NULL));
    EXPECT_OK(device_read(o->C, o->d_C, sizeof o->C, NULL, NULL));
    /* TF32, with its 10 bits, would miss this by far. */
    struct comparison comparison =
        compare_f32(o->C, o->want, M * N, tolerance_dot_f32(K, sqrt((double)K)));
    if (!comparison.pass) {
        comparison_describe(&comparison, N, text, sizeof text);
        TEST_FAIL("%s: %s", transposed ? "B transposed" : "B plain", text);
    }
    device_free(o->d_A);
    device_free(o->d_B);
    device_free(o->d_C);
}

C_TEST(cublas, calculates_in_fp32) {
    struct cublas *cublas = NULL;
    struct error error = {0};
    char name[64];
    if (device_open(&error) != STATUS_OK || cublas_open(&cublas, &error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    printf("%s\n", cublas_name(cublas, name, sizeof name));
    struct operands *o = calloc(1, sizeof *o);
    ASSERT_TRUE(o != NULL);
    check(cublas, o, false);
    check(cublas, o, true);
    free(o);
    cublas_close(cublas);
}

C_TEST(cublas, is_not_asked_on_simt) {
    struct device_properties gpu;
    struct cublas *cublas = NULL;
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    ASSERT_OK(device_properties(&gpu, &error));
    if (!gpu.modelled) {
        TEST_SKIP("this is a GPU");
    }
    EXPECT_ERROR(STATUS_NOT_FOUND, "cuBLAS does not run on simt: it needs a GPU",
                 cublas_open(&cublas, &error));
    EXPECT_TRUE(cublas == NULL);
}
