/**
 * @file gpu_matmul.cu
 * @brief Lab 02: YOUR FILE. Make the kernel fast, then the call around it; keep both right.
 *
 * gpu_matmul.h says what they must do, README.md how to go about it.
 * Everything in this file may change; the functions of gpu_matmul.h must stay.
 * Check and measure with
 *
 *     bazel test //grader:02_gpu_matmul_parity //grader:02_gpu_matmul_speedup
 *     bazel run //labs/02_gpu_matmul:bench
 */
#include "labs/02_gpu_matmul/gpu_matmul.h"

#include <stdlib.h>

#include "common/base/checked.h"

/*
 * Step 1: one thread computes one output, the formula written down. Right, and slow.
 *
 * Keep it when you write the next step: give each step a kernel and a launcher
 * of its own and a row in the table below, and the bench shows what each one
 * gained.
 */
static __global__ void thread_an_output(float *out, const float *in, const float *weight, size_t M,
                                        size_t N, size_t K) {
    size_t index = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= M * N) {
        return; /* the last block has more threads than there are outputs left */
    }
    size_t m = index / N;
    size_t n = index % N;
    float sum = 0.0f;
    for (size_t k = 0; k < K; k++) {
        sum += in[m * K + k] * weight[n * K + k];
    }
    out[index] = sum;
}

static enum status matmul_v1(float *out, const float *in, const float *weight, size_t M, size_t N,
                             size_t K, device_stream stream, struct error *error) {
    const unsigned threads = 256;
    if (M * N == 0) {
        return STATUS_OK; /* a launch of no blocks is an error */
    }
    unsigned blocks = (unsigned)ceil_div(M * N, threads);
    thread_an_output<<<blocks, threads, 0, stream>>>(out, in, weight, M, N, K);
    return device_launched("thread_an_output", error);
}

/* The steps the bench compares, in the order you wrote them; the last is your best. */
const struct gpu_matmul_step *gpu_matmul_ladder(size_t *count) {
    static const struct gpu_matmul_step steps[] = {
        {"v1_thread_an_output", matmul_v1},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

/* What the models and the grader call: the last step of the table. */
enum status gpu_matmul_launch(float *out, const float *in, const float *weight, size_t M, size_t N,
                              size_t K, device_stream stream, struct error *error) {
    size_t count;
    const struct gpu_matmul_step *steps = gpu_matmul_ladder(&count);
    return steps[count - 1].run(out, in, weight, M, N, K, stream, error);
}

/* Part two: the call. Whatever it keeps from one call to the next belongs in this struct. */
struct gpu_matmul {
    device_stream stream;
};

enum status gpu_matmul_create(struct gpu_matmul **matmul, struct error *error) {
    *matmul = (struct gpu_matmul *)calloc(1, sizeof **matmul);
    if (*matmul == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = device_stream_create(&(*matmul)->stream, error);
    if (status != STATUS_OK) {
        gpu_matmul_destroy(*matmul);
        *matmul = NULL;
    }
    return status;
}

void gpu_matmul_destroy(struct gpu_matmul *matmul) {
    if (matmul != NULL) {
        device_stream_destroy(matmul->stream);
        free(matmul);
    }
}

/* The operands of one call in device memory. */
struct operands {
    float *d_out, *d_in, *d_weight;
};

static enum status allocate(struct operands *o, size_t M, size_t N, size_t K, struct error *error) {
    TRY(device_alloc((void **)&o->d_in, M * K * sizeof(float), error));
    TRY(device_alloc((void **)&o->d_weight, N * K * sizeof(float), error));
    return device_alloc((void **)&o->d_out, M * N * sizeof(float), error);
}

static void release(struct operands *o) {
    device_free(o->d_out);
    device_free(o->d_weight);
    device_free(o->d_in);
}

/* Copies in, runs the kernel, copies out. */
static enum status run(const struct operands *o, device_stream stream, float *out, const float *in,
                       const float *weight, size_t M, size_t N, size_t K, struct error *error) {
    TRY(device_write(o->d_in, in, M * K * sizeof(float), stream, error));
    TRY(device_write(o->d_weight, weight, N * K * sizeof(float), stream, error));
    TRY(gpu_matmul_launch(o->d_out, o->d_in, o->d_weight, M, N, K, stream, error));
    return device_read(out, o->d_out, M * N * sizeof(float), stream, error);
}

enum status gpu_matmul(struct gpu_matmul *matmul, float *out, const float *in, const float *weight,
                       size_t M, size_t N, size_t K, struct error *error) {
    struct operands operands = {};
    enum status status = allocate(&operands, M, N, K, error);
    if (status == STATUS_OK) {
        status = run(&operands, matmul->stream, out, in, weight, M, N, K, error);
    }
    release(&operands);
    return status;
}
