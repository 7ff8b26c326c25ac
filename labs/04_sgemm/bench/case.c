/* One shape of the bench: operands on the GPU, and rows of the right result. */
#include "labs/04_sgemm/bench/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/testing/compare.h"

/* Products of the rows that are checked, about: a second of one core. */
#define CHECKED_PRODUCTS ((size_t)1 << 27)

double bench_flops(const struct bench_shape *s) {
    return 2.0 * (double)s->M * (double)s->N * (double)s->K;
}

double bench_bytes(const struct bench_shape *s) {
    return sizeof(float) * ((double)s->M * (double)s->K + (double)s->N * (double)s->K +
                            (double)s->M * (double)s->N);
}

struct sgemm_problem bench_case_problem(const struct bench_case *c, size_t M) {
    return (struct sgemm_problem){.M = M,
                                  .N = c->shape.N,
                                  .K = c->shape.K,
                                  .form = c->form,
                                  .alpha = 1.0f,
                                  .beta = 0.0f,
                                  .A = c->A,
                                  .B = c->B,
                                  .C = c->C};
}

/* All rows, or the first, the last and some between. */
static enum status choose_rows(struct bench_case *c, struct rng *rng, struct error *error) {
    const struct bench_shape *s = &c->shape;
    size_t rows = CHECKED_PRODUCTS / (s->N * s->K);
    rows = rows < 3 ? 3 : rows;
    c->rows = rows < s->M ? rows : s->M;
    c->row = malloc(c->rows * sizeof *c->row);
    c->want = malloc(c->rows * s->N * sizeof *c->want);
    c->got = malloc(s->N * sizeof *c->got);
    if (c->row == NULL || c->want == NULL || c->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < c->rows; i++) {
        c->row[i] = c->rows == s->M ? i : i == 0 ? 0 : i == 1 ? s->M - 1 : rng_below(rng, s->M);
    }
    return STATUS_OK;
}

/* Uniform in [-1, 1): quick to make, and of mean square 1/3. */
static void fill(struct rng *rng, float *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = 2.0f * rng_uniform(rng) - 1.0f;
    }
}

static void calculate_row(double *want, const struct bench_case *c, const float *a,
                          const float *B) {
    size_t N = c->shape.N, K = c->shape.K;
    for (size_t n = 0; n < N; n++) {
        want[n] = 0.0;
    }
    for (size_t k = 0; k < K && c->form == SGEMM_B_PLAIN; k++) {
        for (size_t n = 0; n < N; n++) {
            want[n] += (double)a[k] * (double)B[k * N + n];
        }
    }
    for (size_t n = 0; n < N && c->form == SGEMM_B_TRANSPOSED; n++) {
        for (size_t k = 0; k < K; k++) {
            want[n] += (double)a[k] * (double)B[n * K + k];
        }
    }
}

/* Copies both operands to the device. */
static enum status upload(struct bench_case *c, const float *A, const float *B,
                          struct error *error) {
    const struct bench_shape *s = &c->shape;
    size_t bytes[] = {s->M * s->K * sizeof(float), s->N * s->K * sizeof(float),
                      s->M * s->N * sizeof(float), SGEMM_WORKSPACE_BYTES};
    void **memory[] = {&c->A, &c->B, &c->C, &c->workspace};
    enum status status = STATUS_OK;
    for (int i = 0; i < 4 && status == STATUS_OK; i++) {
        status = device_alloc(memory[i], bytes[i], error);
    }
    if (status == STATUS_OK) {
        status = device_write(c->A, A, bytes[0], NULL, error);
    }
    return status == STATUS_OK ? device_write(c->B, B, bytes[1], NULL, error) : status;
}

enum status bench_case_create(struct bench_case *c, struct bench_shape s, enum sgemm_form form,
                              struct error *error) {
    struct rng rng = rng_create(1);
    *c = (struct bench_case){.shape = s, .form = form};
    float *A = malloc(s.M * s.K * sizeof *A), *B = malloc(s.N * s.K * sizeof *B);
    enum status status = STATUS_OK;
    if (A == NULL || B == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    if (status == STATUS_OK) {
        status = choose_rows(c, &rng, error);
    }
    if (status == STATUS_OK) {
        fill(&rng, A, s.M * s.K);
        fill(&rng, B, s.N * s.K);
        status = upload(c, A, B, error);
    }
    for (size_t i = 0; i < c->rows && status == STATUS_OK; i++) {
        calculate_row(c->want + i * s.N, c, A + c->row[i] * s.K, B);
    }
    free(A);
    free(B);
    return status;
}

void bench_case_free(struct bench_case *c) {
    device_free(c->A);
    device_free(c->B);
    device_free(c->C);
    device_free(c->workspace);
    free(c->row);
    free(c->want);
    free(c->got);
}

enum status bench_case_check(struct bench_case *c, char *wrong, size_t size, struct error *error) {
    const struct bench_shape *s = &c->shape;
    const struct sgemm_problem problem = bench_case_problem(c, s->M);
    wrong[0] = '\0';
    /* Bytes of ones are NaN: what nobody writes shows. */
    enum status status = device_set(c->C, 0xff, s->M * s->N * sizeof(float), NULL, error);
    if (status == STATUS_OK) {
        status = c->run(&problem, c->workspace, NULL, error);
    }
    for (size_t i = 0; i < c->rows && status == STATUS_OK && wrong[0] == '\0'; i++) {
        const float *row = (const float *)c->C + c->row[i] * s->N;
        status = device_read(c->got, row, s->N * sizeof(float), NULL, error);
        struct comparison result = {.pass = true};
        if (status == STATUS_OK) {
            result = compare_f32(c->got, c->want + i * s->N, s->N,
                                 tolerance_dot_f32(s->K, sqrt((double)s->K) / 3.0));
        }
        if (!result.pass) {
            char text[256];
            comparison_describe(&result, s->N, text, sizeof text);
            snprintf(wrong, size, "row %zu: %s", c->row[i], text);
        }
    }
    return status;
}
