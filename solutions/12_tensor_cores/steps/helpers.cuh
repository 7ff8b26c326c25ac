/**
 * @file helpers.cuh
 * @brief What the steps before v10 share: who takes a problem, and the launch of a block a tile.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HELPERS_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HELPERS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <limits.h>

#include "solutions/12_tensor_cores/steps/gemm16_internal.h"
#include "solutions/12_tensor_cores/steps/ladder.h"

/* An element type as a value, for a launcher that is a lambda. */
template <typename E_> struct element { typedef E_ E; };

/* LAUNCH(element<E>()) for the type of a problem's factors. */
template <typename LAUNCH>
static inline enum status for_element(enum nn_dtype dtype, LAUNCH launch) {
    return dtype == NN_F16 ? launch(element<__half>()) : launch(element<__nv_bfloat16>());
}

/* The number of tiles, rows x columns, of out. */
static inline enum status count_tiles(const struct gemm16_problem *p, size_t rows, size_t columns,
                                      unsigned *tiles, struct error *error) {
    size_t count = (p->M + rows - 1) / rows * ((p->N + columns - 1) / columns);
    if (count > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "gemm16: %zu x %zu results are more than one launch has blocks for", p->M,
                         p->N);
    }
    *tiles = (unsigned)count;
    return STATUS_OK;
}

/* Whether a step from v3 on takes a problem itself: no factor transposed, whole 16-byte pieces, and
   something to multiply. v1 takes the others. */
static inline bool has_plain_rows(const struct gemm16_problem *p) {
    return !p->in_is_transposed && !p->weight_is_transposed && gemm16_has_whole_pieces(p) &&
           p->K > 0;
}

/* Lets a kernel use more than 48 KiB of shared memory. */
template <auto KERNEL> static inline enum status allow_shared(size_t bytes, struct error *error) {
    static const cudaError_t code =
        cudaFuncSetAttribute(KERNEL, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    return code == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "gemm16: %zu bytes of shared memory: %s", bytes,
                           cudaGetErrorString(code));
}

#endif
