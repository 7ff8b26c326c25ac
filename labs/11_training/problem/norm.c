#include "labs/11_training/problem/norm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/words.h"
#include "common/train/train_engine.h"

static const double u = 0x1p-24; /* half of fp32's step */

enum status norm_case_create(struct norm_case *c, const struct norm_spec *spec, bool guarded,
                             struct error *error) {
    *c = (struct norm_case){.spec = *spec};
    snprintf(c->name, sizeof c->name, "layernorm_backward %s, %zu row%s of %zu%s%s",
             nn_dtype_name(spec->dtype), spec->rows, plural(spec->rows), spec->C,
             spec->in_place ? ", in place" : "", spec->mean > 5.0 ? ", a large mean" : "");
    TRY(tensor_create(&c->in, spec->dtype, spec->rows * spec->C, guarded, error));
    TRY(tensor_create(&c->dout, spec->dtype, spec->rows * spec->C, guarded, error));
    TRY(tensor_create(&c->stats, NN_F32, spec->rows * 2, guarded, error));
    TRY(tensor_create(&c->weight, NN_F32, spec->C, guarded, error));
    TRY(tensor_create(&c->din, spec->dtype, spec->rows * spec->C, guarded, error));
    TRY(tensor_create(&c->dweight, NN_F32, spec->C, guarded, error));
    return tensor_create(&c->dbias, NN_F32, spec->C, guarded, error);
}

void norm_case_free(struct norm_case *c) {
    struct tensor *all[] = {&c->in,  &c->dout,    &c->stats, &c->weight,
                            &c->din, &c->dweight, &c->dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tensor_free(all[i]);
    }
}

/* Mean and rstd of the rows, as a forward pass left them. */
static void fill_stats(struct norm_case *c) {
    size_t C = c->spec.C;
    for (size_t row = 0; row < c->spec.rows; row++) {
        const double *x = c->in.values + row * C;
        double mean = 0.0, square = 0.0;
        for (size_t i = 0; i < C; i++) {
            mean += x[i] / (double)C;
        }
        for (size_t i = 0; i < C; i++) {
            square += (x[i] - mean) * (x[i] - mean) / (double)C;
        }
        c->stats.values[2 * row] = mean;
        c->stats.values[2 * row + 1] = 1.0 / sqrt(square + 1e-5);
    }
}

enum status norm_case_draw(struct norm_case *c, struct rng *rng, struct error *error) {
    tensor_fill(&c->in, rng, 1.5 * c->spec.mean, 1.5);
    fill_stats(c);
    tensor_fill(&c->weight, rng, 1.0, 0.5);
    tensor_fill(&c->dout, rng, 0.1, 1.0);
    tensor_fill(&c->dweight, rng, 0.0, 2.0);
    tensor_fill(&c->dbias, rng, 0.0, 2.0);
    return norm_case_send(c, error);
}

enum status norm_case_send(struct norm_case *c, struct error *error) {
    struct tensor *inputs[] = {&c->in, &c->dout, &c->stats, &c->weight, &c->dweight, &c->dbias};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        TRY(tensor_put(inputs[i], NULL, error));
    }
    return tensor_poison(&c->din, error);
}

struct layernorm_backward_problem norm_case_problem(const struct norm_case *c) {
    return (struct layernorm_backward_problem){.dtype = c->spec.dtype,
                                               .rows = c->spec.rows,
                                               .C = c->spec.C,
                                               .dout = c->dout.buffer.data,
                                               .in = c->in.buffer.data,
                                               .stats = c->stats.buffer.data,
                                               .weight = c->weight.buffer.data,
                                               .din = c->spec.in_place ? c->dout.buffer.data
                                                                       : c->din.buffer.data,
                                               .dweight = c->dweight.buffer.data,
                                               .dbias = c->dbias.buffer.data};
}

struct tensor_outputs norm_case_outputs(const struct norm_case *c) {
    return (struct tensor_outputs){{c->spec.in_place ? &c->dout : &c->din, &c->dweight, &c->dbias},
                                   3};
}

/* ---- The verdict ---- */

/* The reference's results. */
struct norm_want {
    double *din, *dweight, *dbias;
};

/* Gradients of weight and bias start as the call finds them. */
static enum status want_create(struct norm_want *want, const struct norm_case *c,
                               struct error *error) {
    size_t C = c->spec.C;
    want->din = calloc(c->spec.rows * C + 1, sizeof(double));
    want->dweight = calloc(C + 1, sizeof(double));
    want->dbias = calloc(C + 1, sizeof(double));
    if (want->din == NULL || want->dweight == NULL || want->dbias == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    memcpy(want->dweight, c->dweight.values, C * sizeof(double));
    memcpy(want->dbias, c->dbias.values, C * sizeof(double));
    return STATUS_OK;
}

static enum status compute(const struct norm_case *c, const struct norm_want *want) {
    struct train_engine reference;
    const struct train_norm norm = {c->weight.values, NULL, 0.0f};
    size_t C = c->spec.C;
    TRY(train_reference_create(&reference));
    const struct train_norm_gradient gradient = {want->dweight, want->dbias};
    enum status status =
        reference.layernorm_backward(reference.context, want->din, &gradient, c->dout.values,
                                     c->in.values, c->stats.values, &norm, c->spec.rows, C);
    train_engine_destroy(&reference);
    return status;
}

static void want_free(struct norm_want *want) {
    free(want->din);
    free(want->dweight);
    free(want->dbias);
}

/*
 * Two means over C, each a sum of C products, and what cancels between them: relative to the
 * largest g of the row. What is subtracted from the input carries its size's rounding.
 */
static struct tolerance row_tolerance(const struct norm_case *c, size_t row) {
    size_t C = c->spec.C;
    double mean = c->stats.values[2 * row], rstd = c->stats.values[2 * row + 1];
    double largest_g = 0.0, largest_x = 0.0;
    for (size_t i = 0; i < C; i++) {
        size_t at = row * C + i;
        largest_g = fmax(largest_g, fabs(c->dout.values[at] * c->weight.values[i]));
        largest_x = fmax(largest_x, fabs((c->in.values[at] - mean) * rstd));
    }
    double sums = 0.25 * tolerance_dot_f32(C, sqrt((double)C)).absolute / (double)C;
    double shift = u * (1.0 + fabs(mean) * rstd);
    double scale = rstd * largest_g * (1.0 + largest_x * largest_x);
    double rounding = nn_dtype_rounding(c->spec.dtype);
    return (struct tolerance){(sums + shift + 2.0 * u) * scale, rounding + 8.0 * u,
                              2.0 * rounding + 1e-3};
}

static bool check_rows(const struct norm_case *c, const struct norm_want *want, const float *got,
                       char *text, size_t size) {
    for (size_t row = 0; row < c->spec.rows; row++) {
        const size_t at = row * c->spec.C;
        struct tolerance tolerance = row_tolerance(c, row);
        /* A row of one has a gradient of nothing; as a whole only others can be told. */
        tolerance.norm = c->spec.C < 4 ? INFINITY : tolerance.norm;
        struct comparison result = compare_f32(got + at, want->din + at, c->spec.C, tolerance);
        if (!result.pass) {
            int length = snprintf(text, size, "%s: din, row %zu: ", c->name, row);
            comparison_describe(&result, c->spec.C, text + length, size - (size_t)length);
            return false;
        }
    }
    return true;
}

/* Sums over the rows. */
static bool check_columns(const struct norm_case *c, const char *what, const double *want,
                          const struct tensor *t, const float *got, bool of_xhat, char *text,
                          size_t size) {
    double largest = 0.0, shift = 0.0, largest_sum = 1.0; /* a term's size: sums may cancel */
    for (size_t i = 0; i < c->spec.rows * c->spec.C; i++) {
        size_t row = i / c->spec.C;
        double rstd = c->stats.values[2 * row + 1], mean = c->stats.values[2 * row];
        double xhat = of_xhat ? fabs((c->in.values[i] - mean) * rstd) : 1.0;
        largest = fmax(largest, fabs(c->dout.values[i]) * fmax(xhat, 1.0));
        shift = of_xhat ? fmax(shift, fabs(mean) * rstd) : 0.0;
    }
    for (size_t i = 0; i < c->spec.C; i++) {
        largest_sum = fmax(largest_sum, fabs(want[i]));
    }
    size_t rows = c->spec.rows > 0 ? c->spec.rows : 1;
    double sums = 0.25 * tolerance_dot_f32(rows, largest * sqrt((double)rows)).absolute;
    double inputs = 2.0 * u * (1.0 + shift) * largest * sqrt((double)rows);
    struct tolerance tolerance = {sums + inputs + 4.0 * u * tensor_largest(t), 4.0 * u, INFINITY};
    tolerance = tensor_tighten(tolerance, c->spec.share, 2.0 * c->spec.share, largest_sum, NN_F32);
    struct comparison result = compare_f32(got, want, c->spec.C, tolerance);
    if (!result.pass) {
        int length = snprintf(text, size, "%s: %s: ", c->name, what);
        comparison_describe(&result, c->spec.C, text + length, size - (size_t)length);
    }
    return result.pass;
}

/* Whether the columns' sums are right, and nothing was written beside them. */
static enum status check_sums(const struct norm_case *c, const char *what, const double *want,
                              const struct tensor *t, float *got, bool of_xhat, bool *right,
                              bool *intact, char *text, size_t size, struct error *error) {
    bool own_intact, changed;
    if (!*right) {
        return STATUS_OK;
    }
    TRY(tensor_get(t, got, &own_intact, &changed, error));
    *right = check_columns(c, what, want, t, got, of_xhat, text, size);
    *intact = *intact && own_intact;
    return STATUS_OK;
}

static enum status compare_with(struct norm_want *want, const struct norm_case *c, float *got,
                                char *text, size_t size, struct error *error) {
    const struct tensor *din = c->spec.in_place ? &c->dout : &c->din;
    bool intact, changed;
    TRY(want_create(want, c, error));
    TRY(compute(c, want));
    TRY(tensor_get(din, got, &intact, &changed, error));
    bool right = check_rows(c, want, got, text, size);
    TRY(check_sums(c, "dweight", want->dweight, &c->dweight, got, true, &right, &intact, text, size,
                   error));
    TRY(check_sums(c, "dbias", want->dbias, &c->dbias, got, false, &right, &intact, text, size,
                   error));
    if (right && !intact) {
        snprintf(text, size, "%s: wrote outside of the output", c->name);
    }
    return STATUS_OK;
}

static enum status compare_all(const struct norm_case *c, float *got, char *text, size_t size,
                               struct error *error) {
    struct norm_want want = {0};
    enum status status = compare_with(&want, c, got, text, size, error);
    want_free(&want);
    return status;
}

static enum status check_inputs(const struct norm_case *c, float *got, char *text, size_t size,
                                struct error *error) {
    const struct tensor *inputs[] = {&c->in, &c->stats, &c->weight, &c->dout};
    static const char *const names[] = {"in", "stats", "weight", "dout"};
    for (size_t i = 0; i < 4 && text[0] == '\0'; i++) {
        bool intact, changed;
        TRY(tensor_get(inputs[i], got, &intact, &changed, error));
        if ((changed && !(c->spec.in_place && i == 3)) || !intact) {
            snprintf(text, size, "%s: changed its input %s", c->name, names[i]);
        }
    }
    return STATUS_OK;
}

static enum status check_all(const struct norm_case *c, float *got, char *text, size_t size,
                             struct error *error) {
    TRY(compare_all(c, got, text, size, error));
    return text[0] == '\0' ? check_inputs(c, got, text, size, error) : STATUS_OK;
}

enum status norm_case_check(struct norm_case *c, char *text, size_t size, struct error *error) {
    size_t most = c->spec.rows * c->spec.C + 2 * c->spec.rows + c->spec.C;
    float *got = calloc(most + 1, sizeof *got);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    text[0] = '\0';
    enum status status = check_all(c, got, text, size, error);
    free(got);
    return status;
}
