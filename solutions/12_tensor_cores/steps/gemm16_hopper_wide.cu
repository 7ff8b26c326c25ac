/**
 * @file gemm16_hopper_wide.cu
 * @brief v10's kernels for Hopper: tiles that both consumers share, upper and lower half.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper_plain.cuh"

enum status gemm16_hopper_wide(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                               int tile, size_t splits, unsigned band, void *workspace,
                               device_stream stream, struct error *error) {
    switch (tile) {
    case 0:
        return launch_tile<256, 1, TOP_AND_BOTTOM, ALONE, MOST | GATE | FLOAT_RESIDUAL>(
            p, gpu, splits, band, workspace, stream, error);
    case 6:
        return launch_tile<256, 2, SIDE_BY_SIDE, ALONG_M, MOST | FLOAT_RESIDUAL>(
            p, gpu, splits, band, workspace, stream, error);
    case 5:
        return launch_tile<192, 1, TOP_AND_BOTTOM, ALONE, RESIDUAL | GELU>(
            p, gpu, splits, band, workspace, stream, error);
    default:
        return launch_tile<96, 1, TOP_AND_BOTTOM, ALONE, MOST | GATE>(p, gpu, splits, band,
                                                                      workspace, stream, error);
    }
}
