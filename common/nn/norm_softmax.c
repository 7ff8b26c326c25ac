/**
 * @file norm_softmax.c
 * @brief LayerNorm, after every sublayer of BERT, and RMSNorm, before every sublayer of Llama2.
 *        Softmax: attention weights, probabilities of classes and tokens.
 */
#include <math.h>

#include "common/nn/nn.h"

static double mean_of(const float *x, size_t C) {
    double sum = 0.0;
    for (size_t c = 0; c < C; c++) {
        sum += x[c];
    }
    return sum / (double)C;
}

/* Mean of (x - mean)^2. The mean needs a pass of its own: E[x^2] - mean^2 would cancel. */
static double variance_of(const float *x, double mean, size_t C) {
    double sum = 0.0;
    for (size_t c = 0; c < C; c++) {
        double d = x[c] - mean;
        sum += d * d;
    }
    return sum / (double)C;
}

void nn_layernorm(float *out, const float *in, const float *weight, const float *bias, size_t rows,
                  size_t C, float eps) {
    for (size_t row = 0; row < rows; row++) {
        const float *x = in + row * C;
        double mean = mean_of(x, C);
        double deviation = sqrt(variance_of(x, mean, C) + (double)eps);
        for (size_t c = 0; c < C; c++) {
            out[row * C + c] = (float)((x[c] - mean) / deviation * weight[c] + bias[c]);
        }
    }
}

void nn_rmsnorm(float *out, const float *in, const float *weight, size_t rows, size_t C,
                float eps) {
    for (size_t row = 0; row < rows; row++) {
        const float *x = in + row * C;
        double root = sqrt(variance_of(x, 0.0, C) + (double)eps);
        for (size_t c = 0; c < C; c++) {
            out[row * C + c] = (float)(x[c] / root * weight[c]);
        }
    }
}

/* The row's maximum, subtracted so that exp() does not overflow; 0 if all elements are -inf. */
static double max_of(const float *x, size_t C) {
    float max = -INFINITY;
    for (size_t c = 0; c < C; c++) {
        max = x[c] > max ? x[c] : max;
    }
    return max == -INFINITY ? 0.0 : (double)max;
}

/* Computes the exponentials twice instead of storing them, which would round them to fp32. */
void nn_softmax(float *out, const float *in, size_t rows, size_t C) {
    for (size_t row = 0; row < rows; row++) {
        const float *x = in + row * C;
        double max = max_of(x, C);
        double sum = 0.0;
        for (size_t c = 0; c < C; c++) {
            sum += exp(x[c] - max);
        }
        for (size_t c = 0; c < C; c++) {
            out[row * C + c] = sum == 0.0 ? 0.0f : (float)(exp(x[c] - max) / sum);
        }
    }
}
