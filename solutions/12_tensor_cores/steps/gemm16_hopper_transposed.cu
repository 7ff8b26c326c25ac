/**
 * @file gemm16_hopper_transposed.cu
 * @brief v10's kernels where a factor is transposed: the products of a backward pass.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

template <typename E, bool IN_TRANSPOSED, bool WEIGHT_TRANSPOSED, typename LAUNCH>
enum status launch_tile(int tile, LAUNCH launch) {
    switch (tile) {
    case 0:
        return launch(
            hopper_tile<E, 256, 1, false, ALONG_M, true, IN_TRANSPOSED, WEIGHT_TRANSPOSED>());
    case 1:
        return launch(
            hopper_tile<E, 128, 2, true, ALONG_M, true, IN_TRANSPOSED, WEIGHT_TRANSPOSED>());
    default:
        return launch(
            hopper_tile<E, 192, 1, false, ALONG_M, true, IN_TRANSPOSED, WEIGHT_TRANSPOSED>());
    }
}

} // namespace

enum status gemm16_hopper_transposed(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                     int tile, size_t splits, unsigned band, void *workspace,
                                     device_stream stream, struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        auto launch = [&](auto tile_type) {
            return launch_hopper<decltype(tile_type)>(p, gpu, splits, band, workspace, stream,
                                                      error);
        };
        return !p->in_is_transposed      ? launch_tile<E, false, true>(tile, launch)
               : p->weight_is_transposed ? launch_tile<E, true, true>(tile, launch)
                                         : launch_tile<E, true, false>(tile, launch);
    });
}
