#include "labs/12_tensor_cores/problem/problem.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/simt.h"

static double activation(double x, enum nn_activation f) {
    switch (f) {
    case NN_GELU:
        return x * 0.5 * erfc(-x / sqrt(2.0));
    case NN_GELU_TANH:
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case NN_SILU:
        return x / (1.0 + exp(-x));
    case NN_TANH:
        return tanh(x);
    case NN_RELU:
        return x > 0.0 ? x : 0.0;
    }
    return NAN;
}

/*
 * The sums: what fp32 costs a dot product of K, times the steepest of the activations (1.13).
 * The activation: fp32's functions are right to a few units in the last place of their argument,
 * of which tails such as 1 + erf(x) keep the absolute error: 2e-6 of the argument's scale.
 * The result: rounded once to its type; a quarter more, as the sum's error may cross a boundary.
 */
static struct tolerance tolerance_of(const struct gemm16_case *c) {
    double scale = sqrt((double)c->K) + 1.0;
    struct tolerance t = tolerance_dot_f32(c->K, scale);
    double rounding = 1.25 * nn_dtype_rounding(c->out_dtype);
    t.absolute = 1.13 * t.absolute + 2e-6 * scale;
    t.relative = t.relative + rounding;
    t.norm = t.norm + rounding + 2e-6;
    if (c->gate) { /* silu(a) b: an error of a grows by b and silu's slope, and the other way round
                    */
        const double most = 4.0 * scale, slope = 1.1;
        t.absolute *= 2.0 * slope * most;
        t.relative += tolerance_dot_f32(c->K, scale).relative;
        t.norm += tolerance_dot_f32(c->K, scale).norm + 2e-6;
    }
    return t;
}

/* Random values that the type can hold, as it stores them, into `stored`, and as fp32. */
static void draw(struct rng *rng, float *values, void *stored, size_t count, enum nn_dtype dtype) {
    rng_fill_normal(rng, values, count, 1.0f);
    nn_dtype_store(stored, values, count, dtype);
    nn_dtype_load(values, stored, count, dtype);
}

/* to (columns, rows) = from (rows, columns)^T */
static void transpose(uint16_t *to, const uint16_t *from, size_t rows, size_t columns) {
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < columns; j++) {
            to[j * rows + i] = from[i * columns + j];
        }
    }
}

/* One operand: random on the host, copied `skew` elements past the start of device memory. */
static enum status make_operand(struct rng *rng, float **values, void **d, size_t count,
                                enum nn_dtype dtype, size_t skew, struct error *error) {
    size_t element = nn_dtype_bytes(dtype);
    void *stored = malloc(count * element + 1);
    *values = malloc(count * sizeof(float) + 1);
    enum status status = STATUS_OK;
    if (stored == NULL || *values == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    } else {
        draw(rng, *values, stored, count, dtype);
        status = device_alloc(d, (count + skew) * element, error);
    }
    if (status == STATUS_OK && count > 0) {
        status = device_write((char *)*d + skew * element, stored, count * element, NULL, error);
    }
    free(stored);
    return status;
}

/* A factor (rows, K); transposed: (K, rows) on the device. */
static enum status make_factor(struct rng *rng, float **values, void **d, size_t rows, size_t K,
                               bool is_transposed, const struct gemm16_case *c,
                               struct error *error) {
    size_t count = rows * K, bytes = count * sizeof(uint16_t), skew = c->skew * sizeof(uint16_t);
    TRY(make_operand(rng, values, d, count, c->dtype, c->skew, error));
    if (!is_transposed || count == 0) {
        return STATUS_OK;
    }
    enum status status;
    uint16_t *stored = malloc(bytes), *transposed = malloc(bytes);
    if (stored == NULL || transposed == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    } else {
        nn_dtype_store(stored, *values, count, c->dtype);
        transpose(transposed, stored, rows, K);
        status = device_write((char *)*d + skew, transposed, bytes, NULL, error);
    }
    free(stored);
    free(transposed);
    return status;
}

struct host_values {
    float *in, *weight, *bias, *residual;
};

/* Column n of row i of in * weight^T + bias. */
static double product(const struct gemm16_data *data, const struct host_values *v, size_t i,
                      size_t n) {
    const struct gemm16_case *c = &data->c;
    const float *in = v->in + data->row[i] * c->K, *weight = v->weight + n * c->K;
    double x = 0.0;
    for (size_t k = 0; k < c->K; k++) {
        x += (double)in[k] * (double)weight[k];
    }
    return x + (c->bias ? (double)v->bias[n] : 0.0);
}

static void calculate_row(struct gemm16_data *data, const struct host_values *v, size_t i) {
    const struct gemm16_case *c = &data->c;
    double *want = data->want + i * data->columns;
    for (size_t j = 0; c->gate && j < data->columns; j++) {
        want[j] = activation(product(data, v, i, 2 * j), NN_SILU) * product(data, v, i, 2 * j + 1);
    }
    for (size_t n = 0; !c->gate && n < c->N; n++) {
        double x = product(data, v, i, n);
        x = c->activate ? activation(x, c->f) : x;
        x += c->residual ? (double)v->residual[data->row[i] * c->N + n] : 0.0;
        want[n] = x;
    }
}

/* Host buffers of out: all NaN, in place with the residual inside. */
static void make_old(struct gemm16_data *data, const struct host_values *v) {
    memset(data->old, 0xff, data->out_bytes);
    if (data->c.in_place) {
        size_t skew = data->c.skew * nn_dtype_bytes(data->c.out_dtype);
        nn_dtype_store(data->old + data->guard + skew, v->residual, data->c.M * data->c.N,
                       data->c.out_dtype);
    }
}

static enum status make_host(struct gemm16_data *data, struct error *error) {
    const struct gemm16_case *c = &data->c;
    data->rows = c->rows == 0 || c->rows > c->M ? c->M : c->rows;
    data->row = malloc(data->rows * sizeof *data->row + 1);
    data->want = malloc(data->rows * data->columns * sizeof *data->want + 1);
    data->old = malloc(data->out_bytes + 1);
    data->got = malloc(data->out_bytes + 1);
    if (data->row == NULL || data->want == NULL || data->old == NULL || data->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    struct rng rng = rng_create(c->seed + 1);
    for (size_t i = 0; i < data->rows; i++) {
        data->row[i] = data->rows > 1 ? i * (c->M - 1) / (data->rows - 1) : 0;
        if (c->seed != 0 && data->rows < c->M) {
            data->row[i] = rng_below(&rng, c->M);
        }
    }
    return STATUS_OK;
}

static enum status make_device(struct gemm16_data *data, struct host_values *v,
                               struct error *error) {
    const struct gemm16_case *c = &data->c;
    struct rng rng = rng_create(c->seed != 0 ? c->seed : c->M * 31 + c->N * 7 + c->K);
    enum nn_dtype bias = c->bias_is_float ? NN_F32 : c->dtype;
    enum nn_dtype residual = c->residual_is_float ? NN_F32 : c->dtype;
    size_t biases = c->bias ? c->N : 0, residuals = c->residual ? c->M * c->N : 0;
    TRY(make_factor(&rng, &v->in, &data->d_in, c->M, c->K, c->in_is_transposed, c, error));
    TRY(make_factor(&rng, &v->weight, &data->d_weight, c->N, c->K, c->weight_is_transposed, c,
                    error));
    TRY(make_operand(&rng, &v->bias, &data->d_bias, biases, bias, c->skew, error));
    TRY(make_operand(&rng, &v->residual, &data->d_residual, residuals, residual, c->skew, error));
    TRY(device_alloc(&data->d_out, data->out_bytes, error));
    return device_alloc(&data->workspace, GEMM16_WORKSPACE_BYTES, error);
}

static void *skewed(void *d, size_t bytes) {
    return d != NULL ? (char *)d + bytes : NULL;
}

static void set_problem(struct gemm16_data *data) {
    const struct gemm16_case *c = &data->c;
    size_t skew = c->skew * 2;
    void *out = skewed(data->d_out, data->guard + c->skew * nn_dtype_bytes(c->out_dtype));
    data->problem = (struct gemm16_problem){
        .dtype = c->dtype,
        .out_dtype = c->out_dtype,
        .M = c->M,
        .N = c->N,
        .K = c->K,
        .in = skewed(data->d_in, skew),
        .weight = skewed(data->d_weight, skew),
        .in_is_transposed = c->in_is_transposed,
        .weight_is_transposed = c->weight_is_transposed,
        .bias = c->bias ? skewed(data->d_bias, c->bias_is_float ? 2 * skew : skew) : NULL,
        .bias_is_float = c->bias_is_float,
        .gate = c->gate,
        .activate = c->activate,
        .f = c->f,
        .residual = !c->residual ? NULL
                    : c->in_place
                        ? out
                        : skewed(data->d_residual, c->residual_is_float ? 2 * skew : skew),
        .residual_is_float = c->residual_is_float,
        .out = out,
    };
}

static enum status make_data(struct gemm16_data *data, struct host_values *v, struct error *error) {
    TRY(make_host(data, error));
    TRY(make_device(data, v, error));
    set_problem(data);
    make_old(data, v);
    for (size_t i = 0; i < data->rows; i++) {
        calculate_row(data, v, i);
    }
    return STATUS_OK;
}

enum status gemm16_data_create(struct gemm16_data *data, const struct gemm16_case *c, size_t guard,
                               struct error *error) {
    struct host_values v = {0};
    size_t element = nn_dtype_bytes(c->out_dtype);
    *data = (struct gemm16_data){.c = *c, .guard = guard * element};
    data->columns = c->gate ? c->N / 2 : c->N;
    data->out_bytes = (c->M * data->columns + c->skew + 2 * guard) * element;
    data->tolerance = tolerance_of(c);
    enum status status = make_data(data, &v, error);
    free(v.in);
    free(v.weight);
    free(v.bias);
    free(v.residual);
    return status;
}

void gemm16_data_free(struct gemm16_data *data) {
    device_free(data->d_in);
    device_free(data->d_weight);
    device_free(data->d_bias);
    device_free(data->d_residual);
    device_free(data->d_out);
    device_free(data->workspace);
    free(data->row);
    free(data->want);
    free(data->old);
    free(data->got);
}

enum status gemm16_data_reset(struct gemm16_data *data, struct error *error) {
    if (data->out_bytes == 0) {
        return STATUS_OK;
    }
    return device_write(data->d_out, data->old, data->out_bytes, NULL, error);
}

/* What lies around out was NaN and must still be. */
static bool is_intact(const struct gemm16_data *data) {
    size_t element = nn_dtype_bytes(data->c.out_dtype);
    size_t first = data->guard + data->c.skew * element;
    size_t end = first + data->c.M * data->columns * element;
    for (size_t i = 0; i < first; i++) {
        if (data->got[i] != 0xff) {
            return false;
        }
    }
    for (size_t i = end; i < data->out_bytes; i++) {
        if (data->got[i] != 0xff) {
            return false;
        }
    }
    return true;
}

static enum status compare_rows(struct gemm16_data *data, char *wrong, size_t size,
                                struct error *error) {
    const struct gemm16_case *c = &data->c;
    size_t element = nn_dtype_bytes(c->out_dtype);
    size_t columns = data->columns;
    float *got = malloc(data->rows * columns * sizeof *got + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t i = 0; i < data->rows; i++) {
        const unsigned char *row =
            data->got + data->guard + (c->skew + data->row[i] * columns) * element;
        nn_dtype_load(got + i * columns, row, columns, c->out_dtype);
    }
    struct comparison result = compare_f32(got, data->want, data->rows * columns, data->tolerance);
    if (!result.pass) {
        comparison_describe(&result, columns, wrong, size);
    }
    free(got);
    return STATUS_OK;
}

enum status gemm16_data_check(struct gemm16_data *data, char *wrong, size_t size,
                              struct error *error) {
    wrong[0] = '\0';
    TRY(device_synchronize(NULL, error));
    if (data->out_bytes > 0) {
        TRY(device_read(data->got, data->d_out, data->out_bytes, NULL, error));
    }
    if (!is_intact(data)) {
        snprintf(wrong, size, "something was written beside out");
        return STATUS_OK;
    }
    return data->c.M * data->c.N > 0 ? compare_rows(data, wrong, size, error) : STATUS_OK;
}

void gemm16_name_tensors(const struct gemm16_problem *problem) {
    simt_name_tensor(problem->in, "in");
    simt_name_tensor(problem->weight, "weight");
    simt_name_tensor(problem->bias, "bias");
    simt_name_tensor(problem->residual, "residual");
    simt_name_tensor(problem->out, "out");
}

double gemm16_flops(const struct gemm16_case *c) {
    return 2.0 * (double)c->M * (double)c->N * (double)c->K;
}

double gemm16_bytes(const struct gemm16_case *c) {
    double out = (double)c->M * (double)(c->gate ? c->N / 2 : c->N);
    double result = (double)nn_dtype_bytes(c->out_dtype) * out;
    double residual = c->residual && !c->in_place ? (c->residual_is_float ? 4.0 : 2.0) * out : 0.0;
    return 2.0 * ((double)c->M + (double)c->N) * (double)c->K + result + residual;
}
