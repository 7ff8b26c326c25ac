/**
 * @file gemm16_hopper_plain.cu
 * @brief v10's kernels for factors that are not transposed: which file has a tile; and the one for
 *        everything else.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

namespace {

template <typename E> using tile_of_any = hopper_tile<E, 192, 1, TOP_AND_BOTTOM, ALONE, FINISH_ANY>;

} // namespace

bool gemm16_hopper_code(void) {
    static const bool there =
        hopper_has_code<gemm16_wgmma<tile_of_any<__half>>>() && tensor_map_available();
    return there;
}

enum status gemm16_hopper_plain(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                int tile, size_t splits, unsigned band, void *workspace,
                                device_stream stream, struct error *error) {
    if (tile >= 0) {
        static gemm16_hopper_launch *const files[] = {gemm16_hopper_wide,    gemm16_hopper_in_turn,
                                                      gemm16_hopper_in_turn, gemm16_hopper_narrow,
                                                      gemm16_hopper_in_turn, gemm16_hopper_wide,
                                                      gemm16_hopper_wide,    gemm16_hopper_narrow,
                                                      gemm16_hopper_narrow,  gemm16_hopper_wide};
        return files[tile](p, gpu, tile, splits, band, workspace, stream, error);
    }
    return for_element(p->dtype, [&](auto type) {
        return launch_hopper<tile_of_any<typename decltype(type)::E>>(p, gpu, splits, band,
                                                                      workspace, stream, error);
    });
}
