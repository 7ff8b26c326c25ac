/**
 * @file matmul.c
 * @brief Linear layers: out = in * weight^T, and their bias.
 *
 * Nearly all the arithmetic of both models: the four projections of attention,
 * the feed-forward network, the classifier.
 */
#include "common/nn/dot.h"
#include "common/nn/nn.h"

/* The outer loop is over features: a weight row is read from memory once and then stays in cache.
 */

void nn_matmul(float *out, const float *in, const float *weight, size_t M, size_t N, size_t K) {
    for (size_t n = 0; n < N; n++) {
        for (size_t m = 0; m < M; m++) {
            out[m * N + n] = (float)nn_dot(in + m * K, weight + n * K, K);
        }
    }
}

void nn_matmul_f64(double *out, const float *in, const float *weight, size_t M, size_t N,
                   size_t K) {
    for (size_t n = 0; n < N; n++) {
        for (size_t m = 0; m < M; m++) {
            out[m * N + n] = nn_dot(in + m * K, weight + n * K, K);
        }
    }
}

void nn_bias_add(float *x, const float *bias, size_t rows, size_t C) {
    for (size_t row = 0; row < rows; row++) {
        for (size_t c = 0; c < C; c++) {
            x[row * C + c] = (float)((double)x[row * C + c] + bias[c]);
        }
    }
}
