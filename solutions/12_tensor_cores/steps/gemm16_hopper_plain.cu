/**
 * @file gemm16_hopper_plain.cu
 * @brief v10's kernels for factors that are not transposed.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

template <typename E, int BN, int ATOMS, bool PINGPONG, enum pair PAIR>
using plain_tile = hopper_tile<E, BN, ATOMS, PINGPONG, PAIR, true>;

} // namespace

bool gemm16_hopper_code(void) {
    static const bool there =
        hopper_has_code<gemm16_wgmma<plain_tile<__half, 256, 1, false, ALONG_M>>>() &&
        find_encode() != NULL;
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
        switch (tile) {
        case 0:
            return launch(plain_tile<E, 256, 1, false, ALONG_M>());
        case 1:
            return launch(plain_tile<E, 192, 2, true, ALONG_M>());
        case 2:
            return launch(plain_tile<E, 128, 2, true, ALONG_M>());
        case 3:
            return launch(plain_tile<E, 192, 1, true, ALONG_M>());
        default:
            return launch(plain_tile<E, 96, 1, false, ALONE>());
        }
    });
}
