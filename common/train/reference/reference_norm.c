/**
 * @file reference_norm.c
 * @brief LayerNorm and RMSNorm with their gradients, in double.
 *
 * LayerNorm (Ba et al. 2016), xhat = (x - mean) * rstd, y = xhat * weight + bias. With g = dy *
 * weight, dx = rstd * (g - mean(g) - xhat * mean(g * xhat)): the part of g that would move the mean
 * or the variance does nothing.
 * RMSNorm (Zhang and Sennrich 2019) has no mean: xhat = x * rstd, dx = rstd * (g - xhat * mean(g *
 * xhat)).
 */
#include <math.h>

#include "common/train/reference/reference_internal.h"

static double mean_of(const double *x, size_t C) {
    double sum = 0.0;
    for (size_t c = 0; c < C; c++) {
        sum += x[c];
    }
    return sum / (double)C;
}

/* Mean of (x - mean)^2. The mean first, in a pass of its own: E[x^2] - mean^2 cancels. */
static double variance_of(const double *x, double mean, size_t C) {
    double sum = 0.0;
    for (size_t c = 0; c < C; c++) {
        sum += (x[c] - mean) * (x[c] - mean);
    }
    return sum / (double)C;
}

enum status reference_layernorm(void *context, void *out, void *stats, void *sum, const void *add,
                                const void *in, const struct train_dropout *dropout,
                                const struct train_norm *norm, size_t rows, size_t C) {
    (void)context;
    const double *weight = norm->weight, *bias = norm->bias;
    for (size_t row = 0; row < rows; row++) {
        double *x = (double *)sum + row * C;
        double *y = (double *)out + row * C;
        for (size_t c = 0; c < C; c++) {
            x[c] = reference_residual(add, in, row * C + c, dropout);
        }
        double mean = mean_of(x, C);
        double rstd = 1.0 / sqrt(variance_of(x, mean, C) + (double)norm->eps);
        for (size_t c = 0; c < C; c++) {
            y[c] = (x[c] - mean) * rstd * weight[c] + bias[c];
        }
        ((double *)stats)[2 * row] = mean;
        ((double *)stats)[2 * row + 1] = rstd;
    }
    return STATUS_OK;
}

/* One row's inputs, as both norms' gradients read them. */
struct row {
    const double *dy, *x, *weight; /* (C) */
    double mean, rstd;             /* of RMSNorm: the mean is 0 */
    size_t C;
};

static double xhat(const struct row *row, size_t c) {
    return (row->x[c] - row->mean) * row->rstd;
}

/* dweight[c] += dy[c] * xhat[c], dbias[c] += dy[c]. dbias may be NULL. */
static void parameter_gradients(double *dweight, double *dbias, const struct row *row) {
    for (size_t c = 0; c < row->C; c++) {
        dweight[c] += row->dy[c] * xhat(row, c);
        if (dbias != NULL) {
            dbias[c] += row->dy[c];
        }
    }
}

/* Means of g and of g * xhat over the row. */
static void gradient_means(const struct row *row, double *g, double *g_xhat) {
    *g = *g_xhat = 0.0;
    for (size_t c = 0; c < row->C; c++) {
        double value = row->dy[c] * row->weight[c];
        *g += value;
        *g_xhat += value * xhat(row, c);
    }
    *g /= (double)row->C;
    *g_xhat /= (double)row->C;
}

enum status reference_layernorm_backward(void *context, void *din,
                                         const struct train_norm_gradient *gradient,
                                         const void *dout, const void *in, const void *stats,
                                         const struct train_norm *norm, size_t rows, size_t C) {
    (void)context;
    for (size_t i = 0; i < rows; i++) {
        struct row row = {
            .dy = (const double *)dout + i * C,
            .x = (const double *)in + i * C,
            .weight = norm->weight,
            .mean = ((const double *)stats)[2 * i],
            .rstd = ((const double *)stats)[2 * i + 1],
            .C = C,
        };
        double *dx = (double *)din + i * C, mean_g, mean_g_xhat;
        parameter_gradients(gradient->weight, gradient->bias, &row);
        gradient_means(&row, &mean_g, &mean_g_xhat);
        for (size_t c = 0; c < C; c++) {
            double g = row.dy[c] * row.weight[c];
            dx[c] = row.rstd * (g - mean_g - xhat(&row, c) * mean_g_xhat);
        }
    }
    return STATUS_OK;
}

enum status reference_rmsnorm(void *context, void *out, void *stats, const void *in,
                              const struct train_norm *norm, size_t rows, size_t C) {
    (void)context;
    const double *weight = norm->weight;
    for (size_t row = 0; row < rows; row++) {
        const double *x = (const double *)in + row * C;
        double *y = (double *)out + row * C;
        double rstd = 1.0 / sqrt(variance_of(x, 0.0, C) + (double)norm->eps);
        for (size_t c = 0; c < C; c++) {
            y[c] = x[c] * rstd * weight[c];
        }
        ((double *)stats)[row] = rstd;
    }
    return STATUS_OK;
}

enum status reference_rmsnorm_backward(void *context, void *din, const void *add,
                                       const struct train_norm_gradient *gradient, const void *dout,
                                       const void *in, const void *stats,
                                       const struct train_norm *norm, size_t rows, size_t C) {
    (void)context;
    for (size_t i = 0; i < rows; i++) {
        struct row row = {
            .dy = (const double *)dout + i * C,
            .x = (const double *)in + i * C,
            .weight = norm->weight,
            .rstd = ((const double *)stats)[i],
            .C = C,
        };
        const double *residual = add != NULL ? (const double *)add + i * C : NULL;
        double *dx = (double *)din + i * C, mean_g, mean_g_xhat;
        parameter_gradients(gradient->weight, NULL, &row);
        gradient_means(&row, &mean_g, &mean_g_xhat);
        for (size_t c = 0; c < C; c++) {
            double g = row.dy[c] * row.weight[c];
            double value = row.rstd * (g - xhat(&row, c) * mean_g_xhat);
            dx[c] = residual != NULL ? residual[c] + value : value;
        }
    }
    return STATUS_OK;
}
