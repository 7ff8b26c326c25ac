/**
 * @file direct_launch.cuh
 * @brief The kernel of v7 to v9 and its launch: tiles of hopper_tile.cuh, each thread stores its
 * own results.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_DIRECT_LAUNCH_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_DIRECT_LAUNCH_CUH_

#include "solutions/12_tensor_cores/steps/direct_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/hopper_tile.cuh"

namespace {

template <typename T, bool PLAIN>
__global__ void CLUSTER_OF(T) __launch_bounds__(THREADS, 1)
    gemm16_direct(const __grid_constant__ struct hopper_maps maps, const struct hopper_sizes s,
                  const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    run_tiles<T>(
        maps, s, [](int, int) {},
        [&](float *sums, int row, int column, unsigned, const struct residual_fills &, auto) {
#pragma unroll
            for (int atom = 0; atom < T::ATOMS; atom++) {
                store_sums<typename T::E, T::GROUP_COLUMNS, PLAIN>(
                    f, sums + atom * (T::GROUP_COLUMNS / 2), (size_t)row + atom * 64,
                    (size_t)column);
            }
        });
#endif
}

template <typename T, auto KERNEL>
enum status launch_kernel(const struct hopper_maps &maps, const struct hopper_sizes &s,
                          const struct gemm16_epilogue &f, unsigned blocks, device_stream stream,
                          struct error *error) {
    TRY(allow_shared<KERNEL>(T::BYTES, error));
    KERNEL<<<blocks, THREADS, T::BYTES, stream>>>(maps, s, f);
    return device_launched("gemm16_direct", error);
}

/* @param band tiles of M that run side by side; persistent: a block a multiprocessor, else one a
 * tile */
template <typename T>
enum status launch_direct(const struct gemm16_problem *p, unsigned band, bool persistent,
                          device_stream stream, struct error *error) {
    struct hopper_maps maps = {};
    const struct hopper_sizes s = sizes_of<T>(p, 1, band);
    unsigned blocks = persistent ? persistent_blocks<T, gemm16_direct<T, true>>(
                                       s, gemm16_gpu_of_this_thread().multiprocessors)
                                 : (unsigned)T::BLOCKS * s.tiles_m * s.tiles_n;
    TRY(describe_factors<T>(&maps, p, error));
    const struct gemm16_epilogue f = gemm16_epilogue_of(p);
    return is_plain(f)
               ? launch_kernel<T, gemm16_direct<T, true>>(maps, s, f, blocks, stream, error)
               : launch_kernel<T, gemm16_direct<T, false>>(maps, s, f, blocks, stream, error);
}

/* What v7 to v9 do before their launch. @return STATUS_OK with `done` if nothing is left to do */
template <typename T>
enum status begin_direct(const struct gemm16_problem *p, const char *step, void *workspace,
                         device_stream stream, bool *done, struct error *error) {
    unsigned tiles;
    *done = true;
    TRY(gemm16_check(p, error));
    bool there = hopper_has_code<gemm16_direct<T, true>>();
    TRY(gemm16_needs_code(there, step, error));
    if (!has_plain_rows(p)) {
        return gemm16_v1_tile(p, workspace, stream, error);
    }
    TRY(count_tiles(p, T::BM, T::BN, &tiles, error));
    *done = tiles == 0;
    return STATUS_OK;
}

} // namespace

#endif
