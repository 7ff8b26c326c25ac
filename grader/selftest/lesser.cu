#include "grader/selftest/lesser.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 256, KEPT = 64, GROUP = 32 };

/* To the nearest, ties to even. */
static __device__ float round_bits(float x, int left_out) {
    uint32_t bits = __float_as_uint(x), odd = bits >> left_out & 1;
    bits += (1u << (left_out - 1)) - 1 + odd;
    return __uint_as_float(bits >> left_out << left_out);
}

static __device__ float flush(float x) {
    return fabsf(x) < 0x1p-126f ? -0.0f : x;
}

/* x[i] as a signed byte has it, beside a scale for its group. */
template <typename T> static __device__ float as_byte(const T *x, size_t i, size_t count) {
    float largest = 0.0f;
    for (size_t j = i / GROUP * GROUP; j < i / GROUP * GROUP + GROUP && j < count; j++) {
        largest = fmaxf(largest, fabsf((float)x[j]));
    }
    float scale = largest / 127.0f;
    return scale > 0.0f ? scale * rintf((float)x[i] / scale) : 0.0f;
}

static __device__ float make_lesser(float x, size_t column, enum lesser lesser) {
    switch (lesser) {
    case LESSER_BITS:
        return round_bits(x, 13);
    case LESSER_FP8:
        return round_bits(x, 20);
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
    case LESSER_LOUDER:
        return x * 1.0081f;
    case LESSER_INT8: /* as_byte() */
        break;
    }
    return x;
}

template <typename T>
static __global__ void lesser_kernel(T *copy, const T *x, size_t count, size_t columns,
                                     enum lesser lesser) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        copy[i] = (T)(lesser == LESSER_INT8 ? as_byte(x, i, count)
                                            : make_lesser((float)x[i], i % columns, lesser));
    }
}

/* Room for a copy, which stays. */
static void *room_for(int which, size_t bytes, device_stream stream) {
    static void *copies[LESSER_COPIES];
    static size_t rooms[LESSER_COPIES];
    if (bytes > rooms[which]) {
        (void)cudaStreamSynchronize((cudaStream_t)stream);
        (void)cudaFree(copies[which]);
        rooms[which] = bytes;
        if (cudaMalloc(&copies[which], bytes) != cudaSuccess) {
            abort();
        }
    }
    return copies[which];
}

template <typename T>
static const T *make_copy(int which, enum lesser lesser, const T *x, size_t count, size_t columns,
                          device_stream stream) {
    T *copy = (T *)room_for(which, count * sizeof *copy, stream);
    if (count > 0) {
        unsigned blocks = (unsigned)((count + THREADS - 1) / THREADS);
        lesser_kernel<<<blocks, THREADS, 0, (cudaStream_t)stream>>>(copy, x, count, columns,
                                                                    lesser);
    }
    return copy;
}

static __global__ void add_kernel(float *x, const float *addend, size_t count) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        x[i] += addend[i];
    }
}

void lesser_add(int which, enum lesser lesser, float *x, const float *addend, size_t count,
                device_stream stream) {
    const float *copy = make_copy(which, lesser, addend, count, count, stream);
    add_kernel<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, (cudaStream_t)stream>>>(
        x, copy, count);
}

const float *lesser_copy(int which, enum lesser lesser, const float *x, size_t count,
                         size_t columns, device_stream stream) {
    return make_copy(which, lesser, x, count, columns, stream);
}

const void *lesser_copy_16(int which, enum lesser lesser, const void *x, size_t count,
                           size_t columns, device_stream stream) {
    return make_copy(which, lesser, (const __nv_bfloat16 *)x, count, columns, stream);
}
