/**
 * @file tensor_cores.cu
 * @brief Lab 12: YOUR FILE. Make gemm16() fast and keep it right.
 *
 * What it must do is in tensor_cores.h, how to go about it in README.md. Everything in this file
 * may change; the two functions of tensor_cores.h must stay. Check and measure with
 *
 *     bazel test //grader:12_tensor_cores_parity //grader:12_tensor_cores_speedup
 *     bazel run //labs/12_tensor_cores:bench
 */
#include "labs/12_tensor_cores/tensor_cores.h"

#include <cuda_bf16.h>
#include <limits.h>

#include "labs/12_tensor_cores/given/activation.cuh"

enum { TILE = 16 };

/* The epilogue of one element: in fp32, and rounded once. All lanes of a warp call it together,
   those outside (M, N), too: lane i has column n, and lane i + 1 the next one. */
static __device__ void store(const struct gemm16_problem &p, size_t m, size_t n, float sum) {
    bool inside = m < p.M && n < p.N;
    size_t at = m * p.N + n;
    if (p.bias != NULL && inside) {
        sum += __bfloat162float(((const __nv_bfloat16 *)p.bias)[n]);
    }
    float next = __shfl_down_sync(~0u, sum, 1);
    if (!inside || (p.gate && n % 2 != 0)) {
        return;
    }
    if (p.gate) {
        sum = gemm16_activation(sum, NN_SILU) * next;
        at /= 2;
    }
    if (p.activate) {
        sum = gemm16_activation(sum, p.f);
    }
    if (p.residual != NULL) {
        sum += __bfloat162float(((const __nv_bfloat16 *)p.residual)[at]);
    }
    if (p.out_dtype == NN_F32) {
        ((float *)p.out)[at] = sum;
    } else {
        ((__nv_bfloat16 *)p.out)[at] = __float2bfloat16(sum);
    }
}

static __device__ float element(const void *matrix, size_t row, size_t k, size_t rows, size_t K) {
    bool inside = row < rows && k < K;
    return inside ? __bfloat162float(((const __nv_bfloat16 *)matrix)[row * K + k]) : 0.0f;
}

/*
 * Step 1: lab 04's tile in shared memory, on bf16. Right, and slow: it multiplies on the CUDA
 * cores.
 *
 * Mapping: a block of 16 x 16 threads computes 16 x 16 results, one a thread; blocks go along N
 * first.
 * Bytes: each element that is read from global memory serves 16 products, each that is read from
 * shared memory one.
 */
static __global__ void gemm16_v1_tile_kernel(struct gemm16_problem p, size_t tiles_n) {
    __shared__ float in[TILE][TILE + 1], weight[TILE][TILE + 1];
    size_t m0 = blockIdx.x / tiles_n * TILE, n0 = blockIdx.x % tiles_n * TILE;
    size_t m = m0 + threadIdx.y, n = n0 + threadIdx.x;
    float sum = 0.0f;
    for (size_t k = 0; k < p.K; k += TILE) {
        in[threadIdx.y][threadIdx.x] = element(p.in, m, k + threadIdx.x, p.M, p.K);
        weight[threadIdx.y][threadIdx.x] =
            element(p.weight, n0 + threadIdx.y, k + threadIdx.x, p.N, p.K);
        __syncthreads();
        for (int i = 0; i < TILE; i++) {
            sum += in[threadIdx.y][i] * weight[threadIdx.x][i];
        }
        __syncthreads();
    }
    store(p, m, n, sum);
}

static enum status gemm16_v1_tile(const struct gemm16_problem *problem, void *workspace,
                                  device_stream stream, struct error *error) {
    (void)workspace;
    size_t tiles_n = (problem->N + TILE - 1) / TILE;
    size_t tiles = (problem->M + TILE - 1) / TILE * tiles_n;
    if (tiles > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "gemm16: %zu tiles, a launch takes %d",
                         tiles, INT_MAX);
    }
    gemm16_v1_tile_kernel<<<(unsigned)tiles, dim3(TILE, TILE), 0, stream>>>(*problem, tiles_n);
    return device_launched("gemm16_v1_tile", error);
}

/*
 * The steps the bench compares, in the order you wrote them; the last is your best.
 * Keep a step when you write the next one, and the bench shows what each one gained.
 */
const struct gemm16_step *gemm16_ladder(size_t *count) {
    static const struct gemm16_step steps[] = {
        {"v1_tile", gemm16_v1_tile},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

/* What the lab does not ask for, and what no gemm16() takes. */
static enum status check(const struct gemm16_problem *p, struct error *error) {
    const size_t sizes[] = {p->M, p->N, p->K};
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > GEMM16_MAX_SIZE) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "gemm16: %c = %zu is above %zu",
                             "MNK"[i], sizes[i], GEMM16_MAX_SIZE);
        }
    }
    if (p->activate && ((int)p->f < NN_GELU || (int)p->f > NN_RELU)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: f = %d is none of enum nn_activation", (int)p->f);
    }
    if (p->gate && (p->N % 2 != 0 || p->activate || p->residual != NULL)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: a gate needs an even N, not %zu, and neither f nor residual",
                         p->N);
    }
    bool is_asked_for = p->dtype == NN_BF16 &&
                        (p->out_dtype == NN_BF16 || p->out_dtype == NN_F32) &&
                        !p->in_is_transposed && !p->weight_is_transposed && !p->bias_is_float &&
                        !p->residual_is_float;
    return is_asked_for ? STATUS_OK
                        : error_set(error, STATUS_UNSUPPORTED,
                                    "gemm16: this one multiplies bf16 matrices, not transposed, "
                                    "with bias and residual in bf16");
}

/* What the models and the grader call: checks, then the last step of the table. */
enum status gemm16(const struct gemm16_problem *problem, void *workspace, device_stream stream,
                   struct error *error) {
    size_t count;
    enum status status = check(problem, error);
    if (status != STATUS_OK || problem->M == 0 || problem->N == 0) {
        return status; /* a grid without blocks cannot be launched */
    }
    const struct gemm16_step *steps = gemm16_ladder(&count);
    return steps[count - 1].run(problem, workspace, stream, error);
}
