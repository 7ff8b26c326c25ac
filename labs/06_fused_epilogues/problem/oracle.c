#include "labs/06_fused_epilogues/problem/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng_bell.h"
#include "common/testing/compare.h"
#include "common/testing/dot.h"

static const double U = 0x1p-24;

const char *fused_op_name(enum fused_op op) {
    static const char *const names[FUSED_OPS] = {
        "linear",   "linear+activation", "linear+add", "linear+add+norm", "gelu+linear+add+norm",
        "add+norm", "add+norm, sum kept"};
    return (unsigned)op < FUSED_OPS ? names[op] : "?";
}

bool fused_op_multiplies(enum fused_op op) {
    return op != FUSED_ADD_NORM && op != FUSED_ADD_KEEP_NORM;
}

static bool adds(enum fused_op op) {
    return op != FUSED_LINEAR && op != FUSED_LINEAR_ACTIVATION;
}

static bool has_bias(enum fused_op op) {
    return fused_op_multiplies(op) && op != FUSED_LINEAR_ADD;
}

static bool normalises(enum fused_op op) {
    return op >= FUSED_LINEAR_ADD_NORM;
}

static double activation(double x, enum nn_activation f) {
    switch (f) {
    case NN_GELU:
        return 0.5 * x * erfc(-x * sqrt(0.5));
    case NN_GELU_TANH:
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case NN_SILU:
        return x / (1.0 + exp(-x));
    case NN_TANH:
        return tanh(x);
    default:
        return fmax(x, 0.0);
    }
}

/* count values of about a normal distribution, the next ones of the block. */
static const float *take(float **next, size_t count, float mean, struct rng *rng) {
    float *values = *next;
    rng_fill_bell(rng, values, count, 1.0f);
    for (size_t i = 0; i < count; i++) {
        values[i] += mean;
    }
    *next += count;
    return values;
}

/* Of what normal values are, 15 bits. */
static void make_coarse(const float *values, size_t count) {
    float *changed = (float *)values;
    for (size_t i = 0; i < count; i++) {
        changed[i] = 0x1p-12f * rintf(0x1p12f * changed[i]);
    }
}

static void make_inputs(struct fused_data *data, struct fused_flavour flavour, struct rng *rng) {
    struct fused_problem *p = &data->problem;
    float *next = data->values;
    p->in = take(&next, p->M * data->in_columns, 0.0f, rng);
    p->weight = fused_op_multiplies(p->op) ? take(&next, p->N * p->K, 0.0f, rng) : NULL;
    p->bias = has_bias(p->op) ? take(&next, p->N, 0.0f, rng) : NULL;
    p->residual = adds(p->op) ? take(&next, p->M * p->N, flavour.mean, rng) : NULL;
    if (normalises(p->op)) {
        p->norm.weight = take(&next, p->N, 1.0f, rng);
        p->norm.bias = take(&next, p->N, 0.0f, rng);
        p->norm.eps = flavour.eps;
    }
    if (flavour.coarse) {
        make_coarse(p->in, p->M * data->in_columns);
        make_coarse(p->residual, p->residual != NULL ? p->M * p->N : 0);
    }
    for (size_t n = 0; n < p->N && normalises(p->op); n++) {
        data->largest_weight = fmaxf(data->largest_weight, fabsf(p->norm.weight[n]));
    }
}

/* The sum before a LayerNorm, of one row. in: (K) scratch. */
static void expect_row(struct fused_data *data, size_t m, double *in) {
    const struct fused_problem *p = &data->problem;
    for (size_t k = 0; k < p->K; k++) {
        in[k] = (double)p->in[m * p->K + k];
        if (p->op == FUSED_GELU_LINEAR_ADD_NORM) {
            in[k] = activation(in[k], NN_GELU);
        }
    }
    for (size_t n = 0; n < p->N; n++) {
        double sum = fused_op_multiplies(p->op) ? dot_f64(in, p->weight + n * p->K, p->K)
                                                : (double)p->in[m * p->N + n];
        sum += p->bias != NULL ? (double)p->bias[n] : 0.0;
        sum += p->residual != NULL ? (double)p->residual[m * p->N + n] : 0.0;
        data->sum[m * p->N + n] = sum;
    }
}

struct moments {
    double mean, deviation; /* of a row; the latter with eps */
};

static struct moments moments_of(const struct fused_data *data, size_t m) {
    size_t N = data->problem.N;
    const double *x = data->sum + m * N;
    double sum = 0.0, squares = 0.0;
    for (size_t n = 0; n < N; n++) {
        sum += x[n];
    }
    double mean = sum / (double)N;
    for (size_t n = 0; n < N; n++) {
        squares += (x[n] - mean) * (x[n] - mean);
    }
    double variance = squares / (double)N + (double)data->problem.norm.eps;
    return (struct moments){mean, sqrt(variance)};
}

static void expect_result(struct fused_data *data, size_t m) {
    const struct fused_problem *p = &data->problem;
    struct moments moments = {0.0, 1.0};
    if (normalises(p->op)) {
        moments = moments_of(data, m);
    }
    for (size_t n = 0; n < p->N; n++) {
        double x = data->sum[m * p->N + n];
        if (p->op == FUSED_LINEAR_ACTIVATION) {
            x = activation(x, p->f);
        } else if (normalises(p->op)) {
            x = (x - moments.mean) / moments.deviation * (double)p->norm.weight[n] +
                (double)p->norm.bias[n];
        }
        data->out[m * p->N + n] = x;
    }
}

enum status fused_data_create(struct fused_data *data, enum fused_op op, struct fused_shape shape,
                              struct fused_flavour flavour, struct rng *rng, struct error *error) {
    size_t M = shape.M, N = shape.N, K = fused_op_multiplies(op) ? shape.K : 0;
    *data =
        (struct fused_data){.in_columns = fused_op_multiplies(op) ? K : N, .mean = flavour.mean};
    data->problem = (struct fused_problem){.op = op, .M = M, .N = N, .K = K, .f = flavour.f};
    size_t floats = M * data->in_columns + N * K + M * N + 3 * N;
    data->values = malloc((floats + 1) * sizeof(float));
    data->sum = malloc((M * N + 1) * sizeof(double));
    data->out = malloc((M * N + 1) * sizeof(double));
    double *in = malloc((K + 1) * sizeof(double));
    if (data->values == NULL || data->sum == NULL || data->out == NULL || in == NULL) {
        free(in);
        fused_data_free(data);
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a case's inputs");
    }
    make_inputs(data, flavour, rng);
    for (size_t m = 0; m < M; m++) {
        expect_row(data, m, in);
        expect_result(data, m);
    }
    free(in);
    return STATUS_OK;
}

void fused_data_free(struct fused_data *data) {
    free(data->values);
    free(data->sum);
    free(data->out);
    *data = (struct fused_data){0};
}

/* How far a row may be off. */
static struct tolerance tolerance_of(const struct fused_data *data, size_t m, bool is_sum) {
    const struct fused_problem *p = &data->problem;
    double K = (double)(p->K > 0 ? p->K : 1), absolute = 4.0 * U * (4.0 + fabs((double)data->mean));
    if (fused_op_multiplies(p->op)) {
        absolute += tolerance_dot_f32(p->K, sqrt(K)).absolute;
    }
    if (p->op == FUSED_LINEAR_ACTIVATION) {
        absolute = 1.2 * absolute + 8.0 * U;
    }
    if (normalises(p->op) && !is_sum) {
        struct moments moments = moments_of(data, m);
        double own =
            U * (8.0 + sqrt((double)p->N)) * (1.0 + fabs(moments.mean) / moments.deviation);
        absolute = (absolute / moments.deviation + own) * (double)data->largest_weight;
    }
    return (struct tolerance){absolute, 16.0 * U, INFINITY};
}

/* One row of data->sum and data->out, which is called `m`. */
static void compare_row(const struct fused_data *data, size_t row, size_t m, const float *got,
                        bool is_sum, char *text, size_t size) {
    size_t N = data->problem.N;
    const double *want = (is_sum ? data->sum : data->out) + row * N;
    struct comparison c = compare_f32(got, want, N, tolerance_of(data, row, is_sum));
    if (!c.pass) {
        snprintf(text, size, "%s[%zu, %zu]: got %.9g, want %.9g, difference %.3g, tolerance %.3g",
                 is_sum ? "sum" : "out", m, c.worst, c.got, c.want, fabs(c.got - c.want),
                 c.allowed);
    }
}

void fused_compare(const struct fused_data *data, const float *got, bool is_sum, char *text,
                   size_t size) {
    text[0] = '\0';
    for (size_t m = 0; m < data->problem.M && text[0] == '\0'; m++) {
        compare_row(data, m, m, got + m * data->problem.N, is_sum, text, size);
    }
}

struct fused_mix fused_mix_draw(size_t M, struct rng *rng) {
    struct fused_mix mix;
    for (int i = 0; i < 2; i++) { /* 1/2, 5/8 or 3/4, and a sign */
        float eighths = (float)(4 + rng_below(rng, 3));
        mix.rows[i] = rng_below(rng, M);
        mix.factors[i] = (rng_below(rng, 2) == 0 ? 0.125f : -0.125f) * eighths;
    }
    return mix;
}

void fused_mix_row(const struct fused_mix *mix, const float *values, size_t columns, float *row) {
    const float *a = values + mix->rows[0] * columns, *b = values + mix->rows[1] * columns;
    for (size_t i = 0; i < columns; i++) {
        row[i] = mix->factors[0] * a[i] + mix->factors[1] * b[i];
    }
}

void fused_compare_mix(const struct fused_data *data, const struct fused_mix *mix, size_t m,
                       const float *got, double *scratch, char *text, size_t size) {
    size_t N = data->problem.N;
    const double *a = data->sum + mix->rows[0] * N, *b = data->sum + mix->rows[1] * N;
    double x = (double)mix->factors[0], y = (double)mix->factors[1];
    struct fused_data row = *data;
    row.sum = scratch;
    row.out = scratch + N;
    for (size_t n = 0; n < N; n++) { /* the bias comes once */
        double bias = data->problem.bias != NULL ? (double)data->problem.bias[n] : 0.0;
        row.sum[n] = x * a[n] + y * b[n] + (1.0 - x - y) * bias;
    }
    expect_result(&row, 0);
    text[0] = '\0';
    compare_row(&row, 0, m, got, false, text, size);
}
