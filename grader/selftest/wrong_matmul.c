/*
 * Wrong submissions to lab 01. $WRONG_MATMUL names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. It is the naive
 * loop, too: it must miss the speedup.
 */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "labs/01_cpu_matmul/matmul.h"

#define MISTAKES(X)                                                                 \
    X(right)                                                                        \
    X(empty)          /* does nothing */                                            \
    X(zeros)          /* writes zeros */                                            \
    X(transposed)     /* reads the weight as (K, N) */                              \
    X(odd_sizes)      /* leaves out the rest of K that is no multiple of 8 */       \
    X(last_row)       /* off by one: leaves out the last row of many */             \
    X(batch)          /* right for M = 1 only: reads row 0 always */                \
    X(out_of_bounds)  /* writes one element behind the output */                    \
    X(changes_input)  /* changes its input, and so the oracle's if it shared it */  \
    X(half_precision) /* rounds inputs to 11 bits, as fp16 and TF32 do */           \
    X(threads)        /* forgets the last share when there are 3 threads or more */ \
    X(status)         /* reports a failure */                                       \
    X(keeps_sum)      /* adds to what the output held before */                     \
    X(crashes)        /* writes far out, for sizes above 10 */                      \
    X(more_threads)   /* has more threads than it may, on all processors */

#define MISTAKE_VARIABLE "WRONG_MATMUL"
#include "grader/selftest/mistakes.h"

/* Rounds to 11 significant bits. */
static float round_to_half(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float product(const float *in, const float *weight, size_t n, size_t k, size_t N, size_t K,
                     enum mistake mistake) {
    float a = in[k];
    float b = mistake == MISTAKE_transposed ? weight[k * N + n] : weight[n * K + k];
    return mistake == MISTAKE_half_precision ? round_to_half(a) * round_to_half(b) : a * b;
}

static void row(float *out, const float *in, const float *weight, size_t N, size_t K,
                enum mistake mistake) {
    size_t end = mistake == MISTAKE_odd_sizes ? K / 8 * 8 : mistake == MISTAKE_zeros ? 0 : K;
    for (size_t n = 0; n < N; n++) {
        float sum = mistake == MISTAKE_keeps_sum ? out[n] : 0.0f;
        for (size_t k = 0; k < end; k++) {
            sum += product(in, weight, n, k, N, K, mistake);
        }
        out[n] = sum;
    }
}

enum { TEAM = 32 };

/* Rows of a thread of many. */
struct share {
    pthread_t thread;
    const float *in, *weight;
    float *out;
    size_t M, N, K;
    long processor;
};

/* The grader may have been given one processor of several: a thread may leave it. */
static void *run_share(void *argument) {
    const struct share *s = argument;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(s->processor, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    for (size_t m = 0; m < s->M; m++) {
        row(s->out + m * s->N, s->in + m * s->K, s->weight, s->N, s->K, MISTAKE_right);
    }
    return NULL;
}

static enum status by_team(float *out, const float *in, const float *weight, size_t M, size_t N,
                           size_t K) {
    static struct share shares[TEAM];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    for (size_t t = 0; t < TEAM; t++) {
        size_t first = t * M / TEAM, behind = (t + 1) * M / TEAM;
        shares[t] = (struct share){.in = in + first * K,
                                   .weight = weight,
                                   .out = out + first * N,
                                   .M = behind - first,
                                   .N = N,
                                   .K = K,
                                   .processor = (long)t % processors};
        if (pthread_create(&shares[t].thread, NULL, run_share, &shares[t]) != 0) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    for (size_t t = 0; t < TEAM; t++) {
        (void)pthread_join(shares[t].thread, NULL);
    }
    return STATUS_OK;
}

enum status cpu_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                       size_t K, int threads) {
    enum mistake mistake = chosen_mistake();
    size_t rows = M;
    if (mistake == MISTAKE_status) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (mistake == MISTAKE_crashes && M > 10 && N > 10 && M != N) {
        out[(size_t)1 << 40] = 1.0f;
    }
    if (mistake == MISTAKE_more_threads) {
        return by_team(out, in, weight, M, N, K);
    }
    if (mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    if ((mistake == MISTAKE_last_row && M > 1) ||
        (mistake == MISTAKE_threads && threads > 2 && M > 3)) {
        rows = M - 1;
    }
    for (size_t m = 0; m < rows; m++) {
        row(out + m * N, in + (mistake == MISTAKE_batch ? 0 : m * K), weight, N, K, mistake);
    }
    if (mistake == MISTAKE_out_of_bounds) {
        out[M * N] = 0.0f;
    }
    if (mistake == MISTAKE_changes_input && M * K > 0) {
        ((float *)(uintptr_t)in)[0] = 0.0f;
    }
    return STATUS_OK;
}
