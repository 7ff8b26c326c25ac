/**
 * @file gemm16_hopper_in_turn.cu
 * @brief v10's kernels for Hopper: tiles of 192 columns in the ping-pong schedule.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper_plain.cuh"

enum status gemm16_hopper_in_turn(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                  int tile, size_t splits, unsigned band, void *workspace,
                                  device_stream stream, struct error *error) {
    switch (tile) {
    case 1:
        return launch_tile<192, 2, IN_TURN, ALONG_M, (MOST | GATE | FLOAT_RESIDUAL) & ~RESIDUAL>(
            p, gpu, splits, band, workspace, stream, error);
    case 2:
        return launch_tile<192, 2, IN_TURN, ALONE, ALL>(p, gpu, splits, band, workspace, stream,
                                                        error);
    default:
        return launch_tile<192, 1, IN_TURN, ALONE, ALL>(p, gpu, splits, band, workspace, stream,
                                                        error);
    }
}
