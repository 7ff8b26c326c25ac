#include "labs/06_fused_epilogues/bench/case.h"

#include <stdlib.h>
#include <string.h>

#include "labs/04_sgemm/sgemm.h"

size_t bench_case_bytes(const struct fused_shape *s) {
    size_t in = s->K > s->N ? s->K : s->N;
    return sizeof(float) * (s->M * in + s->N * s->K + 3 * s->M * s->N + 3 * s->N);
}

/* A device copy of count floats; NULL stays NULL. */
static enum status send(void **d, const float *values, size_t count, struct error *error) {
    if (values == NULL || count == 0) {
        return STATUS_OK;
    }
    TRY(device_alloc(d, count * sizeof(float), error));
    return device_write(*d, values, count * sizeof(float), NULL, error);
}

/* The same for rows, over and over until there are M. */
static enum status send_rows(void **d, const float *values, size_t rows, size_t M, size_t columns,
                             struct error *error) {
    if (values == NULL || rows * columns == 0) {
        return STATUS_OK;
    }
    float *all = malloc(M * columns * sizeof(float));
    if (all == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the inputs");
    }
    for (size_t m = 0; m < M; m++) {
        memcpy(all + m * columns, values + m % rows * columns, columns * sizeof(float));
    }
    enum status status = send(d, all, M * columns, error);
    free(all);
    return status;
}

static enum status make_workspace(struct bench_case *c, struct error *error) {
    TRY(device_alloc(&c->workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(c->workspace, 0, FUSED_ZERO_BYTES, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status fill(struct bench_case *c, size_t M, struct error *error) {
    const struct fused_problem *p = &c->data.problem;
    size_t N = p->N, rows = p->M;
    TRY(make_workspace(c, error));
    TRY(send_rows(&c->d_in, p->in, rows, M, c->data.in_columns, error));
    TRY(send(&c->d_weight, p->weight, N * p->K, error));
    TRY(send(&c->d_bias, p->bias, N, error));
    TRY(send_rows(&c->d_residual, p->residual, rows, M, N, error));
    TRY(send(&c->d_norm_weight, p->norm.weight, N, error));
    TRY(send(&c->d_norm_bias, p->norm.bias, N, error));
    TRY(device_alloc(&c->d_sum, p->op == FUSED_ADD_KEEP_NORM ? M * N * sizeof(float) : 0, error));
    TRY(device_alloc(&c->d_out, M * N * sizeof(float), error));
    c->problem = *p;
    c->problem.M = M;
    c->problem.in = c->d_in;
    c->problem.weight = c->d_weight;
    c->problem.bias = c->d_bias;
    c->problem.residual = c->d_residual;
    c->problem.norm = (struct nn_norm){c->d_norm_weight, c->d_norm_bias, p->norm.eps};
    c->problem.sum = c->d_sum;
    c->problem.out = c->d_out;
    return STATUS_OK;
}

enum status bench_case_create(struct bench_case *c, enum fused_op op, struct fused_shape shape,
                              struct error *error) {
    size_t M = shape.M;
    struct rng rng = rng_create(7);
    const struct fused_flavour flavour = {.f = NN_GELU, .eps = 1e-12f};
    *c = (struct bench_case){0};
    shape.M = M < BENCH_ROWS ? M : BENCH_ROWS;
    TRY(fused_data_create(&c->data, op, shape, flavour, &rng, error));
    return fill(c, M, error);
}

void bench_case_free(struct bench_case *c) {
    void *const all[] = {c->d_in,        c->d_weight, c->d_bias, c->d_residual, c->d_norm_weight,
                         c->d_norm_bias, c->d_sum,    c->d_out,  c->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    fused_data_free(&c->data);
}

enum status bench_case_run(void *argument, device_stream stream, struct error *error) {
    const struct bench_case *c = argument;
    return c->run(&c->problem, c->workspace, stream, error);
}

enum status bench_case_matmul(void *argument, device_stream stream, struct error *error) {
    const struct bench_case *c = argument;
    const struct sgemm_problem product = {.M = c->problem.M,
                                          .N = c->problem.N,
                                          .K = c->problem.K,
                                          .form = SGEMM_B_TRANSPOSED,
                                          .alpha = 1.0f,
                                          .A = c->d_in,
                                          .B = c->d_weight,
                                          .C = c->d_out};
    return sgemm(&product, (char *)c->workspace + FUSED_ZERO_BYTES, stream, error);
}

/* Compares as many rows as there are different ones, from row m on, a multiple of their number. */
static enum status check_rows(const struct bench_case *c, const void *d_result, bool is_sum,
                              size_t m, float *got, char *wrong, size_t size, struct error *error) {
    size_t N = c->problem.N, rows = c->data.problem.M;
    const float *from = (const float *)d_result + m * N;
    TRY(device_read(got, from, rows * N * sizeof(float), NULL, error));
    fused_compare(&c->data, got, is_sum, wrong, size);
    return STATUS_OK;
}

enum status bench_case_check(struct bench_case *c, char *wrong, size_t size, struct error *error) {
    size_t rows = c->data.problem.M, last = (c->problem.M / rows - 1) * rows;
    bool keeps = c->problem.op == FUSED_ADD_KEEP_NORM;
    wrong[0] = '\0';
    TRY(bench_case_run(c, NULL, error));
    TRY(device_synchronize(NULL, error));
    float *got = malloc(rows * c->problem.N * sizeof(float));
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the results");
    }
    enum status status = check_rows(c, c->d_out, false, 0, got, wrong, size, error);
    if (status == STATUS_OK && wrong[0] == '\0') {
        status = check_rows(c, c->d_out, false, last, got, wrong, size, error);
    }
    if (status == STATUS_OK && wrong[0] == '\0' && keeps) {
        status = check_rows(c, c->d_sum, true, last, got, wrong, size, error);
    }
    free(got);
    return status;
}
