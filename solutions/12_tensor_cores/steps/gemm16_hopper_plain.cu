/**
 * @file gemm16_hopper_plain.cu
 * @brief v10's kernels for factors that are not transposed.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

/* LAUNCH(a tile) for the epilogue that a problem needs. */
template <typename E, int BN, int ATOMS, bool PINGPONG, enum pair PAIR, typename LAUNCH>
enum status launch_finish(enum finish finish, LAUNCH launch) {
    switch (finish) {
    case FINISH_PLAIN:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_PLAIN>());
    case FINISH_BIAS:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_BIAS>());
    case FINISH_ACTIVATION:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_ACTIVATION>());
    case FINISH_GELU_TANH:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_GELU_TANH>());
    case FINISH_GELU:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_GELU>());
    case FINISH_RESIDUAL:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_RESIDUAL>());
    case FINISH_FLOAT:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_FLOAT>());
    default:
        return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, FINISH_FLOAT_RESIDUAL>());
    }
}

template <typename E> using tile_of_any = hopper_tile<E, 192, 1, false, ALONE, FINISH_ANY>;

} // namespace

bool gemm16_hopper_code(void) {
    static const bool there =
        hopper_has_code<gemm16_wgmma<tile_of_any<__half>>>() && tensor_map_available();
    return there;
}

enum status gemm16_hopper_plain(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                int tile, size_t splits, unsigned band, void *workspace,
                                device_stream stream, struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        auto launch = [&](auto tile_type) {
            return launch_hopper<decltype(tile_type)>(p, gpu, splits, band, workspace, stream,
                                                      error);
        };
        enum finish finish = splits > 1 ? FINISH_FLOAT : gemm16_finish_of(p);
        if (finish == FINISH_ANY) {
            return launch(tile_of_any<E>());
        }
        switch (tile) {
        case 0:
            return launch_finish<E, 256, 1, false, ALONG_M>(finish, launch);
        case 1:
            return launch_finish<E, 192, 2, true, ALONG_M>(finish, launch);
        case 2:
            return launch_finish<E, 128, 2, true, ALONE>(finish, launch);
        case 3:
            return launch_finish<E, 192, 1, false, ALONE>(finish, launch);
        default:
            return launch_finish<E, 192, 1, true, ALONE>(finish, launch);
        }
    });
}
