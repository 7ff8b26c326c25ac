/**
 * @file clip.cu
 * @brief The norm of all gradients, and the factor that clips it.
 *
 * 1024 blocks of 256 threads sum up squares, a thread every 262,144th vector of 16 bytes, four of
 * them in flight; one block then adds the blocks' sums. The elements of a thread depend on their
 * count alone. The result stays on the device, where AdamW reads it: the host does not wait.
 * Bytes: the gradient once. FLOPs: 2 a number.
 */
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int THREADS = 256;

constexpr int L = 4, TOGETHER = 4; /* elements of a vector, vectors in flight */

__device__ __forceinline__ void add_squares(float (&sum)[L], const float (&x)[L]) {
#pragma unroll
    for (int j = 0; j < L; j++) {
        sum[j] += x[j] * x[j];
    }
}

__global__ void __launch_bounds__(THREADS)
    sum_squares(float *partials, const float *gradient, size_t count, bool vector) {
    size_t stride = (size_t)gridDim.x * THREADS * L;
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * L;
    float sum[L] = {}, x[TOGETHER][L];
    for (; vector && i + (TOGETHER - 1) * stride + L <= count; i += TOGETHER * stride) {
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) { /* a branch between the loads would wait for them */
            load_whole(x[k], gradient + i + k * stride);
        }
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            add_squares(sum, x[k]);
        }
    }
    for (; i < count; i += stride) {
        load_some(x[0], gradient, i, count, vector);
        add_squares(sum, x[0]);
    }
    float all = block_sum<THREADS>((sum[0] + sum[1]) + (sum[2] + sum[3]));
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = all;
    }
}

__global__ void __launch_bounds__(GIVEN_CLIP_PARTIALS)
    combine_squares(float *scale, float *norm, const float *partials, float most) {
    float all = sqrtf(block_sum<GIVEN_CLIP_PARTIALS>(partials[threadIdx.x]));
    if (threadIdx.x == 0) {
        *norm = all;
        *scale = most > 0.0f && all > most ? most / all : 1.0f;
    }
}

} // namespace

enum status given_clip(const struct given_call *call, float *scale, float *norm,
                       const float *gradient, size_t count, float most, float *partials) {
    sum_squares<<<GIVEN_CLIP_PARTIALS, THREADS, 0, call->stream>>>(partials, gradient, count,
                                                                   whole(0, gradient));
    TRY(device_launched("sum_squares", call->error));
    combine_squares<<<1, GIVEN_CLIP_PARTIALS, 0, call->stream>>>(scale, norm, partials, most);
    return device_launched("combine_squares", call->error);
}
