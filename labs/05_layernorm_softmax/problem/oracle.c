/* Inputs, right results and tolerances of lab 05. */
#include "labs/05_layernorm_softmax/problem/oracle.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/rng_bell.h"
#include "common/nn/nn.h"

const char *rows_op_name(enum rows_op op) {
    static const char *const names[] = {"layernorm", "rmsnorm", "softmax"};
    return names[op];
}

/* Rounds values to the type. */
static void round_values(float *values, size_t count, enum nn_dtype type) {
    enum { BLOCK = 1024 };
    float stored[BLOCK]; /* room for any type */
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t some = count - i < BLOCK ? count - i : BLOCK;
        nn_dtype_store(stored, values + i, some, type);
        nn_dtype_load(values + i, stored, some, type);
    }
}

static void fill_row(struct rows_data *data, size_t row, struct rows_flavour flavour,
                     struct rng *rng) {
    float unit = flavour.quiet ? 1e-3f : 1.0f;
    float offset = flavour.mean + 0.25f * unit * rng_normal(rng);
    float scale = unit * (0.5f + rng_uniform(rng)) * (data->op == ROWS_SOFTMAX ? 3.0f : 1.0f);
    float *in = data->in + row * data->C;
    rng_fill_bell(rng, in, data->C, scale);
    for (size_t c = 0; c < data->C; c++) {
        in[c] += offset;
    }
    round_values(in, data->C, data->type);
}

/* Every seventh or so; the last row whole. */
static void put_infinities(struct rows_data *data, struct rng *rng) {
    for (size_t i = 0; i < data->rows * data->C; i++) {
        if (i / data->C + 1 == data->rows || rng_below(rng, 7) == 0) {
            data->in[i] = -INFINITY;
        }
    }
}

static void fill_mask(struct rows_data *data, struct rng *rng) {
    for (size_t i = 0; i < data->masks * data->C; i++) {
        size_t row = i / data->C;
        data->mask[i] = row == 0 ? 0 : row == 1 ? 255 : (uint8_t)rng_below(rng, 2);
    }
}

enum status rows_data_create(struct rows_data *data, enum rows_op op, enum nn_dtype type,
                             size_t rows, size_t C, struct rows_flavour flavour, struct rng *rng,
                             struct error *error) {
    size_t each = flavour.rows_a_mask > 0 ? flavour.rows_a_mask : 1;
    *data = (struct rows_data){
        .op = op, .type = type, .rows = rows, .C = C, .rows_a_mask = each, .eps = 1e-5f};
    data->masks = (rows + each - 1) / each;
    data->in = malloc(rows * C * sizeof *data->in + 1);
    data->weight = malloc(C * sizeof *data->weight + 1);
    data->bias = malloc(C * sizeof *data->bias + 1);
    data->mask = flavour.masked ? malloc(data->masks * C + 1) : NULL;
    if (data->in == NULL || data->weight == NULL || data->bias == NULL ||
        (flavour.masked && data->mask == NULL)) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t row = 0; row < rows; row++) {
        fill_row(data, row, flavour, rng);
    }
    float *const vectors[] = {data->weight, data->bias};
    for (int i = 0; i < 2; i++) {
        rng_fill_bell(rng, vectors[i], C, 1.0f);
        round_values(vectors[i], C, type);
    }
    if (flavour.infinities) {
        put_infinities(data, rng);
    }
    if (flavour.masked) {
        fill_mask(data, rng);
    }
    return STATUS_OK;
}

void rows_data_free(struct rows_data *data) {
    free(data->in);
    free(data->weight);
    free(data->bias);
    free(data->mask);
    *data = (struct rows_data){0};
}

/* A row with the mask applied: -inf where it is 0. */
static void apply_mask(const struct rows_data *data, size_t row, float *x) {
    const uint8_t *mask = data->mask + (data->mask ? row / data->rows_a_mask * data->C : 0);
    for (size_t c = 0; c < data->C; c++) {
        bool hidden = data->op == ROWS_SOFTMAX && data->mask != NULL && mask[c] == 0;
        x[c] = hidden ? -INFINITY : data->in[row * data->C + c];
    }
}

void rows_expect(const struct rows_data *data, size_t row, double *want, float *scratch) {
    size_t C = data->C;
    apply_mask(data, row, scratch);
    if (data->op == ROWS_LAYERNORM) {
        nn_layernorm(scratch, scratch, data->weight, data->bias, 1, C, data->eps);
    } else if (data->op == ROWS_RMSNORM) {
        nn_rmsnorm(scratch, scratch, data->weight, 1, C, data->eps);
    } else {
        nn_softmax(scratch, scratch, 1, C);
    }
    for (size_t c = 0; c < C; c++) {
        want[c] = (double)scratch[c];
    }
}

/* |mean| in standard deviations (LayerNorm), or the largest less the smallest (softmax). */
static double range_of(const struct rows_data *data, size_t row) {
    const float *x = data->in + row * data->C;
    double sum = 0.0, squares = 0.0, least = INFINITY, most = -INFINITY;
    for (size_t c = 0; c < data->C; c++) {
        sum += (double)x[c];
        least = isfinite(x[c]) ? fmin(least, (double)x[c]) : least;
        most = isfinite(x[c]) ? fmax(most, (double)x[c]) : most;
    }
    if (data->op != ROWS_LAYERNORM) {
        return data->op == ROWS_SOFTMAX && most > least ? fmin(most - least, 104.0) : 0.0;
    }
    double mean = sum / (double)data->C;
    for (size_t c = 0; c < data->C; c++) {
        squares += ((double)x[c] - mean) * ((double)x[c] - mean);
    }
    return fabs(mean) / sqrt(squares / (double)data->C + (double)data->eps);
}

struct tolerance rows_tolerance(const struct rows_data *data, size_t row) {
    double C = (double)data->C, range = range_of(data, row), weight = 0.0;
    double u = 0x1p-24, sum = u * (8.0 + sqrt(C));
    double rounding = data->type == NN_F32 ? 0.0 : nn_dtype_rounding(data->type);
    double tiny = data->type == NN_F16 ? 0x1p-25 : 0.0;
    for (size_t c = 0; c < data->C; c++) {
        weight = fmax(weight, fabs((double)data->weight[c]));
    }
    double chain = tolerance_dot_f32(data->C, 1.0).relative;
    if (data->op == ROWS_SOFTMAX) {
        double relative = sum + chain + 2.0 * u * range + rounding;
        return (struct tolerance){0x1p-120 + tiny, relative, relative + tiny * C};
    }
    double relative = sum + chain / 2.0 + rounding, absolute = 0.0, mean = 0.0;
    if (data->op == ROWS_LAYERNORM) {
        mean = u * (8.0 + 4.0 * sqrt(C)) * range;
        /* The bias may take most of a result away, and leave the root's error: of a value that is
         * a few deviations from the mean. */
        absolute = (sum + mean + chain / 2.0 * 4.0) * weight;
    }
    return (struct tolerance){absolute + tiny, relative, relative + mean + tiny};
}
