/**
 * @file gemm16_parts.h
 * @brief What the files of gemm16 share, on the host and on the device.
 */
#ifndef WARPBOOK_COMMON_GEMM16_GEMM16_PARTS_H_
#define WARPBOOK_COMMON_GEMM16_GEMM16_PARTS_H_

#include "common/gemm16/gemm16.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is done with the sums, as kernels take it. */
struct gemm16_finish {
    const void *bias, *residual; /**< or NULL */
    void *out;
    size_t M, N;
    int activation; /**< of enum nn_activation; -1: none */
    bool out_is_float, bias_is_float, residual_is_float;
    bool vector; /**< eight columns are whole 16-byte pieces of bias, residual and out */
};

/** The GPU that a plan is made for. */
struct gemm16_gpu {
    int major;           /**< compute capability */
    int multiprocessors; /**< SMs */
    size_t shared_bytes; /**< of a block */
};

/** @return the epilogue of a checked problem. */
struct gemm16_finish gemm16_finish_of(const struct gemm16_problem *problem);

/** By mma.sync, from compute capability 8.0 on: any problem that gemm16() takes. */
MUST_CHECK enum status gemm16_tile(const struct gemm16_problem *problem,
                                   const struct gemm16_gpu *gpu, void *workspace,
                                   device_stream stream, struct error *error);

/**
 * @return whether there is code of gemm16_hopper() for this GPU, and it takes the problem: rows of
 *         in and weight are whole 16-byte pieces, aligned, and K is not 0
 */
bool gemm16_hopper_can(const struct gemm16_problem *problem, const struct gemm16_gpu *gpu);

/** @return whether it is then the faster one: enough tiles for all multiprocessors. */
bool gemm16_hopper_is_faster(const struct gemm16_problem *problem, const struct gemm16_gpu *gpu);

/** A kernel for Hopper. */
struct gemm16_hopper_tile {
    size_t rows, columns; /**< of a tile */
    bool turns;           /**< two groups of warps take turns at tiles, else share one */
    double slowness;      /**< time of a product in it, relative to the best */
    double finish[3]; /**< time of a tile's results, in steps of K: plain, residual, activation */
};

/** @return the kernels for Hopper. */
const struct gemm16_hopper_tile *gemm16_hopper_tiles(int *count);

/**
 * By wgmma, on compute capability 9.0: what gemm16_hopper_can() allows.
 *
 * @param tile index of the kernel; -1: the one that should be the fastest
 */
MUST_CHECK enum status gemm16_hopper(const struct gemm16_problem *problem,
                                     const struct gemm16_gpu *gpu, int tile, device_stream stream,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
