/* Random problems of lab 04 and their results. */
#include "labs/04_sgemm/problem/oracle.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/rng_bell.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"

double sgemm_flops(struct sgemm_shape s) {
    return 2.0 * (double)s.M * (double)s.N * (double)s.K;
}

double sgemm_bytes(struct sgemm_shape s) {
    return sizeof(float) *
           ((double)s.M * (double)s.K + (double)s.N * (double)s.K + (double)s.M * (double)s.N);
}

static void fill(struct rng *rng, enum sgemm_values values, float *out, size_t rows,
                 size_t columns) {
    switch (values) {
    case SGEMM_ROWS:
        rng_fill_bell_rows(rng, out, rows, columns);
        break;
    case SGEMM_NORMAL:
        rng_fill_normal(rng, out, rows * columns, 1.0f);
        break;
    case SGEMM_UNIFORM:
        for (size_t i = 0; i < rows * columns; i++) {
            out[i] = 2.0f * rng_uniform(rng) - 1.0f;
        }
    }
}

/* B (K, N) in the place of a weight (N, K), by way of a copy. */
static enum status transpose(float *B, size_t N, size_t K, struct error *error) {
    float *weight = malloc(N * K * sizeof *weight + 1);
    if (weight == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < N * K; i++) {
        weight[i] = B[i];
    }
    for (size_t k = 0; k < K; k++) {
        for (size_t n = 0; n < N; n++) {
            B[k * N + n] = weight[n * K + k];
        }
    }
    free(weight);
    return STATUS_OK;
}

/* All rows in their order, or the first, the last and some between. */
static void choose_rows(struct sgemm_data *data, struct rng *rng) {
    const size_t M = data->shape.M;
    for (size_t i = 0; i < data->rows; i++) {
        data->row[i] = data->rows == M ? i : i == 0 ? 0 : i == 1 ? M - 1 : rng_below(rng, M);
    }
}

/* Products with the weight (N, K), then alpha and beta. */
static void calculate(struct sgemm_data *data) {
    const size_t N = data->shape.N, K = data->shape.K;
    const double alpha = (double)data->variant.alpha, beta = (double)data->variant.beta;
    if (data->rows == data->shape.M) {
        nn_matmul_f64(data->want, data->A, data->B, data->rows, N, K);
    }
    for (size_t i = 0; i < data->rows; i++) {
        const size_t m = data->row[i];
        double *want = data->want + i * N;
        if (data->rows < data->shape.M) {
            nn_matmul_f64(want, data->A + m * K, data->B, 1, N, K);
        }
        for (size_t n = 0; n < N; n++) {
            want[n] = alpha * want[n] + (data->C == NULL ? 0.0 : beta * (double)data->C[m * N + n]);
        }
    }
}

static enum status allocate(struct sgemm_data *data, struct error *error) {
    const struct sgemm_shape *s = &data->shape;
    data->A = malloc(s->M * s->K * sizeof *data->A + 1);
    data->B = malloc(s->N * s->K * sizeof *data->B + 1);
    data->row = malloc(data->rows * sizeof *data->row + 1);
    data->want = malloc(data->rows * s->N * sizeof *data->want + 1);
    bool has_C = data->variant.beta != 0.0f;
    data->C = has_C ? malloc(s->M * s->N * sizeof *data->C + 1) : NULL;
    return data->A == NULL || data->B == NULL || data->row == NULL || data->want == NULL ||
                   (has_C && data->C == NULL)
               ? error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host")
               : STATUS_OK;
}

enum status sgemm_data_create(struct sgemm_data *data, struct sgemm_shape s,
                              struct sgemm_variant variant, enum sgemm_values values, size_t most,
                              struct rng *rng, struct error *error) {
    *data = (struct sgemm_data){
        .shape = s, .variant = variant, .values = values, .rows = most < s.M ? most : s.M};
    TRY(allocate(data, error));
    choose_rows(data, rng);
    fill(rng, values, data->A, s.M, s.K);
    fill(rng, values, data->B, s.N, s.K);
    if (data->C != NULL) {
        fill(rng, values, data->C, s.M, s.N);
    }
    calculate(data);
    return variant.form == SGEMM_B_PLAIN ? transpose(data->B, s.N, s.K, error) : STATUS_OK;
}

void sgemm_data_free_operands(struct sgemm_data *data) {
    free(data->A);
    free(data->B);
    free(data->C);
    data->A = data->B = data->C = NULL;
}

void sgemm_data_free(struct sgemm_data *data) {
    sgemm_data_free_operands(data);
    free(data->row);
    free(data->want);
    *data = (struct sgemm_data){0};
}

/* Elements have the size of K products that add up like a random walk, and of C once. */
static struct tolerance tolerance_of(const struct sgemm_data *data) {
    const double product = data->values == SGEMM_UNIFORM ? 1.0 / 3.0 : 1.0;
    const double scale = fabs((double)data->variant.alpha) * product * sqrt((double)data->shape.K) +
                         fabs((double)data->variant.beta);
    return tolerance_dot_f32(data->shape.K, scale > 0.0 ? scale : 1.0);
}

static bool compare(const struct sgemm_data *data, const double *want, const float *got,
                    size_t rows, char *text, size_t size) {
    const size_t N = data->shape.N;
    const struct comparison result = compare_f32(got, want, rows * N, tolerance_of(data));
    comparison_describe(&result, N, text, size);
    return result.pass;
}

bool sgemm_check_row(const struct sgemm_data *data, size_t i, const float *got, char *text,
                     size_t size) {
    return compare(data, data->want + i * data->shape.N, got, 1, text, size);
}

bool sgemm_check(const struct sgemm_data *data, const float *got, char *text, size_t size) {
    return compare(data, data->want, got, data->shape.M, text, size);
}
