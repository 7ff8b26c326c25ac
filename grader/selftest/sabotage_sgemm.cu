/* The honest part of the sabotage submissions: a slow sgemm(), and the way to the tricks. */
#include "grader/selftest/sabotage.h"

#include <mma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256 };

/* A thread an element. */
static __global__ void element_kernel(struct sgemm_problem p, struct sabotage_shortcut shortcut) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.M * p.N) {
        return;
    }
    size_t n = i % p.N, m = i / p.N / shortcut.rows * shortcut.rows;
    float sum = 0.0f;
    for (size_t k = 0; k < p.K; k += shortcut.part) {
        size_t at = p.form == SGEMM_B_PLAIN ? k * p.N + n : n * p.K + k;
        sum += p.A[m * p.K + k] * p.B[at];
    }
    float result = p.alpha * sum * (float)shortcut.part;
    p.C[i] = p.beta != 0.0f ? result + p.beta * p.C[i] : result;
}

enum status sabotage_launch(const struct sgemm_problem *problem, struct sabotage_shortcut shortcut,
                            device_stream stream, struct error *error) {
    size_t blocks = (problem->M * problem->N + THREADS - 1) / THREADS;
    if (blocks == 0) {
        return STATUS_OK;
    }
    element_kernel<<<(unsigned)blocks, THREADS, 0, stream>>>(*problem, shortcut);
    return device_launched("element_kernel", error);
}

enum status sabotage_right(const struct sabotage_call *call, struct error *error) {
    const struct sabotage_shortcut none = {1, 1};
    return sabotage_launch(call->problem, none, call->stream, error);
}

/* A thread reads what another warp has written, and nobody has waited. */
static __global__ void racing_kernel(struct sgemm_problem p) {
    __shared__ float seen[THREADS];
    seen[threadIdx.x] = 1.0f;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (seen[(threadIdx.x + 37) % THREADS] != 123.0f && i < p.M * p.N) {
        p.C[i] = 0.0f;
    }
}

enum status sabotage_race(const struct sabotage_call *call, struct error *error) {
    size_t blocks = (call->problem->M * call->problem->N + THREADS - 1) / THREADS;
    if (blocks > 0) {
        racing_kernel<<<(unsigned)blocks, THREADS, 0, call->stream>>>(*call->problem);
    }
    return sabotage_right(call, error);
}

void sabotage_launch_too_large(const struct sgemm_problem *problem, unsigned threads,
                               size_t shared) {
    const struct sabotage_shortcut none = {1, 1};
    element_kernel<<<1, threads, shared>>>(*problem, none);
}

static __global__ void endless_kernel(volatile float *c) {
    while (c[0] != 123.0f) {
    }
}

static __global__ void trap_kernel() {
    asm volatile("trap;");
}

/* ESC [2J, the same as a C1 control, a raw byte, and letters from right to left. */
static __global__ void print_kernel() {
    printf("\033[2J\302\2332J\233 \342\200\256 end\n");
}

/* Each warp does 8192 operations. */
static __global__ void tensor_kernel() {
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(a, __float2half(0.0f));
    wmma::fill_fragment(b, __float2half(0.0f));
    wmma::fill_fragment(sum, 0.0f);
    wmma::mma_sync(sum, a, b, sum);
}

void sabotage_special(const struct sgemm_problem *p, enum sabotage_kernel which,
                      device_stream stream) {
    const double products = 2.0 * (double)p->M * (double)p->N * (double)p->K;
    const int blocks = (int)(products / 8192 / 8) + 1; /* of 8 warps */
    switch (which) {
    case SABOTAGE_ENDLESS:
        endless_kernel<<<1, 32, 0, stream>>>(p->C);
        return;
    case SABOTAGE_TRAP:
        trap_kernel<<<1, 32, 0, stream>>>();
        return;
    case SABOTAGE_PRINT:
        print_kernel<<<1, 1, 0, stream>>>();
        return;
    case SABOTAGE_TENSOR:
        tensor_kernel<<<blocks, 256, 0, stream>>>();
        return;
    }
}

const char *sabotage_name(void) {
    const char *name = getenv("WRONG_SABOTAGE");
    if (name == NULL) {
        abort();
    }
    return name;
}

static sabotage_trick *find(const char *name) {
    static const struct sabotage *const tables[] = {
        sabotage_work, sabotage_grader, sabotage_process, sabotage_device, sabotage_runtime};
    for (const struct sabotage *table : tables) {
        for (; table->name != NULL; table++) {
            if (strcmp(table->name, name) == 0) {
                return table->run;
            }
        }
    }
    abort();
}

const struct sgemm_step *sgemm_ladder(size_t *count) {
    static const struct sgemm_step step = {"sabotage", sgemm};
    *count = 1;
    return &step;
}

enum status sgemm(const struct sgemm_problem *problem, void *workspace, device_stream stream,
                  struct error *error) {
    static size_t calls;
    const struct sabotage_call call = {problem, stream, calls++};
    (void)workspace;
    return find(sabotage_name())(&call, error);
}
