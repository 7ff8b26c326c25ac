/**
 * @file dot.h
 * @brief The dot product under matmul and attention; private to common/nn.
 */
#ifndef WARPBOOK_COMMON_NN_DOT_H_
#define WARPBOOK_COMMON_NN_DOT_H_

#include <stddef.h>
#include <string.h>

/** Two doubles: every 64-bit machine's vector registers hold at least these. */
typedef double nn_f64x2 __attribute__((vector_size(16)));

/**
 * @brief sum of a[k] * b[k].
 *
 * A product of two fp32 numbers is exact in double, so only the sums are rounded,
 * and a fused multiply-add changes nothing. Eight partial sums, added in a fixed
 * order, are fast enough for models of real size and give the same bits on every
 * machine.
 *
 * @param a (K) @param b (K)
 */
static inline double nn_dot(const float *a, const float *b, size_t K) {
    nn_f64x2 sum0 = {0.0}, sum1 = {0.0}, sum2 = {0.0}, sum3 = {0.0};
    size_t k = 0;
    for (; K - k >= 8; k += 8) {
        const float *x = a + k;
        const float *y = b + k;
        sum0 += (nn_f64x2){x[0], x[1]} * (nn_f64x2){y[0], y[1]};
        sum1 += (nn_f64x2){x[2], x[3]} * (nn_f64x2){y[2], y[3]};
        sum2 += (nn_f64x2){x[4], x[5]} * (nn_f64x2){y[4], y[5]};
        sum3 += (nn_f64x2){x[6], x[7]} * (nn_f64x2){y[6], y[7]};
    }
    nn_f64x2 pair = (sum0 + sum1) + (sum2 + sum3);
    double sum = pair[0] + pair[1];
    for (; k < K; k++) {
        sum += (double)a[k] * (double)b[k];
    }
    return sum;
}

#endif
