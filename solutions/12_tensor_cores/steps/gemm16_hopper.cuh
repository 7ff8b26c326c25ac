/**
 * @file gemm16_hopper.cuh
 * @brief v10's kernel for Hopper and its launch: tiles of hopper_tile.cuh, the epilogues of
 *        hopper_epilogue.cuh, and split-K.
 *
 * With split-K the sums of each part of K go to the workspace as fp32, and a second kernel adds
 * them (gemm16_split_k.cu). Blocks are set up while the kernel before still runs
 * (common/cuda/dependent_launch.cuh), and the next kernel's while these do.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_GEMM16_HOPPER_CUH_

#include "solutions/12_tensor_cores/steps/hopper_epilogue.cuh"

namespace {

template <typename T>
__global__ void CLUSTER_OF(T) __launch_bounds__(THREADS, 1)
    gemm16_wgmma(const __grid_constant__ struct hopper_maps maps, const struct hopper_sizes s,
                 const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    launch_dependent_grids();
    if constexpr (T::FINISH == FINISH_ANY) {
        run_tiles<T>(
            maps, s, [](int, int) {},
            [&](float *sums, int row, int column, unsigned, const struct residual_fills &, auto) {
#pragma unroll
                for (int atom = 0; atom < T::ATOMS; atom++) {
                    store_sums<typename T::E, T::GROUP_COLUMNS, false>(
                        f, sums + atom * (T::GROUP_COLUMNS / 2), (size_t)row + atom * 64,
                        (size_t)column);
                }
            });
    } else {
        extern __shared__ unsigned char shared_bytes[];
        __shared__ __align__(8) uint64_t ready[2 * GROUP / 32][T::LOADS_RESIDUAL ? T::SLOTS : 1];
        __shared__ __align__(8) float bias[2][T::SHARED_BIAS ? T::GROUP_COLUMNS : 2];
        /* By the shuffle the compiler knows that it is the same in all lanes. */
        int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0) - GROUP / 32;
        unsigned char *stages = shared_bytes + (1024 - shared_address(shared_bytes) % 1024) % 1024;
        unsigned char *staging = stages + T::STAGES * T::STAGE + warp * (int)T::STAGING;
        struct hopper_epilogue<T> epilogue = {
            f, maps, warp, stages, staging, 0, 0, bias[warp / 4], {
            }
        };
        if (T::LOADS_RESIDUAL && warp >= 0) {
            epilogue.ready = shared_address(ready[warp]);
            for (int i = 0; i < T::SLOTS && threadIdx.x % 32 == 0; i++) {
                mbarrier_init(epilogue.ready + i * 8, 1);
            }
            mbarrier_init_fence(); /* run_tiles() waits for all threads */
        }
        run_tiles<T>(
            maps, s, [&](int row, int column) { epilogue.begin(row, column); },
            [&](float *sums, int row, int column, unsigned tile, const struct residual_fills &fills,
                auto ready) {
                if constexpr (T::SPLIT > 1) {
                    add_blocks<T>(sums, shared_address(stages));
                }
                int split = s.splits == 1 ? 0 : (int)(tile / (s.tiles_m * s.tiles_n));
                epilogue.store(sums, row, row + split * (int)s.split_rows, column, fills, ready);
            });
        tma_store_wait();
    }
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

/* out^T = weight * in^T: factors of the same layout, exchanged. Its epilogue is another one. */
static struct gemm16_problem exchanged(const struct gemm16_problem *p) {
    struct gemm16_problem e = *p;
    e.M = p->N, e.N = p->M;
    e.in = p->weight, e.weight = p->in;
    return e;
}

template <typename T>
enum status launch_hopper(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                          size_t splits, unsigned band, void *workspace, device_stream stream,
                          struct error *error) {
    struct hopper_maps maps = {};
    const struct gemm16_problem product = T::EXCHANGED ? exchanged(p) : *p;
    const struct hopper_sizes s = sizes_of<T>(&product, splits, band);
    const struct gemm16_epilogue f =
        s.splits > 1 ? partial_of(p, workspace) : gemm16_epilogue_of(p);
    TRY(describe_factors<T>(&maps, &product, error));
    if (T::FINISH != FINISH_ANY) { /* what the TMA stores, and loads */
        enum nn_dtype dtype = T::FLOATS ? NN_F32 : p->dtype;
        size_t rows = s.splits > 1 ? s.splits * s.split_rows : p->M;
        TRY(describe(&maps.out, dtype, f.out, rows, T::GATE ? p->N / 2 : p->N,
                     T::EXCHANGED      ? T::OUT_ROWS
                     : T::RING_RESULTS ? 64
                                       : 16,
                     T::STORE_COLUMNS, error));
        if ((T::LOADS_RESIDUAL || T::RING_RESIDUAL) && f.residual != NULL) {
            TRY(describe(&maps.residual, dtype, f.residual, p->M, p->N,
                         T::RING_RESIDUAL ? T::OUT_ROWS : 16, T::STORE_COLUMNS, error));
        }
    }
    TRY(allow_shared<gemm16_wgmma<T>>(T::BYTES, error));
    launch_dependent<gemm16_wgmma<T>>(
        persistent_blocks<T, gemm16_wgmma<T>>(s, gpu->multiprocessors), THREADS, T::BYTES, stream,
        maps, s, f);
    TRY(device_launched("gemm16_wgmma", error));
    return s.splits == 1 ? STATUS_OK
                         : gemm16_split_k_reduce(p, (const float *)workspace, s.splits,
                                                 s.split_rows, stream, error);
}

} // namespace

#endif
