/**
 * @file gemm16_hopper.cuh
 * @brief v10's kernel for Hopper and its launch: tiles of hopper_tile.cuh, the epilogue of
 *        hopper_epilogue.cuh, and split-K.
 *
 * With split-K a tile of each part of K goes to the workspace as fp32, and a second kernel adds
 * them (gemm16_split_k.cu); it is set up while this one still runs.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "solutions/12_tensor_cores/steps/hopper_epilogue.cuh"

namespace {

template <typename T>
__global__ void CLUSTER_OF(T) __launch_bounds__(THREADS, 1)
    gemm16_wgmma(const __grid_constant__ struct hopper_maps maps, const struct hopper_sizes s,
                 const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    int warp = threadIdx.x / 32 - GROUP / 32;
    unsigned char *staging = shared_bytes + (1024 - shared_address(shared_bytes) % 1024) % 1024 +
                             T::STAGES * T::STAGE + warp * (int)T::STAGING;
    bool plain =
        f.bias == NULL && f.activation < 0 && f.residual == NULL && !f.out_is_float && f.vector;
    run_tiles<T>(
        maps, s,
        [&](int2 at, unsigned step, unsigned steps) {
            if (f.residual != NULL) {
                prefetch_residual<T>(f, at, step, steps);
            }
        },
        [&]() { /* fetches the epilogue's code while the other warpgroup multiplies */
                for (unsigned i = threadIdx.x % 32; i < T::STAGING / 4; i += 32) {
                    ((float *)staging)[i] = 0.0f;
                }
                __syncwarp();
                if (!plain) {
                    finish_rows<T>(NULL, f, f.out, f.M, 0, (float *)staging, true);
                }
        },
        [&](float *sums, size_t m, size_t n, unsigned tile) {
            if (plain) {
                store_rounded_rows<T>(sums, &maps.out, m + warp % 4 * 16, n,
                                      shared_address(staging));
                return;
            }
            size_t split = s.splits == 1 ? 0 : tile / (s.tiles_m * s.tiles_n);
            void *out = s.splits == 1 ? f.out : (float *)f.out + split * f.M * f.N;
            finish_rows<T>(sums, f, out, m + warp % 4 * 16, n, (float *)staging, false);
        });
    launch_dependent_grids();
    tma_store_wait();
#endif
}

/* The epilogue of a part of K: its sums go to the workspace. */
static struct gemm16_epilogue partial_of(const struct gemm16_problem *p, void *workspace) {
    struct gemm16_epilogue f = {};
    f.out = workspace;
    f.M = p->M;
    f.N = p->N;
    f.activation = -1;
    f.out_is_float = true;
    f.vector = p->N % 8 == 0;
    return f;
}

template <typename T>
enum status launch_hopper(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                          size_t splits, unsigned band, void *workspace, device_stream stream,
                          struct error *error) {
    struct hopper_maps maps = {};
    const struct hopper_sizes s = sizes_of<T>(p, splits, band);
    const struct gemm16_epilogue f =
        s.splits > 1 ? partial_of(p, workspace) : gemm16_epilogue_of(p);
    TRY(describe_factors<T>(&maps, p, error));
    if (f.vector && !f.out_is_float) { /* where the TMA stores it */
        TRY(describe(&maps.out, p->dtype, f.out, p->M, p->N, 16, T::STORE_COLUMNS, error));
    }
    TRY(allow_shared<gemm16_wgmma<T>>(T::BYTES, error));
    gemm16_wgmma<T>
        <<<persistent_blocks<T>(s, gpu->multiprocessors), THREADS, T::BYTES, stream>>>(maps, s, f);
    TRY(device_launched("gemm16_wgmma", error));
    return s.splits == 1
               ? STATUS_OK
               : gemm16_split_k_reduce(p, (const float *)workspace, s.splits, stream, error);
}

} // namespace

#endif
