/**
 * @file elements.cuh
 * @brief Device code of wrong submissions: elements of a tensor whose type is known at run time.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_ELEMENTS_CUH_
#define WARPBOOK_GRADER_SELFTEST_ELEMENTS_CUH_

#include "common/cuda/convert.cuh"
#include "common/nn/dtype.h"

static __device__ float load(const void *tensor, size_t index, enum nn_dtype dtype) {
    return dtype == NN_F32   ? ((const float *)tensor)[index]
           : dtype == NN_F16 ? to_float(((const __half *)tensor)[index])
                             : to_float(((const __nv_bfloat16 *)tensor)[index]);
}

static __device__ void store(void *tensor, size_t index, float x, enum nn_dtype dtype) {
    if (dtype == NN_F32) {
        ((float *)tensor)[index] = x;
    } else if (dtype == NN_F16) {
        store_rounded((__half *)tensor + index, x);
    } else {
        store_rounded((__nv_bfloat16 *)tensor + index, x);
    }
}

#endif
