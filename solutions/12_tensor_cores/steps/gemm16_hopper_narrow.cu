/**
 * @file gemm16_hopper_narrow.cu
 * @brief v10's kernels for Hopper: fewer columns in the ping-pong schedule, and 192 x 192.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper_plain.cuh"

enum status gemm16_hopper_narrow(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                 int tile, size_t splits, unsigned band, void *workspace,
                                 device_stream stream, struct error *error) {
    switch (tile) {
    case 3:
        return launch_tile<160, 2, IN_TURN, ALONE, MOST | GATE>(p, gpu, splits, band, workspace,
                                                                stream, error);
    case 7:
        return launch_tile<128, 2, IN_TURN, ALONE, MOST>(p, gpu, splits, band, workspace, stream,
                                                         error);
    default:
        return launch_tile<192, 3, SIDE_BY_SIDE, ALONE, MOST | GATE>(p, gpu, splits, band,
                                                                     workspace, stream, error);
    }
}
