/* v10 with A as (K, M): the same bits as with A as (M, K), in every tile shape. */
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "labs/04_sgemm/given/sgemm_a_transposed.h"
#include "solutions/04_sgemm/steps/ladder.h"
#include "solutions/ladder_gpu.h"

enum { MOST = 300 * 532 };

static const struct {
    size_t M, N, K;
    int splits;
} sizes[] = {
    {4, 4, 1, 1},     {128, 128, 16, 1}, {100, 36, 33, 1},  {196, 260, 50, 1},
    {132, 140, 7, 1}, {96, 128, 100, 3}, {300, 64, 532, 2}, {8, 300, 64, 4},
};

struct operands {
    float *A, *A_transposed, *B, *C, *C_transposed; /* device */
    void *workspace;
    float *host, *transposed, *got, *want;
};

static void operands_free(struct operands *o) {
    void *device[] = {o->A, o->A_transposed, o->B, o->C, o->C_transposed, o->workspace};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) {
        device_free(device[i]);
    }
    free(o->host);
    free(o->transposed);
    free(o->got);
    free(o->want);
}

static enum status operands_create(struct operands *o, struct error *error) {
    void **device[] = {(void **)&o->A, (void **)&o->A_transposed, (void **)&o->B, (void **)&o->C,
                       (void **)&o->C_transposed};
    float **host[] = {&o->host, &o->transposed, &o->got, &o->want};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) {
        TRY(device_alloc(device[i], MOST * sizeof(float), error));
    }
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) {
        *host[i] = calloc(MOST, sizeof(float));
        if (*host[i] == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
        }
    }
    return device_alloc(&o->workspace, SGEMM_WORKSPACE_BYTES, error);
}

static enum status send(struct operands *o, size_t M, size_t N, size_t K, struct error *error) {
    struct rng rng = rng_create(M * 31 + N * 7 + K);
    for (size_t i = 0; i < M * K; i++) {
        o->host[i] = (float)rng_below(&rng, 2001) / 1000.0f - 1.0f;
        o->transposed[i % K * M + i / K] = o->host[i];
    }
    TRY(device_write(o->A, o->host, M * K * sizeof(float), NULL, error));
    TRY(device_write(o->A_transposed, o->transposed, M * K * sizeof(float), NULL, error));
    for (size_t i = 0; i < K * N; i++) {
        o->host[i] = (float)rng_below(&rng, 2001) / 1000.0f - 1.0f;
    }
    TRY(device_write(o->B, o->host, K * N * sizeof(float), NULL, error));
    TRY(device_write(o->C, o->host, M * N * sizeof(float), NULL, error));
    return device_write(o->C_transposed, o->host, M * N * sizeof(float), NULL, error);
}

static enum status multiply(struct operands *o, size_t M, size_t N, size_t K,
                            struct sgemm_plan plan, struct error *error) {
    struct sgemm_problem problem = {M, N, K, SGEMM_B_PLAIN, 0.5f, 1.0f, o->A, o->B, o->C};
    TRY(send(o, M, N, K, error));
    TRY(sgemm_v10_run(&problem, plan, o->workspace, NULL, error));
    problem.A = o->A_transposed;
    problem.C = o->C_transposed;
    TRY(sgemm_v10_run_a_transposed(&problem, plan, o->workspace, NULL, error));
    TRY(device_read(o->want, o->C, M * N * sizeof(float), NULL, error));
    return device_read(o->got, o->C_transposed, M * N * sizeof(float), NULL, error);
}

C_TEST(a_transposed, has_the_same_bits) {
    struct device_properties gpu;
    struct operands o = {0};
    struct error error = {0};
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    enum status status = operands_create(&o, &error);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int shape = 0; shape < sgemm_v10_shape_count() - 1 && status == STATUS_OK; shape++) {
            size_t M = sizes[i].M, N = sizes[i].N;
            const struct sgemm_plan plan = {shape, sizes[i].splits};
            status = multiply(&o, M, N, sizes[i].K, plan, &error);
            if (status == STATUS_OK && memcmp(o.want, o.got, M * N * sizeof(float)) != 0) {
                TEST_FAIL("%s, %zu x %zu x %zu in %d: other bits", sgemm_v10_shape_name(shape), M,
                          N, sizes[i].K, plan.splits);
            }
        }
    }
    EXPECT_OK(status);
    operands_free(&o);
}

C_TEST(a_transposed, refuses_what_is_not_aligned) {
    struct error error = {0};
    struct sgemm_problem problem = {6, 8, 8, SGEMM_B_PLAIN, 1.0f, 0.0f, NULL, NULL, NULL};
    EXPECT_STATUS(
        STATUS_INVALID_ARGUMENT,
        sgemm_v10_run_a_transposed(&problem, (struct sgemm_plan){0, 1}, NULL, NULL, &error));
    problem.M = 8;
    problem.form = SGEMM_B_TRANSPOSED;
    EXPECT_STATUS(
        STATUS_INVALID_ARGUMENT,
        sgemm_v10_run_a_transposed(&problem, (struct sgemm_plan){0, 1}, NULL, NULL, &error));
}
