/**
 * @file few_rows.h
 * @brief v10's kernels for few rows of `in`, as a decoder has them: their time is that of reading
 *        the weights once.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_H_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_FEW_ROWS_H_

#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The most rows that are few. */
#define GEMM16_FEW_ROWS ((size_t)128)

/** A kernel for few rows. */
struct gemm16_few_shape {
    size_t rows;    /**< of `in` a block */
    size_t weights; /**< rows of weight a block */
    size_t k;       /**< elements of K that a block takes in one step */
};

/** @return whether gemm16_stream() and gemm16_few_rows() take the problem: at most
 *          GEMM16_FEW_ROWS rows, rows of in and weight are whole 16-byte pieces, aligned, no factor
 *          is transposed, and K is not 0 */
bool gemm16_few_rows_can(const struct gemm16_problem *problem);

/** @return whether gemm16_few_rows() takes the problem and should be faster than gemm16_tile() and
 *          gemm16_hopper() */
bool gemm16_few_rows_are_faster(const struct gemm16_problem *problem, const struct gemm16_gpu *gpu);

/** By one of the kernels below, from compute capability 8.0 on: the one that should be fastest. */
MUST_CHECK enum status gemm16_few_rows(const struct gemm16_problem *problem,
                                       const struct gemm16_gpu *gpu, device_stream stream,
                                       struct error *error);

/** @return the kernels of gemm16_stream(): weights go from memory straight into registers. */
const struct gemm16_few_shape *gemm16_stream_shapes(int *count);

/** From compute capability 8.0 on. @param shape index of the kernel */
MUST_CHECK enum status gemm16_stream(const struct gemm16_problem *problem, int shape,
                                     device_stream stream, struct error *error);

/** @return the kernels of gemm16_bulk(): weights come by the TMA. */
const struct gemm16_few_shape *gemm16_bulk_shapes(int *count);

/** @return whether there is code of gemm16_bulk() for this GPU, a Hopper, and gemm16_few_rows_can()
 */
bool gemm16_bulk_can(const struct gemm16_problem *problem, const struct gemm16_gpu *gpu);

/**
 * What gemm16_bulk_can() allows.
 *
 * @param shape index of the kernel
 * @param blocks of a cluster, which split K: 1 to 8
 */
MUST_CHECK enum status gemm16_bulk(const struct gemm16_problem *problem, int shape, unsigned blocks,
                                   device_stream stream, struct error *error);

/** @return the kernels of gemm16_skinny(): few columns a block. */
const struct gemm16_few_shape *gemm16_skinny_shapes(int *count);

/** What gemm16_bulk_can() allows. @param shape index of the kernel */
MUST_CHECK enum status gemm16_skinny(const struct gemm16_problem *problem, int shape,
                                     device_stream stream, struct error *error);

/** @return the kernels of gemm16_sliced(): warps that split K. */
const struct gemm16_few_shape *gemm16_sliced_shapes(int *count);

/** What gemm16_bulk_can() allows. @param shape index of the kernel */
MUST_CHECK enum status gemm16_sliced(const struct gemm16_problem *problem, int shape,
                                     device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
