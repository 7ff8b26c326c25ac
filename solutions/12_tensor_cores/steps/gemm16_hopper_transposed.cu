/**
 * @file gemm16_hopper_transposed.cu
 * @brief v10's kernels where a factor is transposed: the products of a backward pass.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

/* din: weight is transposed; results of 16 bits. */
template <typename E, int BN, int ATOMS, enum finish FINISH>
using din_tile = hopper_tile<E, BN, ATOMS, IN_TURN, ALONE, FINISH, false, true>;

template <typename E, int BN, int ATOMS, typename LAUNCH>
enum status launch_din(enum finish finish, LAUNCH launch) {
    return finish == FINISH_PLAIN ? launch(din_tile<E, BN, ATOMS, FINISH_PLAIN>())
                                  : launch(din_tile<E, BN, ATOMS, FINISH_RESIDUAL>());
}

/* dweight: both are transposed; results of fp32. */
template <typename E, int BN, int ATOMS, enum schedule SCHEDULE, enum cluster CLUSTER,
          int SPLIT = 1, bool EXCHANGED = false, typename LAUNCH>
enum status launch_dweight(enum finish finish, LAUNCH launch) {
    return finish == FINISH_FLOAT
               ? launch(hopper_tile<E, BN, ATOMS, SCHEDULE, CLUSTER, FINISH_FLOAT, true, true,
                                    SPLIT, EXCHANGED>())
               : launch(hopper_tile<E, BN, ATOMS, SCHEDULE, CLUSTER, FINISH_FLOAT_RESIDUAL, true,
                                    true, SPLIT, EXCHANGED>());
}

/* Everything else. */
template <typename E, bool IN_TRANSPOSED, bool WEIGHT_TRANSPOSED>
using any_tile =
    hopper_tile<E, 192, 1, TOP_AND_BOTTOM, ALONE, FINISH_ANY, IN_TRANSPOSED, WEIGHT_TRANSPOSED>;

template <typename E, typename LAUNCH>
enum status launch_any(const struct gemm16_problem *p, LAUNCH launch) {
    return !p->weight_is_transposed ? launch(any_tile<E, true, false>())
           : p->in_is_transposed    ? launch(any_tile<E, true, true>())
                                    : launch(any_tile<E, false, true>());
}

} // namespace

enum status gemm16_hopper_transposed(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                     int tile, size_t splits, unsigned band, void *workspace,
                                     device_stream stream, struct error *error) {
    enum finish finish = gemm16_finish_of(p);
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        auto launch = [&](auto tile_type) {
            return launch_hopper<decltype(tile_type)>(p, gpu, 1, band, workspace, stream, error);
        };
        if (tile < 0) {
            return launch_any<E>(p, launch);
        }
        if (!p->in_is_transposed) {
            return tile == 0   ? launch_din<E, 192, 2>(finish, launch)
                   : tile == 1 ? launch_din<E, 128, 2>(finish, launch)
                               : launch_din<E, 192, 1>(finish, launch);
        }
        return tile == 0   ? launch_dweight<E, 192, 1, TOP_AND_BOTTOM, ALONE>(finish, launch)
               : tile == 1 ? launch_dweight<E, 128, 1, TOP_AND_BOTTOM, ALONG_N>(finish, launch)
               : tile == 2 ? launch_dweight<E, 128, 1, TOP_AND_BOTTOM, ALONE, 2>(finish, launch)
               : tile == 3 ? launch_dweight<E, 64, 1, TOP_AND_BOTTOM, ALONE>(finish, launch)
               : tile == 4 ? launch_dweight<E, 160, 1, TOP_AND_BOTTOM, FOUR_ALONG_M>(finish, launch)
               : tile == 5 ? launch_dweight<E, 96, 3, IN_TURN, ALONG_M>(finish, launch)
               : tile == 6 ? launch_dweight<E, 96, 1, IN_TURN, TWO_BY_FOUR>(finish, launch)
               : tile == 7 ? launch_dweight<E, 96, 1, TOP_AND_BOTTOM, TWO_BY_TWO, 2>(finish, launch)
                           : launch_dweight<E, 96, 3, IN_TURN, ALONG_M, 1, true>(finish, launch);
    });
}
