/*
 * Which code is there?
 *
 * nvcc compiles a kernel once for each GPU it was told of. In each of these copies __CUDA_ARCH__ is
 * another number: 750 for a T4, 900 for an H200. In code for the host it does not exist.
 *
 *   source    #if __CUDA_ARCH__ >= 800     copy for 7.5   old way
 *             new way                      copy for 9.0   new way
 *             #else
 *             old way                      GPU of 8.6, program with 7.5 alone: runs the old way
 *             #endif
 *
 * So the GPU's own number does not tell which way runs. If a kernel does nothing in old code, the
 * host must ask before the launch: cudaFuncGetAttributes(&attributes, kernel) fills in a struct
 * cudaFuncAttributes; its ptxVersion is __CUDA_ARCH__ / 10 of the copy that would run.
 */
#include "labs/00_warmups/warmups.h"

static __global__ void see(int *seen) {
#ifdef __CUDA_ARCH__
    *seen = __CUDA_ARCH__ / 10;
#endif
}

int w22_code_version(int *d_seen) {
    see<<<1, 1>>>(d_seen);
    struct cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, see);
    return error == cudaSuccess ? attributes.ptxVersion : 0;
}
