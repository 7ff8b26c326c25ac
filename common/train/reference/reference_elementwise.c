/**
 * @file reference_elementwise.c
 * @brief GELU, tanh, Llama2's gate and dropout, with their derivatives, in double.
 */
#include <math.h>

#include "common/train/reference/reference_internal.h"

static const double SQRT_1_2 = 0.70710678118654752440;
static const double INVERSE_SQRT_2_PI = 0.39894228040143267794;

/* Phi(x), the normal distribution: by erfc, since 1 + erf would cancel for negative x. */
static double normal_share(double x) {
    return 0.5 * erfc(-x * SQRT_1_2);
}

/* d/dx x Phi(x) = Phi(x) + x phi(x), phi the normal density. */
static double gelu_slope(double x) {
    return normal_share(x) + x * INVERSE_SQRT_2_PI * exp(-0.5 * x * x);
}

static double tanh_slope(double x) {
    double y = tanh(x);
    return 1.0 - y * y;
}

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* d/dx x s(x) = s(x) (1 + x (1 - s(x))), and 1 - s(x) = s(-x). */
static double silu_slope(double x) {
    return sigmoid(x) * (1.0 + x * sigmoid(-x));
}

enum status reference_activation(void *context, void *out, const void *in, size_t count,
                                 enum nn_activation f) {
    (void)context;
    if (f != NN_GELU && f != NN_TANH) {
        return STATUS_INVALID_ARGUMENT;
    }
    double *y = out;
    const double *x = in;
    for (size_t i = 0; i < count; i++) {
        y[i] = f == NN_GELU ? x[i] * normal_share(x[i]) : tanh(x[i]);
    }
    return STATUS_OK;
}

enum status reference_activation_backward(void *context, void *din, const void *dout,
                                          const void *in, size_t count, enum nn_activation f) {
    (void)context;
    if (f != NN_GELU && f != NN_TANH) {
        return STATUS_INVALID_ARGUMENT;
    }
    double *dx = din;
    const double *dy = dout, *x = in;
    for (size_t i = 0; i < count; i++) {
        dx[i] = dy[i] * (f == NN_GELU ? gelu_slope(x[i]) : tanh_slope(x[i]));
    }
    return STATUS_OK;
}

enum status reference_silu_gate(void *context, void *out, const void *gate_up, size_t rows,
                                size_t hidden) {
    (void)context;
    double *y = out;
    for (size_t row = 0; row < rows; row++) {
        const double *gate = (const double *)gate_up + row * 2 * hidden;
        const double *up = gate + hidden;
        for (size_t i = 0; i < hidden; i++) {
            y[row * hidden + i] = gate[i] * sigmoid(gate[i]) * up[i];
        }
    }
    return STATUS_OK;
}

enum status reference_silu_gate_backward(void *context, void *dgate_up, const void *dout,
                                         const void *gate_up, size_t rows, size_t hidden) {
    (void)context;
    for (size_t row = 0; row < rows; row++) {
        const double *dy = (const double *)dout + row * hidden;
        const double *gate = (const double *)gate_up + row * 2 * hidden;
        const double *up = gate + hidden;
        double *dgate = (double *)dgate_up + row * 2 * hidden;
        double *dup = dgate + hidden;
        for (size_t i = 0; i < hidden; i++) {
            double g = gate[i], u = up[i];
            dgate[i] = dy[i] * u * silu_slope(g);
            dup[i] = dy[i] * g * sigmoid(g);
        }
    }
    return STATUS_OK;
}

enum status reference_dropout(void *context, void *out, const void *add, const void *in,
                              size_t count, const struct train_dropout *dropout) {
    (void)context;
    double *y = out;
    for (size_t i = 0; i < count; i++) {
        y[i] = reference_residual(add, in, i, dropout);
    }
    return STATUS_OK;
}

static void add_columns(double *sums, const double *x, size_t rows, size_t C) {
    for (size_t row = 0; row < rows; row++) {
        reference_add(sums, 1.0, x + row * C, C);
    }
}

enum status reference_activation_bias_backward(void *context, void *din, void *dbias,
                                               const void *dout, const void *in, size_t rows,
                                               size_t C, enum nn_activation f) {
    TRY(reference_activation_backward(context, din, dout, in, rows * C, f));
    add_columns(dbias, din, rows, C);
    return STATUS_OK;
}

enum status reference_dropout_bias_backward(void *context, void *din, void *dbias, const void *dout,
                                            size_t rows, size_t C,
                                            const struct train_dropout *dropout) {
    TRY(reference_dropout(context, din, NULL, dout, rows * C, dropout));
    add_columns(dbias, din, rows, C);
    return STATUS_OK;
}
