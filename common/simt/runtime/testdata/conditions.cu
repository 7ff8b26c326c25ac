#include "common/simt/runtime/testdata/conditions.h"

static __global__ void count_down(cudaGraphConditionalHandle handle, int *n) {
    *n -= 1;
    cudaGraphSetConditional(handle, *n > 0);
}

static __global__ void stop_at_zero(cudaGraphConditionalHandle handle, int *n) {
    *n -= 1;
    if (*n == 0) {
        cudaGraphSetConditional(handle, 0);
    }
}

static __global__ void choose(cudaGraphConditionalHandle handle, const int *n) {
    cudaGraphSetConditional(handle, *n);
}

static __global__ void add(int *to, int amount) {
    *to += amount;
}

static __global__ void set_by_all(cudaGraphConditionalHandle handle) {
    cudaGraphSetConditional(handle, blockIdx.x);
}

const void *kernel_count_down(void) {
    return (const void *)count_down;
}

const void *kernel_stop_at_zero(void) {
    return (const void *)stop_at_zero;
}

const void *kernel_choose(void) {
    return (const void *)choose;
}

const void *kernel_add(void) {
    return (const void *)add;
}

const void *kernel_set_by_all(void) {
    return (const void *)set_by_all;
}
