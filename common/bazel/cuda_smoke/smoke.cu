#include "common/bazel/cuda_smoke/smoke.h"

#include <cuda_runtime.h>

namespace {

const unsigned THREADS = 256;

/** Device memory of one call. */
struct buffers {
    float *d_x, *d_y;
    int *d_arch;
};

cudaError_t allocate(struct buffers *buffers, size_t n) {
    cudaError_t error = cudaMalloc((void **)&buffers->d_x, n * sizeof(float));
    if (error == cudaSuccess) {
        error = cudaMalloc((void **)&buffers->d_y, n * sizeof(float));
    }
    if (error == cudaSuccess) {
        error = cudaMalloc((void **)&buffers->d_arch, sizeof(int));
    }
    return error;
}

void release(struct buffers *buffers) {
    cudaFree(buffers->d_x);
    cudaFree(buffers->d_y);
    cudaFree(buffers->d_arch);
}

cudaError_t upload(const struct buffers *buffers, const float *x, const float *y, size_t n) {
    cudaError_t error = cudaMemcpy(buffers->d_x, x, n * sizeof *x, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) {
        error = cudaMemcpy(buffers->d_y, y, n * sizeof *y, cudaMemcpyHostToDevice);
    }
    return error;
}

cudaError_t download(const struct buffers *buffers, float *y, size_t n, int *arch) {
    cudaError_t error = cudaMemcpy(arch, buffers->d_arch, sizeof *arch, cudaMemcpyDeviceToHost);
    if (error == cudaSuccess) {
        error = cudaMemcpy(y, buffers->d_y, n * sizeof *y, cudaMemcpyDeviceToHost);
    }
    return error;
}

/** One thread per element. */
__global__ void axpy(const float *x, float *y, size_t n, int *arch) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += SMOKE_FACTOR * x[i];
    }
#ifdef __CUDA_ARCH__
    if (i == 0) {
        *arch = __CUDA_ARCH__;
    }
#endif
}

cudaError_t launch(const struct buffers *buffers, size_t n) {
    unsigned blocks = (unsigned)((n + THREADS - 1) / THREADS);
    axpy<<<blocks, THREADS>>>(buffers->d_x, buffers->d_y, n, buffers->d_arch);
    return cudaGetLastError();
}

} // namespace

extern "C" int smoke_axpy(const float *x, float *y, size_t n, int *arch) {
    struct buffers buffers = {};
    cudaError_t error = allocate(&buffers, n);
    if (error == cudaSuccess) {
        error = upload(&buffers, x, y, n);
    }
    if (error == cudaSuccess) {
        error = launch(&buffers, n);
    }
    if (error == cudaSuccess) {
        error = download(&buffers, y, n, arch);
    }
    release(&buffers);
    return error;
}
