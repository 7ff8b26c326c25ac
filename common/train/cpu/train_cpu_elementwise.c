/**
 * @file train_cpu_elementwise.c
 * @brief GELU, tanh, Llama2's gate and dropout, with their derivatives.
 */
#include <string.h>

#include "common/cpu/parallel.h"
#include "common/cpu/vector_math.h"
#include "common/train/cpu/train_cpu_internal.h"

/* Elements of a chunk, a multiple of the four that one draw of dropout decides about. */
enum { CHUNK = 4096, EXPONENTIAL = 24 };

struct elementwise {
    float *out;
    const float *a, *b; /* b: of a backward pass the input, of dropout what is added */
    enum nn_activation f;
    size_t hidden;
    const struct train_dropout *dropout;
};

static enum status check(enum nn_activation f) {
    return f == NN_GELU || f == NN_TANH ? STATUS_OK : STATUS_INVALID_ARGUMENT;
}

enum status train_cpu_activation(void *context, void *out, const void *in, size_t count,
                                 enum nn_activation f) {
    TRY(check(f));
    cpu_activation(train_cpu_threads(context, count, EXPONENTIAL), out, in, count, f);
    return STATUS_OK;
}

CPU_CLONES
static void gelu_backward(float *din, const float *dout, const float *in, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        din[i] = dout[i] * vector_gelu_slope(in[i]);
    }
}

CPU_CLONES
static void tanh_backward(float *din, const float *dout, const float *in, size_t count) {
#pragma omp simd
    for (size_t i = 0; i < count; i++) {
        float y = vector_tanh(in[i]);
        din[i] = dout[i] * (1.0f - y * y);
    }
}

static void activation_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    (e->f == NN_GELU ? gelu_backward : tanh_backward)(e->out + begin, e->a + begin, e->b + begin,
                                                      end - begin);
}

enum status train_cpu_activation_backward(void *context, void *din, const void *dout,
                                          const void *in, size_t count, enum nn_activation f) {
    struct elementwise e = {.out = din, .a = dout, .b = in, .f = f};
    TRY(check(f));
    cpu_parallel_for(train_cpu_threads(context, count, EXPONENTIAL), count, CHUNK, activation_range,
                     &e);
    return STATUS_OK;
}

/* ---- Llama2's gate ---- */

CPU_CLONES
static void gate_row(float *out, const float *gate, const float *up, size_t hidden) {
    for (size_t i = 0; i < hidden; i++) {
        out[i] = vector_silu(gate[i]) * up[i];
    }
}

static void gate_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        const float *gate = e->a + row * 2 * e->hidden;
        gate_row(e->out + row * e->hidden, gate, gate + e->hidden, e->hidden);
    }
}

enum status train_cpu_silu_gate(void *context, void *out, const void *gate_up, size_t rows,
                                size_t hidden) {
    struct elementwise e = {.out = out, .a = gate_up, .hidden = hidden};
    cpu_parallel_for(train_cpu_threads(context, rows * hidden, EXPONENTIAL), rows, 4, gate_rows,
                     &e);
    return STATUS_OK;
}

/* d/dg g s(g) = s(g) (1 + g (1 - s(g))), and 1 - s(g) = s(-g). */
CPU_CLONES
static void gate_row_backward(float *dgate, float *dup, const float *dout, const float *gate,
                              const float *up, size_t hidden) {
    for (size_t i = 0; i < hidden; i++) {
        float g = gate[i], s = vector_sigmoid(g);
        float slope = s * (1.0f + g * vector_sigmoid(-g));
        dgate[i] = dout[i] * up[i] * slope;
        dup[i] = dout[i] * g * s;
    }
}

static void gate_rows_backward(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    size_t hidden = e->hidden;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        const float *gate = e->b + row * 2 * hidden;
        float *dgate = e->out + row * 2 * hidden;
        gate_row_backward(dgate, dgate + hidden, e->a + row * hidden, gate, gate + hidden, hidden);
    }
}

enum status train_cpu_silu_gate_backward(void *context, void *dgate_up, const void *dout,
                                         const void *gate_up, size_t rows, size_t hidden) {
    struct elementwise e = {.out = dgate_up, .a = dout, .b = gate_up, .hidden = hidden};
    cpu_parallel_for(train_cpu_threads(context, rows * hidden, EXPONENTIAL), rows, 4,
                     gate_rows_backward, &e);
    return STATUS_OK;
}

/* ---- Dropout ---- */

/* The factors of elements first .. first + count - 1; count is at most BUFFER. */
enum { BUFFER = 256 };

CPU_CLONES
static void draw_factors(float *factors, size_t first, size_t count,
                         const struct train_dropout *dropout) {
    float groups[BUFFER + 8];
    const uint32_t limit = train_dropout_limit(dropout->p);
    const float kept = 1.0f / (1.0f - dropout->p);
    size_t group = first / 4, last = (first + count + 3) / 4;
    for (size_t i = group; i < last; i++) {
        struct train_random4 numbers = train_dropout_draw(dropout, i);
        for (size_t j = 0; j < 4; j++) {
            groups[(i - group) * 4 + j] = numbers.at[j] < limit ? 0.0f : kept;
        }
    }
    memcpy(factors, groups + first % 4, count * sizeof *factors);
}

CPU_CLONES
static void add_products(float *out, const float *add, const float *in, const float *factors,
                         size_t count) {
    if (add != NULL) {
#pragma omp simd
        for (size_t i = 0; i < count; i++) {
            out[i] = add[i] + factors[i] * in[i];
        }
    } else {
#pragma omp simd
        for (size_t i = 0; i < count; i++) {
            out[i] = factors[i] * in[i];
        }
    }
}

static void without_dropout(float *sum, const float *add, const float *in, size_t count) {
    if (add != NULL) {
        cpu_residual(1, sum, add, in, count);
    } else if (sum != in) {
        memcpy(sum, in, count * sizeof *sum);
    }
}

void train_cpu_residual(float *sum, const float *add, const float *in, size_t first, size_t count,
                        const struct train_dropout *dropout) {
    const float *terms = add != NULL ? add + first : NULL;
    if (!(dropout->p > 0.0f)) {
        without_dropout(sum + first, terms, in + first, count);
        return;
    }
    float factors[BUFFER];
    for (size_t i = 0; i < count; i += BUFFER) {
        size_t some = count - i < BUFFER ? count - i : BUFFER;
        draw_factors(factors, first + i, some, dropout);
        add_products(sum + first + i, terms != NULL ? terms + i : NULL, in + first + i, factors,
                     some);
    }
}

static void dropout_range(void *arguments, int thread, size_t begin, size_t end) {
    const struct elementwise *e = arguments;
    (void)thread;
    train_cpu_residual(e->out, e->b, e->a, begin, end - begin, e->dropout);
}

enum status train_cpu_dropout(void *context, void *out, const void *add, const void *in,
                              size_t count, const struct train_dropout *dropout) {
    struct elementwise e = {.out = out, .a = in, .b = add, .dropout = dropout};
    cpu_parallel_for(train_cpu_threads(context, count, EXPONENTIAL), count, CHUNK, dropout_range,
                     &e);
    return STATUS_OK;
}

/* ---- With a bias in front ---- */

enum status train_cpu_activation_bias_backward(void *context, void *din, void *dbias,
                                               const void *dout, const void *in, size_t rows,
                                               size_t C, enum nn_activation f) {
    TRY(train_cpu_activation_backward(context, din, dout, in, rows * C, f));
    train_cpu_add_columns(context, dbias, din, rows, C);
    return STATUS_OK;
}

enum status train_cpu_dropout_bias_backward(void *context, void *din, void *dbias, const void *dout,
                                            size_t rows, size_t C,
                                            const struct train_dropout *dropout) {
    TRY(train_cpu_dropout(context, din, NULL, dout, rows * C, dropout));
    train_cpu_add_columns(context, dbias, din, rows, C);
    return STATUS_OK;
}
