/**
 * @file gemm16_hopper_plain.cu
 * @brief v10's kernels for factors that are not transposed.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

template <typename E> using tile_of_any = hopper_tile<E, 192, 1, false, ALONE, FINISH_ANY>;

/* The epilogues that a tile is compiled for: each kernel costs seconds of compiling. */
constexpr unsigned RESIDUAL = 1u << FINISH_RESIDUAL;
constexpr unsigned FIRST = 1u << FINISH_PLAIN | 1u << FINISH_BIAS | RESIDUAL;
constexpr unsigned MOST = FIRST | 1u << FINISH_GELU_TANH | 1u << FINISH_GELU | 1u << FINISH_FLOAT;
constexpr unsigned GATE = 1u << FINISH_GATE; /* needs whole 64 columns */
constexpr unsigned ALL = MOST | GATE | 1u << FINISH_ACTIVATION | 1u << FINISH_FLOAT_RESIDUAL;

constexpr unsigned LAST = RESIDUAL | 1u << FINISH_GELU;

/* LAUNCH(a tile) for the epilogue that a problem needs, if it is one of WHICH. */
template <typename E, int BN, int ATOMS, bool PINGPONG, enum pair PAIR, unsigned WHICH, int FINISH,
          typename LAUNCH>
enum status launch_finish(enum finish finish, LAUNCH launch) {
    if constexpr (FINISH == FINISH_ANY) {
        return launch(tile_of_any<E>());
    } else {
        if constexpr ((WHICH >> FINISH & 1) != 0) {
            if (finish == FINISH) {
                return launch(hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, (enum finish)FINISH>());
            }
        }
        return launch_finish<E, BN, ATOMS, PINGPONG, PAIR, WHICH, FINISH + 1>(finish, launch);
    }
}

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
        switch (tile) {
        case 0:
            return launch_finish<E, 256, 1, false, ALONE, MOST | GATE, 0>(finish, launch);
        case 1:
            return launch_finish<E, 192, 2, true, ALONG_M, (MOST | GATE) & ~RESIDUAL, 0>(finish,
                                                                                         launch);
        case 2:
            return launch_finish<E, 192, 2, true, ALONE, ALL, 0>(finish, launch);
        case 3:
            return launch_finish<E, 160, 2, true, ALONE, MOST, 0>(finish, launch);
        case 4:
            return launch_finish<E, 192, 1, true, ALONE, ALL, 0>(finish, launch);
        case 5:
            return launch_finish<E, 192, 1, false, ALONE, LAST, 0>(finish, launch);
        case 6:
            return launch_finish<E, 256, 1, false, ALONG_M, FIRST | 1u << FINISH_GELU_TANH, 0>(
                finish, launch);
        case 7:
            return launch_finish<E, 128, 2, true, ALONE, MOST, 0>(finish, launch);
        default:
            return launch(tile_of_any<E>());
        }
    });
}
