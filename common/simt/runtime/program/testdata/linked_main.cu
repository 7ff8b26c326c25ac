// One half of a program of two files; the other is linked_maker.cu. `linked` prints results,
// `linked beyond` overruns an array in a function of the other file.
#include "common/simt/runtime/program/testdata/linked.h"

#include <cstdio>

static __device__ int own = 3;

static __device__ int mine(int x) {
    return x + own;
}

__global__ void calls(int *out) {
    int t = threadIdx.x;
    out[t] = twice(t) + counter + weights[t] + operations[t % 2](10) + mine(100) + add<1000>(0);
    if (t == 0) {
        printf("main %d\n", managed);
    }
}

__global__ void overruns(int *out) {
    store_beyond(out, 4);
}

static void print(int *d_out) {
    int out[4] = {0};
    cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
}

int main(int argc, char **argv) {
    int *d_out, value = 7;
    (void)argv;
    cudaMalloc((void **)&d_out, 4 * sizeof(int));
    if (argc > 1) {
        overruns<<<1, 1>>>(d_out);
        printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
        return 0;
    }
    managed = 11;
    calls<<<1, 4>>>(d_out);
    print(d_out);
    cudaMemcpyToSymbol(counter, &value, sizeof value); // of the other file
    launch_other(d_out);
    print(d_out);
    cudaFree(d_out);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}
