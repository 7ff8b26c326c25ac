/**
 * @file gemm_test.c
 * @brief C = A B next to sums in double, with each operand as it is and transposed; the same bits
 * on any number of threads.
 */
#include "common/cpu/gemm.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

static float *normal(size_t count, uint64_t seed) {
    struct rng rng = rng_create(seed);
    float *x = malloc((count + 1) * sizeof *x);
    for (size_t i = 0; x != NULL && i <= count; i++) {
        x[i] = rng_normal(&rng);
    }
    return x;
}

enum { A_TRANSPOSED = 1, B_TRANSPOSED = 2, BIAS = 4, ADD = 8, VARIANTS = 12 };

/* Sums of fp32 in blocks: K roundings of partial sums at the very most, most of them small. */
static void expect_close(const struct gemm *g, const float *before) {
    for (size_t i = 0; i < g->M * g->N; i++) {
        size_t m = i / g->N, n = i % g->N;
        double want = g->add ? (double)before[i] : g->bias != NULL ? (double)g->bias[n] : 0.0;
        double sizes = fabs(want);
        for (size_t k = 0; k < g->K; k++) {
            double product = (double)g->a.at[m * g->a.row + k * g->a.column] *
                             (double)g->b.at[k * g->b.row + n * g->b.column];
            want += product;
            sizes += fabs(product);
        }
        double allowed = 0x1p-24 * sizes * (4.0 + sqrt((double)g->K));
        if (!(fabs((double)g->c[i] - want) <= allowed)) {
            TEST_FAIL("%zu x %zu x %zu: element %zu: got %.9g, want %.9g", g->M, g->N, g->K, i,
                      (double)g->c[i], want);
            return;
        }
    }
}

static void check(size_t M, size_t N, size_t K, int variant) {
    float *a = normal(M * K, 1), *b = normal(K * N, 2), *bias = normal(N, 3);
    float *before = normal(M * N, 4), *one = normal(M * N, 4), *several = normal(M * N, 4);
    struct cpu_scratch scratch = {0};
    struct gemm g = {.M = M, .N = N, .K = K, .a = {a, K, 1}, .b = {b, N, 1}, .c = one};
    if (variant & A_TRANSPOSED) {
        g.a = (struct strided){a, 1, M};
    }
    if (variant & B_TRANSPOSED) {
        g.b = (struct strided){b, 1, K};
    }
    g.bias = variant & BIAS ? bias : NULL;
    g.add = variant & ADD;
    EXPECT_OK(cpu_gemm(1, &scratch, &g));
    expect_close(&g, before);
    g.c = several;
    for (int threads = 2; threads <= 5; threads += 3) {
        memcpy(several, before, (M * N + 1) * sizeof *several);
        EXPECT_OK(cpu_gemm(threads, &scratch, &g));
        EXPECT_INT_EQ(0, memcmp(one, several, (M * N + 1) * sizeof *one)); /* one behind the end */
    }
    float *const all[] = {a, b, bias, before, one, several};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
    cpu_scratch_free(&scratch);
}

/* Around tiles of 12 x 32, a depth of 256, and blocks of 240 x 512. */
C_TEST(gemm, equals_sums_in_double) {
    const size_t sizes[][3] = {{1, 1, 1},     {0, 3, 2},     {3, 0, 2},     {3, 2, 0},
                               {12, 32, 256}, {13, 33, 257}, {11, 31, 255}, {5, 70, 513},
                               {250, 40, 9},  {24, 530, 5},  {2, 3, 600},   {100, 4, 4},
                               {64, 64, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int variant = 0; variant < VARIANTS; variant++) {
            check(sizes[i][0], sizes[i][1], sizes[i][2], variant);
        }
    }
}

C_TEST(gemm, scratch_that_overflows_is_refused) {
    struct cpu_scratch scratch = {0};
    EXPECT_STATUS(STATUS_OVERFLOW, cpu_scratch_reserve(&scratch, SIZE_MAX / 2, 3));
    EXPECT_STATUS(STATUS_OVERFLOW, cpu_scratch_reserve(&scratch, 1, SIZE_MAX / 4));
    cpu_scratch_free(&scratch);
}
