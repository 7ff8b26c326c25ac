/**
 * @file elements.cuh
 * @brief Elements of the three types, 16 bytes of them, and SiLU: what this lab's kernels share.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ELEMENTS_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ELEMENTS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "common/base/checked.h"
#include "common/device/chained.cuh"
#include "common/nn/dtype.h"

/* COUNT elements are 16 bytes. */
template <typename E> struct elements;

template <> struct elements<float> {
    static constexpr int COUNT = 4;

    static __device__ __forceinline__ float widen(float x) {
        return x;
    }
    static __device__ __forceinline__ float narrow(float x) {
        return x;
    }
    static __device__ __forceinline__ void unpack(float to[4], uint4 x) {
        to[0] = __uint_as_float(x.x), to[1] = __uint_as_float(x.y);
        to[2] = __uint_as_float(x.z), to[3] = __uint_as_float(x.w);
    }
};

template <> struct elements<__half> {
    static constexpr int COUNT = 8;

    static __device__ __forceinline__ float widen(__half x) {
        return __half2float(x);
    }
    static __device__ __forceinline__ __half narrow(float x) {
        return __float2half_rn(x);
    }
    static __device__ __forceinline__ void unpack(float to[8], uint4 x) {
        const __half2 *two = (const __half2 *)&x;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float2 both = __half22float2(two[i]);
            to[2 * i] = both.x, to[2 * i + 1] = both.y;
        }
    }
};

template <> struct elements<__nv_bfloat16> {
    static constexpr int COUNT = 8;

    static __device__ __forceinline__ float widen(__nv_bfloat16 x) {
        return __bfloat162float(x);
    }
    static __device__ __forceinline__ __nv_bfloat16 narrow(float x) {
        return __float2bfloat16_rn(x);
    }
    /* bf16 is the upper half of an fp32 number. */
    static __device__ __forceinline__ void unpack(float to[8], uint4 x) {
        const unsigned words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to[2 * i] = __uint_as_float(words[i] << 16);
            to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
        }
    }
};

/* 16 bytes of elements from floats, each rounded once. */
template <typename E> static __device__ __forceinline__ uint4 pack(const float *from) {
    uint4 x;
    E *to = (E *)&x;
#pragma unroll
    for (int i = 0; i < elements<E>::COUNT; i++) {
        to[i] = elements<E>::narrow(from[i]);
    }
    return x;
}

static __device__ __forceinline__ float silu_of(float x) {
    return x / (1.0f + expf(-x));
}

/* `call` with the type of the elements as E. */
#define FOR_ELEMENTS(dtype, call)       \
    do {                                \
        if ((dtype) == NN_F32) {        \
            typedef float E;            \
            call;                       \
        } else if ((dtype) == NN_F16) { \
            typedef __half E;           \
            call;                       \
        } else {                        \
            typedef __nv_bfloat16 E;    \
            call;                       \
        }                               \
    } while (0)

#endif
