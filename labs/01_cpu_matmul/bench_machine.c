/*
 * Two probes: how many fused multiply-adds the cores do when nothing holds them
 * up, and how fast they read memory. Every other figure is a share of these.
 */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/cpu.h"
#include "common/bench/bench.h"
#include "labs/01_cpu_matmul/bench_parts.h"

enum {
    LANES = 16,
    WIDE_SUMS = 24,  /* vectors in flight with 32 registers of 16 floats */
    NARROW_SUMS = 6, /* with 16 registers of 8: two registers each */
    ROUNDS = 1 << 16,
    BUFFER = 16 << 20, /* floats, 64 MiB */
    REPEATS = 7
};

typedef float vector __attribute__((vector_size(LANES * sizeof(float)), may_alias));

CPU_INLINE void multiply_add(vector *sums, size_t count, float factor, float summand) {
    vector sum[WIDE_SUMS];
    for (size_t i = 0; i < count; i++) {
        sum[i] = sums[i];
    }
    for (size_t round = 0; round < ROUNDS; round++) {
#pragma GCC unroll 24
        for (size_t i = 0; i < count; i++) {
            sum[i] = sum[i] * factor + summand;
        }
    }
    for (size_t i = 0; i < count; i++) {
        sums[i] = sum[i];
    }
}

/* FLOPs of one call. */
CPU_CLONES
static double probe_arithmetic(vector *sums, bool wide) {
    size_t count = wide ? WIDE_SUMS : NARROW_SUMS;
    if (wide) {
        multiply_add(sums, WIDE_SUMS, 0.5f, 0.5f);
    } else {
        multiply_add(sums, NARROW_SUMS, 0.5f, 0.5f);
    }
    return 2.0 * LANES * ROUNDS * (double)count;
}

CPU_CLONES
static void probe_memory(const float *buffer, vector *sums) {
    vector sum[4] = {0};
    for (size_t i = 0; i < BUFFER; i += 4 * LANES) {
#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++) {
            __builtin_prefetch(buffer + (i + v * LANES + 2048) % BUFFER);
            sum[v] += *(const vector *)(buffer + i + v * LANES);
        }
    }
    for (size_t v = 0; v < 4; v++) {
        sums[v] = sum[v];
    }
}

/* One thread's work and result. */
struct probe {
    pthread_barrier_t *barrier;
    float *buffer; /* (BUFFER) */
    struct machine best;
    volatile float sink;
};

/* All threads start each repeat together, so that they share the clock and the memory. */
static void *run_probe(void *argument) {
    struct probe *probe = argument;
    vector sums[WIDE_SUMS] = {0};
    for (size_t i = 0; i < BUFFER; i++) {
        probe->buffer[i] = 1.0f;
    }
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        pthread_barrier_wait(probe->barrier);
        double start = bench_now();
        double flops = 0.0;
        for (int i = 0; i < 10; i++) {
            flops += probe_arithmetic(sums, cpu_has_wide_vectors());
        }
        double rate = 1e-9 * flops / (bench_now() - start);
        probe->best.gflop_per_s = rate > probe->best.gflop_per_s ? rate : probe->best.gflop_per_s;
        probe->sink = sums[0][0];

        pthread_barrier_wait(probe->barrier);
        start = bench_now();
        probe_memory(probe->buffer, sums);
        rate = 1e-9 * sizeof(float) * BUFFER / (bench_now() - start);
        probe->best.gb_per_s = rate > probe->best.gb_per_s ? rate : probe->best.gb_per_s;
        probe->sink = sums[0][0] + sums[1][0] + sums[2][0] + sums[3][0];
    }
    return NULL;
}

static enum status run_probes(int threads, struct probe *probes, pthread_t *handles) {
    pthread_barrier_t barrier;
    if (pthread_barrier_init(&barrier, NULL, (unsigned)threads) != 0) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (int i = 0; i < threads; i++) {
        probes[i].barrier = &barrier;
        if (pthread_create(&handles[i], NULL, run_probe, &probes[i]) != 0) {
            /* The threads that started wait for ever; the program ends with the error. */
            return STATUS_OUT_OF_MEMORY;
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
    }
    pthread_barrier_destroy(&barrier);
    return STATUS_OK;
}

enum status measure_machine(int threads, struct machine *machine) {
    *machine = (struct machine){0};
    struct probe *probes = calloc((size_t)threads, sizeof *probes);
    pthread_t *handles = calloc((size_t)threads, sizeof *handles);
    enum status status = probes != NULL && handles != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    for (int i = 0; i < threads && status == STATUS_OK; i++) {
        probes[i].buffer = aligned_alloc(64, BUFFER * sizeof(float));
        status = probes[i].buffer != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    }
    if (status == STATUS_OK) {
        status = run_probes(threads, probes, handles);
    }
    for (int i = 0; i < threads && probes != NULL; i++) {
        machine->gflop_per_s += probes[i].best.gflop_per_s;
        machine->gb_per_s += probes[i].best.gb_per_s;
        free(probes[i].buffer);
    }
    free(probes);
    free(handles);
    return status;
}
