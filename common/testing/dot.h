/**
 * @file dot.h
 * @brief The dot product under the oracles that keep their inputs in double.
 */
#ifndef WARPBOOK_COMMON_TESTING_DOT_H_
#define WARPBOOK_COMMON_TESTING_DOT_H_

#include <stddef.h>

/**
 * @return sum of in[k] * weight[k]: four sums at a time, or an addition waits for the one before it
 * @param in (K) @param weight (K)
 */
static inline double dot_f64(const double *in, const float *weight, size_t K) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    size_t k = 0;
    for (; k + 4 <= K; k += 4) {
        a += in[k] * (double)weight[k];
        b += in[k + 1] * (double)weight[k + 1];
        c += in[k + 2] * (double)weight[k + 2];
        d += in[k + 3] * (double)weight[k + 3];
    }
    for (; k < K; k++) {
        a += in[k] * (double)weight[k];
    }
    return a + b + (c + d);
}

#endif
