/**
 * @file operators_rows.cu
 * @brief Norms and softmax: one block of 256 threads a row.
 *
 * Each thread works on every 256th element of the row, the same ones in each pass,
 * so out may be in. A row is read two or three times; only the first time from
 * memory, then from cache.
 */
#include "common/cuda/block.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "labs/03_resident_weights/given/operators.h"

enum { BLOCK_THREADS = 256 };

static __global__ void layernorm(float *out, const float *in, const float *weight,
                                 const float *bias, size_t C, float eps) {
    dependent_launch_begin();
    const float *x = in + blockIdx.x * C;
    float *y = out + blockIdx.x * C;
    float sum = 0.0f;
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        sum += x[c];
    }
    float mean = block_sum<BLOCK_THREADS>(sum) / (float)C;
    float squares = 0.0f;
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        squares += (x[c] - mean) * (x[c] - mean);
    }
    float rstd = 1.0f / sqrtf(block_sum<BLOCK_THREADS>(squares) / (float)C + eps);
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        y[c] = (x[c] - mean) * rstd * weight[c] + bias[c];
    }
}

enum status launch_layernorm(float *out, const float *in, const float *weight, const float *bias,
                             size_t rows, size_t C, float eps, device_stream stream,
                             struct error *error) {
    if (rows * C == 0) {
        return STATUS_OK;
    }
    launch_dependent<layernorm>((unsigned)rows, BLOCK_THREADS, 0, stream, out, in, weight, bias, C,
                                eps);
    return device_launched("layernorm", error);
}

static __global__ void rmsnorm(float *out, const float *in, const float *weight, size_t C,
                               float eps) {
    dependent_launch_begin();
    const float *x = in + blockIdx.x * C;
    float *y = out + blockIdx.x * C;
    float squares = 0.0f;
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        squares += x[c] * x[c];
    }
    float rstd = 1.0f / sqrtf(block_sum<BLOCK_THREADS>(squares) / (float)C + eps);
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        y[c] = x[c] * rstd * weight[c];
    }
}

enum status launch_rmsnorm(float *out, const float *in, const float *weight, size_t rows, size_t C,
                           float eps, device_stream stream, struct error *error) {
    if (rows * C == 0) {
        return STATUS_OK;
    }
    launch_dependent<rmsnorm>((unsigned)rows, BLOCK_THREADS, 0, stream, out, in, weight, C, eps);
    return device_launched("rmsnorm", error);
}

/* A row of nothing but -inf becomes zeros. */
static __global__ void softmax(float *out, const float *in, size_t C) {
    dependent_launch_begin();
    const float *x = in + blockIdx.x * C;
    float *y = out + blockIdx.x * C;
    float largest = -INFINITY;
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        largest = fmaxf(largest, x[c]);
    }
    largest = block_max<BLOCK_THREADS>(largest);
    float shift = largest == -INFINITY ? 0.0f : largest;
    float sum = 0.0f;
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        sum += expf(x[c] - shift);
    }
    sum = block_sum<BLOCK_THREADS>(sum);
    for (size_t c = threadIdx.x; c < C; c += BLOCK_THREADS) {
        y[c] = sum == 0.0f ? 0.0f : expf(x[c] - shift) / sum;
    }
}

enum status launch_softmax(float *out, const float *in, size_t rows, size_t C, device_stream stream,
                           struct error *error) {
    if (rows * C == 0) {
        return STATUS_OK;
    }
    launch_dependent<softmax>((unsigned)rows, BLOCK_THREADS, 0, stream, out, in, C);
    return device_launched("softmax", error);
}
