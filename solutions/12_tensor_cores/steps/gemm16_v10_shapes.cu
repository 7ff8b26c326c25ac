/**
 * @file gemm16_v10_shapes.cu
 * @brief The last step: the kernel that suits the GPU and the problem.
 *
 * Changes since v9: results leave through shared memory and by the TMA, in whole lines; epilogues whose
 * code is short (hopper_epilogue.cuh); split-K, with the second kernel set up early; a tile for each
 * shape (gemm16_hopper.cu); few rows in exchanged roles (gemm16_few_rows.cu); transposed factors; and
 * mma.sync for GPUs that are no Hopper and for rows that are no whole 16-byte pieces
 * (gemm16_tile.cu).
 */
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"
#include "solutions/12_tensor_cores/steps/ladder.h"

/* Rows of `in` a tile, and blocks that split K: as many as there are multiprocessors for, each with
   twelve steps of K at least. Measured on an H100 for 1 to 128 rows and weights of 768 to 11008. */
static enum status few_rows(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                            device_stream stream, struct error *error) {
    unsigned rows = p->M <= 8 ? 8 : p->M <= 16 ? 16 : p->M <= 64 ? 32 : 64;
    size_t tiles = (p->N + 63) / 64 * ((p->M + rows - 1) / rows), steps = (p->K + 63) / 64;
    unsigned blocks = 1;
    while (blocks < 8 && 2 * blocks * tiles <= (size_t)gpu->multiprocessors &&
           steps >= 12 * 2 * blocks) {
        blocks *= 2;
    }
    return gemm16_few_rows(p, rows, blocks, stream, error);
}

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
    if (problem->M <= 128 && gpu.major == 9 && gemm16_few_rows_can(problem)) {
        return few_rows(problem, &gpu, stream, error);
    }
    if (gemm16_hopper_can(problem, &gpu) && gemm16_hopper_is_faster(problem, &gpu)) {
        return gemm16_hopper(problem, &gpu, -1, 0, workspace, stream, error);
    }
    return gemm16_tile(problem, &gpu, workspace, stream, error);
}
