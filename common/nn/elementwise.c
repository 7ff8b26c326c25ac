/**
 * @file elementwise.c
 * @brief Elementwise functions: the feed-forward networks' GELU and SiLU, the pooler's tanh; the
 *        residual connection around every sublayer (He et al. 2016); gathered rows of a table.
 */
#include <math.h>

#include "common/nn/nn.h"

static const double SQRT_1_2 = 0.70710678118654752440;
static const double SQRT_2_PI = 0.79788456080286535588;

/* Phi(x) = erfc(-x / sqrt 2) / 2; (1 + erf(x / sqrt 2)) / 2 would cancel for negative x. */
static double gelu(double x) {
    return 0.5 * x * erfc(-x * SQRT_1_2);
}

/* x / (1 + e^-x) as it stands: e^-x overflows to infinity and the quotient to -0, its limit. */
static double silu(double x) {
    return x / (1.0 + exp(-x));
}

/* (1 + tanh u) / 2 = 1 / (1 + e^-2u), which again does not cancel. */
static double gelu_tanh(double x) {
    double u = SQRT_2_PI * (x + 0.044715 * x * x * x);
    return x / (1.0 + exp(-2.0 * u));
}

/* NaN stays NaN. */
static double relu(double x) {
    return x < 0.0 ? 0.0 : x;
}

static double apply(double x, enum nn_activation f) {
    switch (f) {
    case NN_GELU:
        return gelu(x);
    case NN_GELU_TANH:
        return gelu_tanh(x);
    case NN_SILU:
        return silu(x);
    case NN_TANH:
        return tanh(x);
    case NN_RELU:
        return relu(x);
    }
    return NAN;
}

void nn_activation(float *out, const float *in, size_t count, enum nn_activation f) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)apply(in[i], f);
    }
}

void nn_silu_gate(float *out, const float *gate, const float *up, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)(silu(gate[i]) * (double)up[i]);
    }
}

void nn_residual(float *out, const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)((double)a[i] + (double)b[i]);
    }
}

/* Token, position and type embeddings, and [CLS] rows. */
void nn_embedding(float *out, const float *table, const int32_t *ids, size_t T, size_t C,
                  bool accumulate) {
    for (size_t t = 0; t < T; t++) {
        const float *row = table + (size_t)ids[t] * C;
        for (size_t c = 0; c < C; c++) {
            out[t * C + c] = accumulate ? out[t * C + c] + row[c] : row[c];
        }
    }
}
