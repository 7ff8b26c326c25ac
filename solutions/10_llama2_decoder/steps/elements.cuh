/**
 * @file elements.cuh
 * @brief Shared by this lab's kernels: SiLU, and the dispatch by type.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ELEMENTS_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ELEMENTS_CUH_

#include <stdint.h>

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/warp.cuh"
#include "common/nn/dtype.h"

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
