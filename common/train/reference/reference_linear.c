/**
 * @file reference_linear.c
 * @brief The linear layer y = x W^T + b and its three gradients, in double.
 *
 * With g = dL/dy: dL/dx = g W, dL/dW = g^T x, dL/db = the sum of g's rows. Both products run along
 * whole rows of their operands, so no matrix is transposed.
 */
#include <string.h>

#include "common/train/reference/reference_internal.h"

enum status reference_linear(void *context, void *out, const void *in, const void *weight,
                             const void *bias, size_t M, size_t N, size_t K) {
    (void)context;
    double *y = out;
    const double *x = in, *w = weight, *b = bias;
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            double sum = reference_dot(x + m * K, w + n * K, K);
            y[m * N + n] = b != NULL ? sum + b[n] : sum;
        }
    }
    return STATUS_OK;
}

/* dx (M, K) = dy (M, N) * w (N, K) + add (M, K), which may be dx or NULL. */
static void input_gradient(double *dx, const double *add, const double *dy, const double *w,
                           size_t M, size_t N, size_t K) {
    if (add == NULL) {
        memset(dx, 0, M * K * sizeof *dx);
    } else if (add != dx) {
        memcpy(dx, add, M * K * sizeof *dx);
    }
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            reference_add(dx + m * K, dy[m * N + n], w + n * K, K);
        }
    }
}

enum status reference_linear_backward(void *context, void *din, const void *add, void *dweight,
                                      void *dbias, const void *dout, const void *in,
                                      const void *weight, size_t M, size_t N, size_t K) {
    (void)context;
    double *dw = dweight;
    const double *x = in, *dy = dout;
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            reference_add(dw + n * K, dy[m * N + n], x + m * K, K);
        }
        if (dbias != NULL) {
            reference_add(dbias, 1.0, dy + m * N, N);
        }
    }
    if (din != NULL) {
        input_gradient(din, add, dy, weight, M, N, K);
    }
    return STATUS_OK;
}
