/**
 * @file parts.cuh
 * @brief What several steps share: 16 bytes as elements, sums over lanes, how wide the GPU is.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_PARTS_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_PARTS_CUH_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/device/tensor.cuh"
#include "labs/11_training/training.h"

/* Elements of a vector of 16 bytes. */
template <typename E> inline constexpr int LANES = 16 / (int)sizeof(E);

static __device__ __forceinline__ void unpack(uint4 bits, float (&x)[4]) {
    x[0] = __uint_as_float(bits.x);
    x[1] = __uint_as_float(bits.y);
    x[2] = __uint_as_float(bits.z);
    x[3] = __uint_as_float(bits.w);
}

/* Of bf16, which are floats' upper halves; a word's lower half comes first. */
static __device__ __forceinline__ void unpack(uint4 bits, float (&x)[8]) {
    const unsigned words[] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(words[i] << 16);
        x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

static __device__ __forceinline__ uint4 pack_vector(const float (&x)[4]) {
    return make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                      __float_as_uint(x[3]));
}

static __device__ __forceinline__ uint4 pack_vector(const float (&x)[8]) {
    const __nv_bfloat16 type = __nv_bfloat16();
    return make_uint4(pack(x[0], x[1], type), pack(x[2], x[3], type), pack(x[4], x[5], type),
                      pack(x[6], x[7], type));
}

/* Of GROUP neighbouring lanes, in each of them, always added in the same order. Every lane of the
   warp must come here. */
template <int GROUP> static __device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
    for (int offset = GROUP / 2; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(~0u, x, offset);
    }
    return x;
}

/* What decides between tiles. */
struct gpu_limits {
    int multiprocessors, major;
    size_t shared_bytes; /* of a block */
};

static inline int gpu_attribute(cudaDeviceAttr attribute) {
    int device = 0, value = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
        return 0; /* the launch reports it */
    }
    return value;
}

static inline struct gpu_limits gpu_limits() {
    struct gpu_limits gpu;
    gpu.multiprocessors = gpu_attribute(cudaDevAttrMultiProcessorCount);
    gpu.major = gpu_attribute(cudaDevAttrComputeCapabilityMajor);
    gpu.shared_bytes = (size_t)gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return gpu;
}

/* Blocks as a grid has them. @return STATUS_INVALID_ARGUMENT: more than there can be */
static inline enum status count_blocks(const char *what, size_t count, unsigned *blocks,
                                       struct error *error) {
    if (count > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s: %zu blocks are too many", what,
                         count);
    }
    *blocks = (unsigned)count;
    return STATUS_OK;
}

#endif
