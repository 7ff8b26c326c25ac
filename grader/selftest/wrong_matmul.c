/*
 * Wrong submissions to lab 01. -DWRONG=n picks one; each must be caught by the
 * parity test, with a message that leads to the mistake. WRONG_RIGHT is the
 * control: it must pass.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "labs/01_cpu_matmul/matmul.h"

enum {
    WRONG_RIGHT,          /* the control */
    WRONG_EMPTY,          /* does nothing */
    WRONG_ZEROS,          /* writes zeros */
    WRONG_TRANSPOSED,     /* reads the weight as (K, N) */
    WRONG_ODD_SIZES,      /* leaves out the rest of K that is no multiple of 8 */
    WRONG_LAST_ROW,       /* off by one: leaves out the last row of many */
    WRONG_BATCH,          /* right for M = 1 only: reads row 0 always */
    WRONG_OUT_OF_BOUNDS,  /* writes one element behind the output */
    WRONG_CHANGES_INPUT,  /* changes its input, and so the oracle's if it shared it */
    WRONG_HALF_PRECISION, /* rounds inputs to 11 bits, as fp16 and TF32 do */
    WRONG_THREADS,        /* forgets the last share when there are 3 threads or more */
    WRONG_STATUS,         /* reports a failure */
    WRONG_KEEPS_SUM,      /* adds to what the output held before */
    WRONG_CRASHES         /* writes far out, for sizes above 10 */
};

/* Rounds to 11 significant bits. */
static float round_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float product(const float *in, const float *weight, size_t n, size_t k, size_t N, size_t K) {
    float a = in[k];
    float b = WRONG == WRONG_TRANSPOSED ? weight[k * N + n] : weight[n * K + k];
    return WRONG == WRONG_HALF_PRECISION ? round_to_half(a) * round_to_half(b) : a * b;
}

static void row(float *out, const float *in, const float *weight, size_t N, size_t K) {
    size_t end = WRONG == WRONG_ODD_SIZES ? K / 8 * 8 : K;
    for (size_t n = 0; n < N; n++) {
        float sum = WRONG == WRONG_KEEPS_SUM ? out[n] : 0.0f;
        for (size_t k = 0; k < end && WRONG != WRONG_ZEROS; k++) {
            sum += product(in, weight, n, k, N, K);
        }
        out[n] = sum;
    }
}

enum status cpu_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                       size_t K, int threads) {
    size_t rows = M;
    if (WRONG == WRONG_STATUS) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (WRONG == WRONG_CRASHES && M > 10 && N > 10 && M != N) {
        out[(size_t)1 << 40] = 1.0f;
    }
    if (WRONG == WRONG_EMPTY) {
        return STATUS_OK;
    }
    if ((WRONG == WRONG_LAST_ROW && M > 1) || (WRONG == WRONG_THREADS && threads > 2 && M > 3)) {
        rows = M - 1;
    }
    for (size_t m = 0; m < rows; m++) {
        row(out + m * N, in + (WRONG == WRONG_BATCH ? 0 : m * K), weight, N, K);
    }
    if (WRONG == WRONG_OUT_OF_BOUNDS) {
        out[M * N] = 0.0f;
    }
    if (WRONG == WRONG_CHANGES_INPUT && M * K > 0) {
        ((float *)(uintptr_t)in)[0] = 0.0f;
    }
    return STATUS_OK;
}
