/**
 * @file softmax.c
 * @brief Softmax: attention weights, probabilities of classes and tokens.
 */
#include <math.h>

#include "common/nn/nn.h"

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
