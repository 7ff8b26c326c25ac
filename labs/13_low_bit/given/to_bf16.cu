#include "labs/13_low_bit/given/to_bf16.h"

#include <cuda_bf16.h>

enum { THREADS = 256 };

static __global__ void to_bf16_kernel(__nv_bfloat16 *to, const float *from, size_t count) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        to[i] = __float2bfloat16_rn(from[i]);
    }
}

enum status low_bit_to_bf16(void *to, const float *from, size_t count, device_stream stream,
                            struct error *error) {
    if (count == 0) {
        return STATUS_OK;
    }
    unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
    to_bf16_kernel<<<blocks, THREADS, 0, stream>>>((__nv_bfloat16 *)to, from, count);
    return device_launched("to_bf16", error);
}
