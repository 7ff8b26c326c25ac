/**
 * @file probe.cu
 * @brief The smallest kernel: it is compiled for the same GPUs as all others of the program.
 */
#include "common/device/probe.h"

#include <cuda_runtime.h>

static __global__ void do_nothing(void) {
}

extern "C" int device_probe(void) {
    do_nothing<<<1, 1>>>();
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

extern "C" int device_code(void) {
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)do_nothing);
    return error == cudaSuccess ? attributes.ptxVersion : 0;
}
