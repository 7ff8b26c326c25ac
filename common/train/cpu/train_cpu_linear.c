/**
 * @file train_cpu_linear.c
 * @brief The linear layer's product and its three gradients.
 *
 * With g = dL/dy: dL/dx = g W, dL/dW = g^T x, dL/db = the sum of g's rows.
 */
#include <string.h>

#include "common/base/cpu.h"
#include "common/cpu/gemm.h"
#include "common/cpu/parallel.h"
#include "common/train/cpu/train_cpu_internal.h"

/* The products are what the team measures. */
static enum status multiply(struct train_cpu *cpu, const struct gemm *g) {
    double products = (double)g->M * (double)g->N * (double)g->K;
    if (products < TEAM_LEAST_PRODUCTS) {
        return cpu_gemm(1, &cpu->scratch, g);
    }
    double start = cpu_team_now();
    TRY(cpu_gemm(cpu_team_threads(&cpu->team), &cpu->scratch, g));
    cpu_team_add(&cpu->team, cpu_team_kind_of(g->M, g->N, g->K), products, start, cpu_team_now());
    return STATUS_OK;
}

enum status train_cpu_linear(void *context, void *out, const void *in, const void *weight,
                             const void *bias, size_t M, size_t N, size_t K) {
    const struct gemm g = {
        .M = M, .N = N, .K = K, .a = {in, K, 1}, .b = {weight, 1, K}, .c = out, .bias = bias};
    return multiply(context, &g);
}

/* Columns of a chunk of column sums. */
enum { CHUNK = 64 };

struct columns {
    float *sums;
    const float *x;
    size_t rows, C;
};

CPU_CLONES
static void add_columns(const struct columns *c, size_t first, size_t count) {
    double sums[CHUNK] = {0.0};
    for (size_t row = 0; row < c->rows; row++) {
        const float *x = c->x + row * c->C + first;
        for (size_t i = 0; i < count; i++) {
            sums[i] += (double)x[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        c->sums[first + i] = (float)((double)c->sums[first + i] + sums[i]);
    }
}

static void add_column_range(void *arguments, int thread, size_t begin, size_t end) {
    (void)thread;
    add_columns(arguments, begin, end - begin);
}

void train_cpu_add_columns(struct train_cpu *cpu, float *sums, const float *x, size_t rows,
                           size_t C) {
    struct columns columns = {sums, x, rows, C};
    cpu_parallel_for(train_cpu_threads(cpu, rows * C, 2), C, CHUNK, add_column_range, &columns);
}

/* din before the product is added. */
static void begin_din(float *din, const float *add, size_t count) {
    if (add != NULL && add != din) {
        memcpy(din, add, count * sizeof *din);
    }
}

enum status train_cpu_linear_backward(void *context, void *din, const void *add, void *dweight,
                                      void *dbias, const void *dout, const void *in,
                                      const void *weight, size_t M, size_t N, size_t K) {
    struct train_cpu *cpu = context;
    const struct gemm of_weight = {
        .M = N, .N = K, .K = M, .a = {dout, 1, N}, .b = {in, K, 1}, .c = dweight, .add = true};
    TRY(multiply(cpu, &of_weight));
    if (dbias != NULL) {
        train_cpu_add_columns(cpu, dbias, dout, M, N);
    }
    if (din == NULL) {
        return STATUS_OK;
    }
    begin_din(din, add, M * K);
    const struct gemm of_input = {.M = M,
                                  .N = K,
                                  .K = N,
                                  .a = {dout, N, 1},
                                  .b = {weight, K, 1},
                                  .c = din,
                                  .add = add != NULL};
    return multiply(cpu, &of_input);
}
