#include "common/device/testdata/test_kernels.h"

#include <cuda_runtime.h>

static __global__ void add(float *x, float value, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        x[i] += value;
    }
}

extern "C" void test_add(float *x, float value, size_t count, unsigned block,
                         device_stream stream) {
    unsigned blocks = (unsigned)((count + block - 1) / block);
    add<<<blocks, block, 0, stream>>>(x, value, count);
}
