#include "grader/selftest/lesser.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 256, KEPT = 64, BITS_LEFT_OUT = 13 };

/* To the nearest, ties to even. */
static __device__ float round_bits(float x) {
    uint32_t bits = __float_as_uint(x), odd = bits >> BITS_LEFT_OUT & 1;
    bits += (1u << (BITS_LEFT_OUT - 1)) - 1 + odd;
    return __uint_as_float(bits >> BITS_LEFT_OUT << BITS_LEFT_OUT);
}

static __device__ float flush(float x) {
    return fabsf(x) < 0x1p-126f ? -0.0f : x;
}

static __device__ float make_lesser(float x, size_t column, enum lesser lesser) {
    switch (lesser) {
    case LESSER_BITS:
        return round_bits(x);
    case LESSER_COLUMNS:
        return column % KEPT == KEPT - 1 ? 0.0f : x;
    case LESSER_BF16:
        return __bfloat162float(__float2bfloat16(x));
    case LESSER_FP16:
        return __half2float(__float2half(x));
    case LESSER_PRUNED:
        return fabsf(x) < 1.0f / KEPT ? 0.0f : x;
    case LESSER_FLUSHED:
        return flush(x);
    }
    return x;
}

static __global__ void lesser_kernel(float *copy, const float *x, size_t count, size_t columns,
                                     enum lesser lesser) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        copy[i] = make_lesser(x[i], i % columns, lesser);
    }
}

const float *lesser_copy(int which, enum lesser lesser, const float *x, size_t count,
                         size_t columns, device_stream stream) {
    static float *copies[LESSER_COPIES];
    static size_t rooms[LESSER_COPIES];
    if (count > rooms[which]) {
        (void)cudaStreamSynchronize((cudaStream_t)stream);
        (void)cudaFree(copies[which]);
        rooms[which] = count;
        if (cudaMalloc((void **)&copies[which], count * sizeof(float)) != cudaSuccess) {
            abort();
        }
    }
    if (count > 0) {
        unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
        lesser_kernel<<<blocks, THREADS, 0, (cudaStream_t)stream>>>(copies[which], x, count,
                                                                    columns, lesser);
    }
    return copies[which];
}
