/**
 * @file norm.c
 * @brief LayerNorm, after every sublayer of BERT, and RMSNorm, before every sublayer of Llama2.
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
