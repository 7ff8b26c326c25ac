/**
 * @file elements.cuh
 * @brief Shared by this lab's kernels: SiLU, and the toolbox that they use.
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

#endif
