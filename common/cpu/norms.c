/**
 * @file norms.c
 * @brief LayerNorm with the bias and residual connection before it, RMSNorm, softmax: a row at a
 *        time, from L1.
 *
 * The sums of norms are in double, so that a row with a large mean loses nothing.
 */
#include <math.h>

#include "common/cpu/cpu_operators.h"
#include "common/cpu/parallel.h"
#include "common/cpu/vector_math.h"

static size_t rows_of_a_chunk(size_t C) {
    return C < 2048 ? 2048 / (C + 1) + 1 : 1;
}

CPU_CLONES
static void layernorm_row(const struct cpu_layernorm *call, size_t row) {
    const float *x = call->in + row * call->C;
    const float *weight = call->norm.weight, *bias = call->norm.bias;
    float *out = call->out + row * call->C;
    size_t C = call->C;
    if (call->bias != NULL && call->residual != NULL) {
        const float *residual = call->residual + row * C;
#pragma omp simd
        for (size_t c = 0; c < C; c++) {
            out[c] = x[c] + call->bias[c] + residual[c];
        }
        x = out;
    } else if (call->residual != NULL) {
        const float *residual = call->residual + row * C;
#pragma omp simd
        for (size_t c = 0; c < C; c++) {
            out[c] = x[c] + residual[c];
        }
        x = out;
    }
    double sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < C; c++) {
        sum += (double)x[c];
    }
    double mean = sum / (double)C;
#pragma omp simd reduction(+ : squares)
    for (size_t c = 0; c < C; c++) {
        double d = (double)x[c] - mean;
        squares += d * d;
    }
    double rstd = 1.0 / sqrt(squares / (double)C + (double)call->norm.eps);
    float scale = (float)rstd, high = (float)mean, low = (float)(mean - (double)high);
#pragma omp simd
    for (size_t c = 0; c < C; c++) {
        out[c] = ((x[c] - high) - low) * scale * weight[c] + bias[c];
    }
}

static void layernorm_rows(void *arguments, int thread, size_t begin, size_t end) {
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        layernorm_row(arguments, row);
    }
}

void cpu_layernorm(int threads, const struct cpu_layernorm *call) {
    struct cpu_layernorm copy = *call;
    cpu_parallel_for(threads, call->rows, rows_of_a_chunk(call->C), layernorm_rows, &copy);
}

/* The arguments of RMSNorm and softmax. */
struct rows {
    float *out;
    const float *in, *weight;
    size_t C;
    float eps;
};

CPU_CLONES
static void rmsnorm_row(float *out, const float *x, const float *weight, size_t C, float eps) {
    double squares = 0.0;
#pragma omp simd reduction(+ : squares)
    for (size_t c = 0; c < C; c++) {
        squares += (double)x[c] * (double)x[c];
    }
    float scale = (float)(1.0 / sqrt(squares / (double)C + (double)eps));
#pragma omp simd
    for (size_t c = 0; c < C; c++) {
        out[c] = x[c] * scale * weight[c];
    }
}

static void rmsnorm_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct rows *r = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        rmsnorm_row(r->out + row * r->C, r->in + row * r->C, r->weight, r->C, r->eps);
    }
}

void cpu_rmsnorm(int threads, float *out, const float *in, const float *weight, size_t rows,
                 size_t C, float eps) {
    struct rows r = {out, in, weight, C, eps};
    cpu_parallel_for(threads, rows, rows_of_a_chunk(C), rmsnorm_rows, &r);
}

CPU_CLONES
static void softmax_row(float *out, const float *x, size_t C) {
    float max = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : max)
    for (size_t c = 0; c < C; c++) {
        max = x[c] > max ? x[c] : max;
    }
    max = max == -INFINITY ? 0.0f : max;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < C; c++) {
        float e = vector_exp(x[c] - max);
        out[c] = e;
        sum += e;
    }
    float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
#pragma omp simd
    for (size_t c = 0; c < C; c++) {
        out[c] *= scale;
    }
}

static void softmax_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct rows *r = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        softmax_row(r->out + row * r->C, r->in + row * r->C, r->C);
    }
}

void cpu_softmax(int threads, float *out, const float *in, size_t rows, size_t C) {
    struct rows r = {.out = out, .in = in, .C = C};
    cpu_parallel_for(threads, rows, rows_of_a_chunk(C), softmax_rows, &r);
}
