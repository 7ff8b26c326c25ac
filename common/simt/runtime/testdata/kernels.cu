#include "common/simt/runtime/testdata/kernels.h"

#include <cassert>
#include <cstdio>

__constant__ int table[8];
__device__ int counter = 5;
__managed__ int managed_value = 7;

static __global__ void scale(int *out, const int *in, int factor, int offset, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = in[i] * factor + offset;
    }
}

static __global__ void mix(double *out, char c, struct mixed m, long long tail) {
    out[0] = c + 1000 * m.d + m.s[0] + m.s[1] + m.s[2] + tail;
}

static __global__ void count_threads(unsigned *sum) {
    atomicAdd(sum, 1);
}

static __global__ void shared_sum(int *out, const int *in) {
    extern __shared__ int part[];
    part[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            part[threadIdx.x] += part[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[0] = part[0];
    }
}

static __global__ void print() {
    printf("thread %d of %d\n", threadIdx.x, blockDim.x);
}

static __global__ void symbols(int *out) {
    out[threadIdx.x] = table[threadIdx.x] + counter;
}

static __global__ void managed(int add) {
    managed_value = managed_value * 2 + add;
}

static __global__ void __launch_bounds__(128) bounded(int *out) {
    out[threadIdx.x] = 1;
}

static __global__ void static_shared(int *out) {
    __shared__ int part[1024];
    part[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

static __global__ void out_of_bounds(int *out, int count) {
    out[count + threadIdx.x] = 1;
}

static __global__ void check_positive(int value) {
    assert(value > 0);
}

static __global__ void trap() {
    __trap();
}

static __global__ void endless(int *flag) {
    while (atomicAdd(flag, 0) == 0) {
    }
}

static __global__ void video(int *out) {
    int sum = 0;
    asm volatile("vadd.s32.s32.s32 %0, %1, 1;" : "=r"(sum) : "r"((int)threadIdx.x));
    out[threadIdx.x] = sum;
}

void launch_scale(int *d_out, const int *d_in, int factor, int offset, int count, unsigned grid,
                  unsigned block, cudaStream_t stream) {
    scale<<<grid, block, 0, stream>>>(d_out, d_in, factor, offset, count);
}

void launch_mixed(double *d_out, char c, struct mixed mixed, long long tail) {
    mix<<<1, 1>>>(d_out, c, mixed, tail);
}

void launch_count(unsigned *d_sum, unsigned grid, unsigned block) {
    count_threads<<<grid, block>>>(d_sum);
}

void launch_shared_sum(int *d_out, const int *d_in, size_t dynamic_bytes) {
    shared_sum<<<1, 256, dynamic_bytes>>>(d_out, d_in);
}

void launch_print(int threads) {
    print<<<1, threads>>>();
}

void launch_symbols(int *d_out) {
    symbols<<<1, 8>>>(d_out);
}

void launch_managed(int add) {
    managed<<<1, 1>>>(add);
}

void launch_out_of_bounds(int *d_out, int count) {
    out_of_bounds<<<1, 1>>>(d_out, count);
}

void launch_assert(int value) {
    check_positive<<<1, 1>>>(value);
}

void launch_trap(void) {
    trap<<<1, 1>>>();
}

void launch_endless(int *d_flag) {
    endless<<<1, 1>>>(d_flag);
}

void launch_video(int *d_out) {
    video<<<1, 1>>>(d_out);
}

const void *kernel_scale(void) {
    return (const void *)scale;
}

const void *kernel_shared_sum(void) {
    return (const void *)shared_sum;
}

const void *kernel_bounded(void) {
    return (const void *)bounded;
}

const void *kernel_static_shared(void) {
    return (const void *)static_shared;
}

const void *symbol_table(void) {
    return table;
}

const void *symbol_counter(void) {
    return &counter;
}

int managed_get(void) {
    return managed_value;
}

void managed_set(int value) {
    managed_value = value;
}
