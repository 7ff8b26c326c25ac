/**
 * @file baseline.cu
 * @brief What lab 05's starter does: the baseline of its speedups.
 *
 * Kept here, so that the baseline stays what it is when the lab's file changes.
 */
#include "grader/05_layernorm_softmax/baseline.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

enum { BLOCK = 128, MOST_BLOCKS = 1 << 20 };

/* From storage to arithmetic, and back with one rounding. */
static __device__ float value_of(float x) {
    return x;
}
static __device__ float value_of(__half x) {
    return __half2float(x);
}
static __device__ float value_of(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
static __device__ void store(float *to, float x) {
    *to = x;
}
static __device__ void store(__half *to, float x) {
    *to = __float2half_rn(x);
}
static __device__ void store(__nv_bfloat16 *to, float x) {
    *to = __float2bfloat16_rn(x);
}

template <typename T>
static __device__ void layernorm_row(const struct rows_problem &p, const T *x, T *y) {
    const T *weight = (const T *)p.weight, *bias = (const T *)p.bias;
    float sum = 0.0f, squares = 0.0f;
    for (size_t c = 0; c < p.C; c++) {
        sum += value_of(x[c]);
    }
    float mean = sum / (float)p.C;
    for (size_t c = 0; c < p.C; c++) {
        float d = value_of(x[c]) - mean;
        squares += d * d;
    }
    float scale = 1.0f / sqrtf(squares / (float)p.C + p.eps);
    for (size_t c = 0; c < p.C; c++) {
        store(y + c, (value_of(x[c]) - mean) * scale * value_of(weight[c]) + value_of(bias[c]));
    }
}

template <typename T>
static __device__ void rmsnorm_row(const struct rows_problem &p, const T *x, T *y) {
    const T *weight = (const T *)p.weight;
    float squares = 0.0f;
    for (size_t c = 0; c < p.C; c++) {
        squares += value_of(x[c]) * value_of(x[c]);
    }
    float scale = 1.0f / sqrtf(squares / (float)p.C + p.eps);
    for (size_t c = 0; c < p.C; c++) {
        store(y + c, value_of(x[c]) * scale * value_of(weight[c]));
    }
}

/* An element, -inf where the mask hides it. */
template <typename T>
static __device__ float seen(const struct rows_problem &p, const T *x, size_t row, size_t c) {
    bool hidden = p.mask != NULL && p.mask[row / p.rows_a_mask * p.C + c] == 0;
    return hidden ? -INFINITY : value_of(x[c]);
}

template <typename T>
static __device__ void softmax_row(const struct rows_problem &p, const T *x, T *y, size_t row) {
    float largest = -INFINITY, sum = 0.0f;
    for (size_t c = 0; c < p.C; c++) {
        largest = fmaxf(largest, seen(p, x, row, c));
    }
    float shift = largest == -INFINITY ? 0.0f : largest;
    for (size_t c = 0; c < p.C; c++) {
        sum += expf(seen(p, x, row, c) - shift);
    }
    for (size_t c = 0; c < p.C; c++) {
        store(y + c, sum == 0.0f ? 0.0f : expf(seen(p, x, row, c) - shift) / sum);
    }
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK) rows_baseline_kernel(struct rows_problem p) {
    for (size_t row = (size_t)blockIdx.x * BLOCK + threadIdx.x; row < p.rows;
         row += (size_t)gridDim.x * BLOCK) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        if (p.op == ROWS_LAYERNORM) {
            layernorm_row(p, x, y);
        } else if (p.op == ROWS_RMSNORM) {
            rmsnorm_row(p, x, y);
        } else {
            softmax_row(p, x, y, row);
        }
    }
}

enum status rows_baseline(const struct rows_problem *problem, void *workspace, device_stream stream,
                          struct error *error) {
    (void)workspace;
    if (problem->rows == 0) {
        return STATUS_OK;
    }
    size_t blocks = (problem->rows + BLOCK - 1) / BLOCK;
    unsigned grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    if (problem->type == NN_F32) {
        rows_baseline_kernel<float><<<grid, BLOCK, 0, stream>>>(*problem);
    } else if (problem->type == NN_F16) {
        rows_baseline_kernel<__half><<<grid, BLOCK, 0, stream>>>(*problem);
    } else {
        rows_baseline_kernel<__nv_bfloat16><<<grid, BLOCK, 0, stream>>>(*problem);
    }
    return device_launched("the baseline's kernel", error);
}
