/**
 * @file gemm16_v10_shapes.cu
 * @brief The last step: the kernel that suits the GPU and the problem.
 *
 * Changes since v9: results leave through shared memory and by the TMA, in whole lines; an epilogue
 * compiled for each kind of result (hopper_epilogue.cuh); split-K; a tile for each shape
 * (gemm16_hopper.cu); kernels of their own for few rows (gemm16_few_rows.cu); transposed factors;
 * and mma.sync for GPUs that are no Hopper and for rows that are no whole 16-byte pieces
 * (gemm16_tile.cu).
 */
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

enum status gemm16_v10_shapes(const struct gemm16_problem *problem, void *workspace,
                              device_stream stream, struct error *error) {
    enum status status = gemm16_check(problem, error);
    if (status != STATUS_OK || problem->M == 0 || problem->N == 0) {
        return status;
    }
    const struct gemm16_gpu gpu = gemm16_gpu_of_this_thread();
    if (gpu.major < 8) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "gemm16: code for compute capability 8.0 or more is needed, this GPU runs "
                         "code for %d.x",
                         gpu.major);
    }
    unsigned tiles; /* the smallest that a launch counts */
    TRY(gemm16_check_workspace(workspace, error));
    TRY(count_tiles(problem, 64, 64, &tiles, error));
    if (gemm16_few_rows_are_faster(problem, &gpu)) {
        return gemm16_few_rows(problem, &gpu, stream, error);
    }
    if (gemm16_hopper_can(problem, &gpu) && gemm16_hopper_is_faster(problem, &gpu)) {
        return gemm16_hopper(problem, &gpu, -1, 0, workspace, stream, error);
    }
    return gemm16_tile(problem, &gpu, workspace, stream, error);
}
