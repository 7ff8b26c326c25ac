/*
 * A submission to lab 01 that is right, and uses what harmless programs use: its allowed_symbols
 * test must pass. With CLASHES it also has names of the workspace and of the grader: that is the
 * parity test's failure, and no error of the linker.
 */
#include <fenv.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "labs/01_cpu_matmul/matmul.h"

/* What a program may want to know before it works. */
static int look_around(void) {
    cpu_set_t set;
    thrd_t me = thrd_current();
    CPU_ZERO(&set);
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    bool page = getpagesize() > 0 && sysconf(_SC_NPROCESSORS_ONLN) > 0;
    srand48(7);
    return cores > 0 && page && thrd_equal(me, thrd_current()) && drand48() >= 0.0 &&
           fegetround() == FE_TONEAREST && isatty(STDOUT_FILENO) >= 0;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Sorted numbers, text, a counter. */
static int work_a_little(void) {
    static atomic_int calls;
    float numbers[] = {3.0f, 1.0f, 2.0f};
    char text[32];
    char *copy = strdup("warp");
    qsort(numbers, 3, sizeof *numbers, by_value);
    snprintf(text, sizeof text, "%s %d", copy != NULL ? copy : "", atomic_fetch_add(&calls, 1));
    free(copy);
    return numbers[0] == 1.0f && strlen(text) > 0 && isfinite(cosf(numbers[1]));
}

#ifdef CLASHES
int message_send(void);
int arena_create(void);

int message_send(void) {
    return 0;
}

int arena_create(void) {
    return 0;
}
#endif

enum status cpu_matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                       size_t K, int threads) {
    (void)threads;
    if (!look_around() || !work_a_little()) {
        return STATUS_IO;
    }
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (size_t k = 0; k < K; k++) {
                sum += in[m * K + k] * weight[n * K + k];
            }
            out[m * N + n] = sum;
        }
    }
    return STATUS_OK;
}
