/**
 * @file clip.cu
 * @brief The norm of all gradients, and by what they are to be scaled down.
 *
 * 1024 blocks of 256 threads sum up squares, a thread every 262,144th vector of 16 bytes, four of
 * them on their way at once; one block then adds the blocks' sums. Which thread has which numbers
 * depends on their count alone. The result stays on the device, where AdamW reads it: nobody waits.
 * Bytes: the gradient once. FLOPs: 2 a number.
 */
#include "labs/11_training/given/parts.cuh"

namespace {

constexpr int THREADS = 256;

constexpr int L = 4, TOGETHER = 4; /* numbers of a vector, vectors on their way */

__device__ __forceinline__ void add_squares(float (&sum)[L], const float (&x)[L]) {
#pragma unroll
    for (int j = 0; j < L; j++) {
        sum[j] += x[j] * x[j];
    }
}

__global__ void __launch_bounds__(THREADS)
    sum_squares(float *parts, const float *gradient, size_t count, bool vector) {
    size_t stride = (size_t)gridDim.x * THREADS * L;
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * L;
    float sum[L] = {}, x[TOGETHER][L];
    for (; vector && i + (TOGETHER - 1) * stride + L <= count; i += TOGETHER * stride) {
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) { /* no branch lies between them, which would wait */
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
        parts[blockIdx.x] = all;
    }
}

__global__ void __launch_bounds__(GIVEN_CLIP_PARTS)
    finish_norm(float *scale, float *norm, const float *parts, float most) {
    float all = sqrtf(block_sum<GIVEN_CLIP_PARTS>(parts[threadIdx.x]));
    if (threadIdx.x == 0) {
        *norm = all;
        *scale = most > 0.0f && all > most ? most / all : 1.0f;
    }
}

} // namespace

enum status given_clip(const struct given_call *call, float *scale, float *norm,
                       const float *gradient, size_t count, float most, float *parts) {
    sum_squares<<<GIVEN_CLIP_PARTS, THREADS, 0, call->stream>>>(parts, gradient, count,
                                                                whole(0, gradient));
    enum status status = device_launched("sum_squares", call->error);
    if (status != STATUS_OK) {
        return status;
    }
    finish_norm<<<1, GIVEN_CLIP_PARTS, 0, call->stream>>>(scale, norm, parts, most);
    return device_launched("finish_norm", call->error);
}
