/**
 * @file gemm16_hopper_plain.cuh
 * @brief v10's kernels for factors that are not transposed: what their files share.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_PLAIN_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_PLAIN_CUH_

#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

/* The epilogues that a tile is compiled for: each kernel costs seconds of compiling. */
constexpr unsigned RESIDUAL = 1u << FINISH_RESIDUAL, GELU = 1u << FINISH_GELU;
constexpr unsigned FIRST = 1u << FINISH_PLAIN | 1u << FINISH_BIAS | RESIDUAL;
constexpr unsigned MOST = FIRST | 1u << FINISH_GELU_TANH | GELU | 1u << FINISH_FLOAT;
constexpr unsigned GATE = 1u << FINISH_GATE;
constexpr unsigned FLOAT_RESIDUAL = 1u << FINISH_FLOAT_RESIDUAL;
constexpr unsigned ALL = MOST | GATE | 1u << FINISH_ACTIVATION | FLOAT_RESIDUAL;

/* The kernel of a tile for `finish`, one of WHICH. */
template <typename E, int BN, int ATOMS, enum schedule SCHEDULE, enum cluster CLUSTER,
          unsigned WHICH, int FINISH = 0, typename LAUNCH>
enum status launch_finish(enum finish finish, LAUNCH launch, struct error *error) {
    if constexpr (FINISH == FINISH_ANY) {
        return error_set(error, STATUS_UNSUPPORTED, "gemm16: this tile has no such epilogue");
    } else {
        if constexpr ((WHICH >> FINISH & 1) != 0) {
            if (finish == FINISH) {
                return launch(hopper_tile<E, BN, ATOMS, SCHEDULE, CLUSTER, (enum finish)FINISH>());
            }
        }
        return launch_finish<E, BN, ATOMS, SCHEDULE, CLUSTER, WHICH, FINISH + 1>(finish, launch,
                                                                                 error);
    }
}

template <int BN, int ATOMS, enum schedule SCHEDULE, enum cluster CLUSTER, unsigned WHICH>
enum status launch_tile(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, size_t splits,
                        unsigned band, void *workspace, device_stream stream, struct error *error) {
    enum finish finish = splits > 1 ? FINISH_FLOAT : gemm16_finish_of(p);
    return for_element(p->dtype, [&](auto type) {
        auto launch = [&](auto tile) {
            return launch_hopper<decltype(tile)>(p, gpu, splits, band, workspace, stream, error);
        };
        return launch_finish<typename decltype(type)::E, BN, ATOMS, SCHEDULE, CLUSTER, WHICH>(
            finish, launch, error);
    });
}

} // namespace

#endif
