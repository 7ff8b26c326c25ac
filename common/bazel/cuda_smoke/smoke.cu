#include "common/bazel/cuda_smoke/smoke.h"

#include <cuda_runtime.h>

static __global__ void write_value(int *out) {
    *out = SMOKE_VALUE;
}

extern "C" int smoke_launch(int *value) {
    int *d_out = NULL;
    cudaError_t error = cudaMalloc((void **)&d_out, sizeof *d_out);
    if (error != cudaSuccess) {
        return error;
    }
    write_value<<<1, 1>>>(d_out);
    error = cudaGetLastError();
    if (error == cudaSuccess) {
        error = cudaMemcpy(value, d_out, sizeof *value, cudaMemcpyDeviceToHost);
    }
    cudaFree(d_out);
    return error;
}
