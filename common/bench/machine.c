/*
 * Two probes: how many fused multiply-adds a second the cores do from registers,
 * and how fast they read memory. Other figures are given as shares of these two.
 */
#include "common/bench/machine.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/cpu.h"
#include "common/bench/bench.h"

enum {
    WIDE_SUMS = 24,   /* vectors in flight with 32 registers of 16 floats */
    NARROW_SUMS = 12, /* with 16 registers of 8 or 4 floats */
    ROUNDS = 1 << 16,
    BUFFER = 16 << 20, /* floats, 64 MiB */
    REPEATS = 7
};

typedef float wide_vector __attribute__((vector_size(64), may_alias));
typedef float narrow_vector __attribute__((vector_size(32), may_alias));
typedef float vector __attribute__((vector_size(16), may_alias));

/*
 * Defines a function that multiplies and adds to `count` sums of a vector type; one function for
 * each type. The sums start with different values, or the compiler would compute only one of them.
 */
#define MULTIPLY_ADD(name, type, count)                   \
    CPU_INLINE float name(float factor, float summand) {  \
        type sum[count];                                  \
        for (size_t i = 0; i < (count); i++) {            \
            sum[i] = (type){0} + (float)i;                \
        }                                                 \
        for (size_t round = 0; round < ROUNDS; round++) { \
            UNROLL for (size_t i = 0; i < (count); i++) { \
                sum[i] = sum[i] * factor + summand;       \
            }                                             \
        }                                                 \
        float total = 0.0f;                               \
        for (size_t i = 0; i < (count); i++) {            \
            total += sum[i][0];                           \
        }                                                 \
        return total;                                     \
    }
#define UNROLL _Pragma("GCC unroll 24")

MULTIPLY_ADD(multiply_add_wide, wide_vector, WIDE_SUMS)
MULTIPLY_ADD(multiply_add_narrow, narrow_vector, NARROW_SUMS)
MULTIPLY_ADD(multiply_add_short, vector, NARROW_SUMS)

/* @return FLOPs of one call; *sink keeps the compiler from removing them */
CPU_CLONES
static double probe_arithmetic(size_t lanes, float factor, volatile float *sink) {
    if (lanes == 16) {
        *sink = multiply_add_wide(factor, 1.0f);
        return 2.0 * 16 * WIDE_SUMS * ROUNDS;
    }
    if (lanes == 8) {
        *sink = multiply_add_narrow(factor, 1.0f);
        return 2.0 * 8 * NARROW_SUMS * ROUNDS;
    }
    *sink = multiply_add_short(factor, 1.0f);
    return 2.0 * 4 * NARROW_SUMS * ROUNDS;
}

CPU_CLONES
static float probe_memory(const float *buffer) {
    enum { LANES = 4, STEP = 4, LINE = LANES * STEP };
    vector sum[STEP] = {0};
    for (size_t i = 0; i < BUFFER; i += LINE) {
        __builtin_prefetch(buffer + (i + 2048) % BUFFER);
#pragma GCC unroll 4
        for (size_t v = 0; v < STEP; v++) {
            sum[v] += *(const vector *)(buffer + i + v * LANES);
        }
    }
    float total = 0.0f;
    for (size_t v = 0; v < STEP; v++) {
        total += sum[v][0];
    }
    return total;
}

/* Holds the threads back until it is known whether all of them could be started. */
struct start {
    pthread_mutex_t gate; /* locked while threads are being made */
    bool go;              /* written and read under the gate; false: the threads return at once */
    pthread_barrier_t together;
};

/* One thread's work and result. */
struct probe {
    struct start *start;
    float *buffer; /* (BUFFER) */
    struct bench_machine best;
    volatile float sink;
};

/* All threads start each repeat together, so that they share the clock and the memory. */
static void *run_probe(void *argument) {
    struct probe *probe = argument;
    pthread_mutex_lock(&probe->start->gate);
    bool go = probe->start->go;
    pthread_mutex_unlock(&probe->start->gate);
    if (!go) {
        return NULL;
    }
    for (size_t i = 0; i < BUFFER; i++) {
        probe->buffer[i] = 1.0f;
    }
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        pthread_barrier_wait(&probe->start->together);
        double start = bench_now();
        double flops = 0.0;
        for (int i = 0; i < 10; i++) {
            flops += probe_arithmetic(cpu_vector_floats(), 0.5f, &probe->sink);
        }
        double rate = 1e-9 * flops / (bench_now() - start);
        probe->best.gflop_per_s = rate > probe->best.gflop_per_s ? rate : probe->best.gflop_per_s;

        pthread_barrier_wait(&probe->start->together);
        start = bench_now();
        probe->sink = probe_memory(probe->buffer);
        rate = 1e-9 * sizeof(float) * BUFFER / (bench_now() - start);
        probe->best.gb_per_s = rate > probe->best.gb_per_s ? rate : probe->best.gb_per_s;
    }
    return NULL;
}

/* Starts and joins the threads. When one cannot be started, none of them measures. */
static enum status run_probes(int threads, struct probe *probes, pthread_t *handles) {
    struct start start = {.gate = PTHREAD_MUTEX_INITIALIZER};
    if (pthread_barrier_init(&start.together, NULL, (unsigned)threads) != 0) {
        return STATUS_OUT_OF_MEMORY;
    }
    int started = 0;
    pthread_mutex_lock(&start.gate);
    while (started < threads) {
        probes[started].start = &start;
        if (pthread_create(&handles[started], NULL, run_probe, &probes[started]) != 0) {
            break;
        }
        started++;
    }
    start.go = started == threads;
    pthread_mutex_unlock(&start.gate);
    for (int i = 0; i < started; i++) {
        pthread_join(handles[i], NULL);
    }
    pthread_barrier_destroy(&start.together);
    return started == threads ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status measure(int threads, struct probe *probes, pthread_t *handles) {
    for (int i = 0; i < threads; i++) {
        probes[i].buffer = aligned_alloc(64, BUFFER * sizeof(float));
        if (probes[i].buffer == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    return run_probes(threads, probes, handles);
}

enum status bench_measure_machine(int threads, struct bench_machine *machine) {
    *machine = (struct bench_machine){0};
    if (threads < 1) {
        return STATUS_INVALID_ARGUMENT;
    }
    struct probe *probes = calloc((size_t)threads, sizeof *probes);
    pthread_t *handles = calloc((size_t)threads, sizeof *handles);
    enum status status = probes != NULL && handles != NULL ? measure(threads, probes, handles)
                                                           : STATUS_OUT_OF_MEMORY;
    for (int i = 0; i < threads && probes != NULL; i++) {
        machine->gflop_per_s += probes[i].best.gflop_per_s;
        machine->gb_per_s += probes[i].best.gb_per_s;
        free(probes[i].buffer);
    }
    free(probes);
    free(handles);
    return status;
}
