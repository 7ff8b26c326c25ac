/**
 * @file convert.cuh
 * @brief fp16, bf16 and fp32: from storage to fp32 arithmetic and back, with one rounding to
 *        nearest even; single elements, pairs (32 bits) and vectors of 16 bytes.
 *
 * Every compute capability; each thread for itself. Where the type cannot be deduced, an unused
 * argument E() names it.
 */
#ifndef WARPBOOK_COMMON_CUDA_CONVERT_CUH_
#define WARPBOOK_COMMON_CUDA_CONVERT_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Host code: `call` for the type of stored elements, an enum nn_dtype; it names the type E. */
#define FOR_ELEMENT_TYPE(dtype, call)   \
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

/* ---- Single elements ---- */

static __device__ __forceinline__ float to_float(float x) {
    return x;
}

static __device__ __forceinline__ float to_float(__half x) {
    return __half2float(x);
}

static __device__ __forceinline__ float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}

template <typename E> static __device__ __forceinline__ E from_float(float x);

template <> __device__ __forceinline__ float from_float<float>(float x) {
    return x;
}

template <> __device__ __forceinline__ __half from_float<__half>(float x) {
    return __float2half_rn(x);
}

template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

/* *to = x, rounded to E. */
template <typename E> static __device__ __forceinline__ void store_rounded(E *to, float x) {
    *to = from_float<E>(x);
}

/* The fp32 number that x is once it has been stored as E. */
template <typename E> static __device__ __forceinline__ float rounded(float x, E) {
    return to_float(from_float<E>(x));
}

/* ---- Pairs ---- */

/* Two neighbours, rounded; the first one in the lower half. */
static __device__ __forceinline__ unsigned pack(float low, float high, __half) {
    __half2 both = __floats2half2_rn(low, high);
    return *(unsigned *)&both;
}

static __device__ __forceinline__ unsigned pack(float low, float high, __nv_bfloat16) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(unsigned *)&both;
}

static __device__ __forceinline__ float2 unpack(unsigned both, __half) {
    return __half22float2(*(__half2 *)&both);
}

/* bf16 is the upper half of an fp32 number. */
static __device__ __forceinline__ float2 unpack(unsigned both, __nv_bfloat16) {
    return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u));
}

/* ---- Vectors of 16 bytes ---- */

/* How many elements 16 bytes hold. */
template <typename E> inline constexpr int VECTOR_ELEMENTS = 16 / (int)sizeof(E);

/* x (4) = the elements of a vector. */
static __device__ __forceinline__ void unpack(uint4 vector, float *x, float) {
    x[0] = __uint_as_float(vector.x), x[1] = __uint_as_float(vector.y);
    x[2] = __uint_as_float(vector.z), x[3] = __uint_as_float(vector.w);
}

/* x (8) = the elements of a vector of a 16-bit type. */
template <typename E>
static __device__ __forceinline__ void unpack(uint4 vector, float *x, E type) {
    const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 both = unpack(words[i], type);
        x[2 * i] = both.x, x[2 * i + 1] = both.y;
    }
}

/* x (4) or (8) as a vector, rounded. */
static __device__ __forceinline__ uint4 pack(const float *x, float) {
    return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                      __float_as_uint(x[3]));
}

template <typename E> static __device__ __forceinline__ uint4 pack(const float *x, E type) {
    return make_uint4(pack(x[0], x[1], type), pack(x[2], x[3], type), pack(x[4], x[5], type),
                      pack(x[6], x[7], type));
}

#endif
