/**
 * @file gemm16_internal.h
 * @brief What the files of gemm16 share: the epilogue's parameters, and the kernels' launchers.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_INTERNAL_H_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_INTERNAL_H_

#include "labs/12_tensor_cores/tensor_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters of the epilogue. */
struct gemm16_epilogue {
    const void *bias, *residual; /**< or NULL */
    void *out;
    size_t M, N;
    int activation; /**< of enum nn_activation; -1: none */
    bool out_is_float, bias_is_float, residual_is_float;
    bool gate;   /**< SiLU gate: pairs of columns give one of out, which has N / 2 */
    bool vector; /**< eight columns are whole 16-byte pieces of bias, residual and out */
};

/** The GPU that a plan is made for. */
struct gemm16_gpu {
    int major;           /**< compute capability */
    int multiprocessors; /**< SMs */
    size_t shared_bytes; /**< of a block */
};

/** @return the GPU in use, as this thread's calls see it. */
struct gemm16_gpu gemm16_gpu_of_this_thread(void);

/** @return the epilogue of a checked problem. */
struct gemm16_epilogue gemm16_epilogue_of(const struct gemm16_problem *problem);

/** @return whether rows of in and weight are whole 16-byte pieces, aligned. */
bool gemm16_has_whole_pieces(const struct gemm16_problem *problem);

/**
 * The second kernel of split-K: adds the partial sums in the order of the splits; then the
 * epilogue.
 *
 * @param partial device memory, (splits, split_rows, N), 32-byte aligned
 * @param split_rows at least M
 */
MUST_CHECK enum status gemm16_split_k_reduce(const struct gemm16_problem *problem,
                                             const float *partial, size_t splits, size_t split_rows,
                                             device_stream stream, struct error *error);

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

/** A kernel for Hopper, and its measured times (gemm16_hopper.cu). */
struct gemm16_hopper_tile {
    size_t rows, columns; /**< of the tiles of a cluster together */
    int blocks;           /**< of a cluster */
    int split;            /**< those that share K; then the tile is the same for all blocks */
    double step;          /**< time of a step of K of a tile, us */
    double epilogue[9];   /**< the rest of a tile's time, us, for each enum finish; 0: no kernel */
};

/** @return the kernels for Hopper that there are for such factors. */
const struct gemm16_hopper_tile *gemm16_hopper_tiles(const struct gemm16_problem *problem,
                                                     int *count);

/** @return the index of the kernel that should be the fastest; -1: the one for everything else. */
int gemm16_hopper_choice(const struct gemm16_problem *problem, const struct gemm16_gpu *gpu);

/**
 * By wgmma, on compute capability 9.0: what gemm16_hopper_can() allows.
 *
 * @param tile index of the kernel; -1: the one that should be the fastest
 * @param splits of K: at most that many, fewer where the workspace has no room; 0: as many as
 * should be the fastest
 */
MUST_CHECK enum status gemm16_hopper(const struct gemm16_problem *problem,
                                     const struct gemm16_gpu *gpu, int tile, size_t splits,
                                     void *workspace, device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
