/* Launches each kernel, the first one twice: under Nsight Compute for the recorded export, on simt
 * for comparison. */
#include <stdio.h>

#include <cuda_runtime_api.h>

#include "common/simt/nsight/testdata/known.h"

int main(void) {
    float *d_in = NULL, *d_out = NULL;
    if (cudaMalloc((void **)&d_in, KNOWN_COUNT * sizeof(float)) != cudaSuccess ||
        cudaMalloc((void **)&d_out, KNOWN_COUNT * sizeof(float)) != cudaSuccess ||
        cudaMemset(d_in, 0, KNOWN_COUNT * sizeof(float)) != cudaSuccess) {
        fprintf(stderr, "known: no device memory\n");
        return 1;
    }
    known_strided(d_out, d_in);
    known_column(d_out, d_in);
    known_mixed(d_out, d_in);
    known_scaled(d_out, d_in);
    known_strided(d_out, d_in);
    cudaError_t result = cudaDeviceSynchronize();
    cudaFree(d_in);
    cudaFree(d_out);
    printf("known: %s\n", cudaGetErrorString(result));
    return result == cudaSuccess ? 0 : 1;
}
