/* PTX corpus: reductions over threads, warps and blocks, from templates. */
#include <stddef.h>

extern __shared__ float scratch[];

struct add {
    template <typename T> static __device__ T apply(T a, T b) {
        return a + b;
    }
};

struct largest {
    template <typename T> static __device__ T apply(T a, T b) {
        return a > b ? a : b;
    }
};

template <typename Op, typename T> __device__ T reduce_warp(T value) {
    for (int step = 16; step > 0; step /= 2) {
        value = Op::apply(value, __shfl_down_sync(0xffffffffu, value, step));
    }
    return value;
}

template <typename Op, typename T> __global__ void reduce_shuffle(const T *in, T *out, size_t n) {
    __shared__ T partial[32];
    T value = T();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        value = Op::apply(value, in[i]);
    }
    value = reduce_warp<Op>(value);
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = reduce_warp<Op>(threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : T());
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = value;
    }
}

template __global__ void reduce_shuffle<add, float>(const float *, float *, size_t);
template __global__ void reduce_shuffle<add, double>(const double *, double *, size_t);
template __global__ void reduce_shuffle<add, int>(const int *, int *, size_t);
template __global__ void reduce_shuffle<add, unsigned long long>(const unsigned long long *,
                                                                 unsigned long long *, size_t);
template __global__ void reduce_shuffle<largest, float>(const float *, float *, size_t);
template __global__ void reduce_shuffle<largest, long long>(const long long *, long long *, size_t);

/* The classic tree in dynamic shared memory. */
__global__ void __launch_bounds__(256, 2) reduce_tree(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    scratch[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            scratch[threadIdx.x] += scratch[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        atomicAdd(out, scratch[0]);
    }
}

__device__ unsigned int blocks_done;

/* The last block to finish adds up what the others left. */
__global__ void reduce_last_block(const float *in, float *partial, float *out, int n) {
    __shared__ bool last;
    float value = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        value += in[i];
    }
    value = reduce_warp<add>(value);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();
        last = atomicInc(&blocks_done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0.0f;
        for (unsigned b = 0; b < gridDim.x; b++) {
            sum += ((volatile float *)partial)[b];
        }
        *out = sum;
        blocks_done = 0;
    }
    if (__syncthreads_count(last) + __syncthreads_or(n) + __syncthreads_and(n) == -1) {
        __threadfence_system();
        __threadfence_block();
    }
}
