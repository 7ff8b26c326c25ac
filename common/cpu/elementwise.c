/**
 * @file elementwise.c
 * @brief Activations, bias, residual connection and rows of tables.
 */
#include <string.h>

#include "common/cpu/cpu_operators.h"
#include "common/cpu/parallel.h"
#include "common/cpu/vector_math.h"

/* Elements of a chunk: a few microseconds of work, which stay in L1. */
enum { CHUNK = 4096 };

#define APPLY(function)                                      \
    _Pragma("omp simd") for (size_t i = 0; i < count; i++) { \
        out[i] = function(in[i]);                            \
    }                                                        \
    break

/* NaN stays NaN. */
CPU_INLINE float relu(float x) {
    return x < 0.0f ? 0.0f : x;
}

CPU_CLONES
static void activate(float *out, const float *in, size_t count, enum nn_activation f) {
    switch (f) {
    case NN_GELU:
        APPLY(vector_gelu);
    case NN_GELU_TANH:
        APPLY(vector_gelu_tanh);
    case NN_SILU:
        APPLY(vector_silu);
    case NN_TANH:
        APPLY(vector_tanh);
    case NN_RELU:
        APPLY(relu);
    }
}

CPU_CLONES
static void add(float *out, const float *a, const float *b, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
}

CPU_CLONES
static void gate_by_silu(float *out, const float *gate, const float *up, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        out[i] = vector_silu(gate[i]) * up[i];
    }
}

/* The arguments of any of these operators. */
struct elementwise {
    float *out;
    const float *a, *b;
    size_t C;
    bool active; /* whether f is applied */
    enum nn_activation f;
    const int32_t *ids;
    bool accumulate;
};

static size_t rows_of_a_chunk(size_t C) {
    return C < CHUNK ? CHUNK / (C + 1) + 1 : 1;
}

static void bias_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        float *x = e->out + row * e->C;
        add(x, x, e->b, e->C);
        if (e->active) {
            activate(x, x, e->C, e->f);
        }
    }
}

void cpu_bias_add(int threads, float *x, const float *bias, size_t rows, size_t C) {
    struct elementwise e = {.out = x, .b = bias, .C = C};
    cpu_parallel_for(threads, rows, rows_of_a_chunk(C), bias_rows, &e);
}

void cpu_bias_activation(int threads, float *x, const float *bias, size_t rows, size_t C,
                         enum nn_activation f) {
    struct elementwise e = {.out = x, .b = bias, .C = C, .active = true, .f = f};
    cpu_parallel_for(threads, rows, rows_of_a_chunk(C), bias_rows, &e);
}

static void activation_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    activate(e->out + begin, e->a + begin, end - begin, e->f);
}

void cpu_activation(int threads, float *out, const float *in, size_t count, enum nn_activation f) {
    struct elementwise e = {.out = out, .a = in, .f = f};
    cpu_parallel_for(threads, count, CHUNK, activation_range, &e);
}

static void silu_gate_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    gate_by_silu(e->out + begin, e->a + begin, e->b + begin, end - begin);
}

void cpu_silu_gate(int threads, float *out, const float *gate, const float *up, size_t count) {
    struct elementwise e = {.out = out, .a = gate, .b = up};
    cpu_parallel_for(threads, count, CHUNK, silu_gate_range, &e);
}

static void residual_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    add(e->out + begin, e->a + begin, e->b + begin, end - begin);
}

void cpu_residual(int threads, float *out, const float *a, const float *b, size_t count) {
    struct elementwise e = {.out = out, .a = a, .b = b};
    cpu_parallel_for(threads, count, CHUNK, residual_range, &e);
}

static void embedding_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    for (size_t t = begin; t < end; t++) {
        const float *row = e->a + (size_t)e->ids[t] * e->C;
        float *out = e->out + t * e->C;
        if (e->accumulate) {
            add(out, out, row, e->C);
        } else {
            memcpy(out, row, e->C * sizeof *out);
        }
    }
}

void cpu_embedding(int threads, float *out, const float *table, const int32_t *ids, size_t T,
                   size_t C, bool accumulate) {
    struct elementwise e = {.out = out, .a = table, .C = C, .ids = ids, .accumulate = accumulate};
    cpu_parallel_for(threads, T, rows_of_a_chunk(C), embedding_rows, &e);
}
