/**
 * @file train_cpu_norm.c
 * @brief LayerNorm and RMSNorm with their gradients; sums of a row or column in double.
 *
 * With g = dy * weight and xhat = (x - mean) * rstd: dx = rstd * (g - mean(g) - xhat * mean(g *
 * xhat)); RMSNorm has no mean. The weight's gradient is a sum over rows, each column by itself.
 */
#include <math.h>

#include "common/base/cpu.h"
#include "common/cpu/parallel.h"
#include "common/train/cpu/train_cpu_internal.h"

enum { ROWS = 8, COLUMNS = 32, NORM = 8 };

/* One call of any of the four. */
struct call {
    float *out, *sum, *stats_out;
    const float *in, *add, *dout, *stats;
    const struct train_dropout *dropout;
    const float *weight, *bias;
    float *dweight, *dbias;
    double eps;
    size_t rows, C;
    bool centred; /* LayerNorm: with a mean */
};

/* x (C) normalised; what its statistics are goes to stats. */
CPU_CLONES
static void normalise(const struct call *call, float *out, const float *x, float *stats) {
    size_t C = call->C;
    const float *weight = call->weight, *bias = call->bias;
    double sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < C; c++) {
        sum += (double)x[c];
    }
    double mean = call->centred ? sum / (double)C : 0.0;
#pragma omp simd reduction(+ : squares)
    for (size_t c = 0; c < C; c++) {
        double d = (double)x[c] - mean;
        squares += d * d;
    }
    float rstd = (float)(1.0 / sqrt(squares / (double)C + call->eps)), shift = (float)mean;
    if (call->centred) {
#pragma omp simd
        for (size_t c = 0; c < C; c++) {
            out[c] = (x[c] - shift) * rstd * weight[c] + bias[c];
        }
        stats[0] = shift;
    } else {
#pragma omp simd
        for (size_t c = 0; c < C; c++) {
            out[c] = x[c] * rstd * weight[c];
        }
    }
    stats[call->centred] = rstd;
}

static void normalise_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct call *call = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        const float *x = call->in + row * call->C;
        if (call->centred) {
            train_cpu_residual(call->sum, call->add, call->in, row * call->C, call->C,
                               call->dropout);
            x = call->sum + row * call->C;
        }
        normalise(call, call->out + row * call->C, x,
                  call->stats_out + row * (call->centred ? 2 : 1));
    }
}

enum status train_cpu_layernorm(void *context, void *out, void *stats, void *sum, const void *add,
                                const void *in, const struct train_dropout *dropout,
                                const struct train_norm *norm, size_t rows, size_t C) {
    struct call call = {.out = out,
                        .sum = sum,
                        .stats_out = stats,
                        .in = in,
                        .add = add,
                        .dropout = dropout,
                        .weight = norm->weight,
                        .bias = norm->bias,
                        .eps = (double)norm->eps,
                        .C = C,
                        .centred = true};
    cpu_parallel_for(train_cpu_threads(context, rows * C, NORM), rows, ROWS, normalise_rows, &call);
    return STATUS_OK;
}

enum status train_cpu_rmsnorm(void *context, void *out, void *stats, const void *in,
                              const struct train_norm *norm, size_t rows, size_t C) {
    struct call call = {.out = out,
                        .stats_out = stats,
                        .in = in,
                        .weight = norm->weight,
                        .eps = (double)norm->eps,
                        .C = C};
    cpu_parallel_for(train_cpu_threads(context, rows * C, NORM), rows, ROWS, normalise_rows, &call);
    return STATUS_OK;
}

/* ---- Backward ---- */

/* The mean and rstd of a row. */
static void statistics(const struct call *call, size_t row, float *mean, float *rstd) {
    const float *stats = call->stats + row * (call->centred ? 2 : 1);
    *mean = call->centred ? stats[0] : 0.0f;
    *rstd = stats[call->centred];
}

CPU_CLONES
static void row_backward(const struct call *call, size_t row) {
    size_t C = call->C;
    const float *dy = call->dout + row * C, *x = call->in + row * C, *weight = call->weight;
    const float *add = call->add != NULL ? call->add + row * C : NULL;
    float *dx = call->out + row * C, mean, rstd;
    double sum = 0.0, dots = 0.0;
    statistics(call, row, &mean, &rstd);
#pragma omp simd reduction(+ : sum, dots)
    for (size_t c = 0; c < C; c++) {
        double g = (double)(dy[c] * weight[c]);
        sum += g;
        dots += g * (double)((x[c] - mean) * rstd);
    }
    float mean_g = call->centred ? (float)(sum / (double)C) : 0.0f;
    float mean_dot = (float)(dots / (double)C);
#pragma omp simd
    for (size_t c = 0; c < C; c++) {
        float g = dy[c] * weight[c], xhat = (x[c] - mean) * rstd;
        float value = rstd * (g - mean_g - xhat * mean_dot);
        dx[c] = add != NULL ? add[c] + value : value;
    }
}

static void rows_backward(void *arguments, int thread, size_t begin, size_t end) {
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        row_backward(arguments, row);
    }
}

/* dweight += sum of dy * xhat, dbias += sum of dy, for some columns. */
CPU_CLONES
static void columns_backward(const struct call *call, size_t first, size_t count) {
    double weights[COLUMNS] = {0.0}, biases[COLUMNS] = {0.0};
    for (size_t row = 0; row < call->rows; row++) {
        const float *dy = call->dout + row * call->C + first, *x = call->in + row * call->C + first;
        float mean, rstd;
        statistics(call, row, &mean, &rstd);
        for (size_t c = 0; c < count; c++) {
            weights[c] += (double)(dy[c] * ((x[c] - mean) * rstd));
            biases[c] += (double)dy[c];
        }
    }
    for (size_t c = 0; c < count; c++) {
        call->dweight[first + c] = (float)((double)call->dweight[first + c] + weights[c]);
        if (call->dbias != NULL) {
            call->dbias[first + c] = (float)((double)call->dbias[first + c] + biases[c]);
        }
    }
}

static void column_range_backward(void *arguments, int thread, size_t begin, size_t end) {
    (void)thread;
    columns_backward(arguments, begin, end - begin);
}

/* The columns first: din may be dout. */
static void backward(struct train_cpu *cpu, struct call *call) {
    int threads = train_cpu_threads(cpu, call->rows * call->C, NORM);
    cpu_parallel_for(threads, call->C, COLUMNS, column_range_backward, call);
    cpu_parallel_for(threads, call->rows, ROWS, rows_backward, call);
}

enum status train_cpu_layernorm_backward(void *context, void *din,
                                         const struct train_norm_gradient *gradient,
                                         const void *dout, const void *in, const void *stats,
                                         const struct train_norm *norm, size_t rows, size_t C) {
    struct call call = {.out = din,
                        .in = in,
                        .dout = dout,
                        .stats = stats,
                        .weight = norm->weight,
                        .dweight = gradient->weight,
                        .dbias = gradient->bias,
                        .rows = rows,
                        .C = C,
                        .centred = true};
    backward(context, &call);
    return STATUS_OK;
}

enum status train_cpu_rmsnorm_backward(void *context, void *din, const void *add,
                                       const struct train_norm_gradient *gradient, const void *dout,
                                       const void *in, const void *stats,
                                       const struct train_norm *norm, size_t rows, size_t C) {
    struct call call = {.out = din,
                        .in = in,
                        .add = add,
                        .dout = dout,
                        .stats = stats,
                        .weight = norm->weight,
                        .dweight = gradient->weight,
                        .rows = rows,
                        .C = C};
    backward(context, &call);
    return STATUS_OK;
}
