// The other half: what linked_main.cu uses, and names that both have.
#include "common/simt/runtime/program/testdata/linked.h"

#include <cstdio>

__device__ int counter = 5;
__constant__ int weights[4] = {1, 2, 3, 4};
__managed__ int managed = 1;

static __device__ int own = 30;

static __device__ int mine(int x) {
    return x + own;
}

__device__ int twice(int x) {
    return 2 * x;
}

__device__ operation *operations[2] = {twice, mine};

__device__ void store_beyond(int *array, int count) {
    array[count] = 1; // FAULT
}

__global__ void other(int *out) {
    extern __shared__ int part[];
    part[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = part[3 - threadIdx.x] + counter + mine(200) + add<1000>(0);
    if (threadIdx.x == 0) {
        printf("maker %d\n", managed);
    }
}

void launch_other(int *d_out) {
    other<<<1, 4, 4 * sizeof(int)>>>(d_out);
}
