/**
 * @file gemm16_hopper_transposed.cu
 * @brief v10's kernels where a factor is transposed: the products of a backward pass.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

/* LAUNCH(a tile) for the epilogue that a problem needs; bias and activation it has none. */
template <typename E, int BN, int ATOMS, bool PINGPONG, enum pair PAIR, bool IN_TRANSPOSED,
          bool WEIGHT_TRANSPOSED, typename LAUNCH>
enum status launch_finish(enum finish finish, LAUNCH launch) {
    switch (finish) {
    case FINISH_PLAIN:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_PLAIN, IN_TRANSPOSED,
                                  WEIGHT_TRANSPOSED>());
    case FINISH_RESIDUAL:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_RESIDUAL, IN_TRANSPOSED,
                                  WEIGHT_TRANSPOSED>());
    case FINISH_FLOAT:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_FLOAT, IN_TRANSPOSED,
                                  WEIGHT_TRANSPOSED>());
    default:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_FLOAT_RESIDUAL,
                                  IN_TRANSPOSED, WEIGHT_TRANSPOSED>());
    }
}

template <typename E, bool IN_TRANSPOSED, typename LAUNCH>
enum status launch_tile(int tile, enum finish finish, LAUNCH launch) {
    switch (tile) {
    case 0:
        return launch_finish<E, 192, 2, true, ALONG_M, IN_TRANSPOSED, true>(finish, launch);
    case 1:
        return launch_finish<E, 192, 1, false, ALONE, IN_TRANSPOSED, true>(finish, launch);
    case 2:
        return launch_finish<E, 128, 1, false, ALONE, IN_TRANSPOSED, true>(finish, launch);
    default:
        return launch_finish<E, 192, 1, true, ALONE, IN_TRANSPOSED, true>(finish, launch);
    }
}

} // namespace

enum status gemm16_hopper_transposed(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                     int tile, size_t splits, unsigned band, void *workspace,
                                     device_stream stream, struct error *error) {
    enum finish finish = splits > 1 ? FINISH_FLOAT : gemm16_finish_of(p);
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        auto launch = [&](auto tile_type) {
            return launch_hopper<decltype(tile_type)>(p, gpu, splits, band, workspace, stream,
                                                      error);
        };
        if (!p->weight_is_transposed) { /* no product of a backward pass */
            return launch_finish<E, 192, 1, false, ALONE, true, false>(finish, launch);
        }
        return p->in_is_transposed ? launch_tile<E, true>(tile, finish, launch)
                                   : launch_tile<E, false>(tile, finish, launch);
    });
}
