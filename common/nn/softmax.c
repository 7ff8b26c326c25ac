/**
 * @file softmax.c
 * @brief Rows of numbers into probabilities: attention weights, class and token probabilities.
 */
#include <math.h>

#include "common/nn/nn.h"

/* The largest of the row, subtracted so that exp() does not overflow; 0 when all are -inf. */
static double shift_of(const float *x, size_t C) {
    float largest = -INFINITY;
    for (size_t c = 0; c < C; c++) {
        largest = x[c] > largest ? x[c] : largest;
    }
    return largest == -INFINITY ? 0.0 : (double)largest;
}

/* The exponentials are computed twice, so that they need not be rounded to fp32 in between. */
void nn_softmax(float *out, const float *in, size_t rows, size_t C) {
    for (size_t row = 0; row < rows; row++) {
        const float *x = in + row * C;
        double shift = shift_of(x, C);
        double sum = 0.0;
        for (size_t c = 0; c < C; c++) {
            sum += exp(x[c] - shift);
        }
        for (size_t c = 0; c < C; c++) {
            out[row * C + c] = sum == 0.0 ? 0.0f : (float)(exp(x[c] - shift) / sum);
        }
    }
}
