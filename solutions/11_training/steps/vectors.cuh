/**
 * @file vectors.cuh
 * @brief Shared by several steps: vectors of fp32 or bf16, and the limits of the GPU.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_VECTORS_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_VECTORS_CUH_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/async_copy.cuh"
#include "common/cuda/convert.cuh"
#include "common/cuda/gpu_limits.cuh"
#include "common/cuda/math.cuh"
#include "common/cuda/mma.cuh"
#include "common/cuda/warp.cuh"
#include "labs/11_training/training.h"

/* A vector of E from floats, each rounded once: E is fp32 for four, bf16 for eight. */
static __device__ __forceinline__ uint4 pack_vector(const float (&x)[4]) {
    return pack(x, float());
}

static __device__ __forceinline__ uint4 pack_vector(const float (&x)[8]) {
    return pack(x, __nv_bfloat16());
}

/* A vector's elements as floats. */
static __device__ __forceinline__ void unpack_vector(uint4 vector, float (&x)[4]) {
    unpack(vector, x, float());
}

static __device__ __forceinline__ void unpack_vector(uint4 vector, float (&x)[8]) {
    unpack(vector, x, __nv_bfloat16());
}

/* The number of blocks of a grid. @return STATUS_INVALID_ARGUMENT: more than there can be */
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
