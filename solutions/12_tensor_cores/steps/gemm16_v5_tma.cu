/**
 * @file gemm16_v5_tma.cu
 * @brief Step 5: the TMA copies whole boxes, and mbarriers say when they are there.
 *
 * Changes since v4: one thread starts two copies a step, of 128 rows of 64 elements each; the TMA
 * computes the addresses, swizzles and clips. A stage has two barriers: `full` completes when its
 * 32 KiB have arrived, `empty` when all eight warps have read it. No thread waits for the others
 * any more, except the one that copies, for the slowest reader. The products are v4's.
 *
 * Why: v4 spends instructions of every warp on addresses. What limits it now: mma.sync, which needs
 * its operands in registers: 3 KiB of ldmatrix for 32768 multiply-adds.
 *
 * From compute capability 9.0 on.
 *
 * Measured: NVIDIA H100 80GB HBM3, 4096 x 4096 x 4096, bf16: 330 TFLOP/s, 43% of cublasLt's; its
 * tensor pipe is busy 50% of the cycles.
 */
#include "solutions/12_tensor_cores/steps/helpers.cuh"
#include "solutions/12_tensor_cores/steps/mma_tile.cuh"
#include "solutions/12_tensor_cores/steps/tensor_map.cuh"

#if __CUDA_ARCH__ >= 900
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#endif

namespace {

template <typename E> using tile_of = tile<E, 128, 128, 2, 4, 4>;

struct factor_maps {
    CUtensorMap in, weight;
};

template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_tma(const __grid_constant__ struct factor_maps maps, unsigned steps, unsigned tiles_n,
               const struct gemm16_epilogue epilogue) {
#if __CUDA_ARCH__ >= 900
    typedef typename T::E E;
    constexpr unsigned BYTES = T::STAGE * sizeof(E);
    extern __shared__ unsigned char unaligned_bytes[];
    __shared__ __align__(8) uint64_t full[T::STAGES], empty[T::STAGES];
    unsigned char *shared_bytes =
        unaligned_bytes + (1024 - shared_address(unaligned_bytes) % 1024) % 1024;
    int m0 = (int)(blockIdx.x / tiles_n * T::BM), n0 = (int)(blockIdx.x % tiles_n * T::BN);
    if (threadIdx.x == 0) {
        for (int i = 0; i < T::STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), T::THREADS / 32);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    /* One thread: the copies of a step, once its stage's last reader is done. */
    auto start = [&](unsigned step) {
        unsigned stage = step % T::STAGES, barrier = shared_address(&full[stage]);
        unsigned to = shared_address(shared_bytes) + stage * BYTES;
        if (step >= T::STAGES) {
            mbarrier_wait(shared_address(&empty[stage]), (step / T::STAGES - 1) % 2);
        }
        mbarrier_arrive_expect_tx(barrier, BYTES);
        tma_load_2d(to, &maps.in, (int)(step * BK), m0, barrier);
        tma_load_2d(to + T::BM * BK * sizeof(E), &maps.weight, (int)(step * BK), n0, barrier);
    };
    for (unsigned step = 0; threadIdx.x == 0 && step < min(steps, (unsigned)T::STAGES - 1);
         step++) {
        start(step);
    }
    struct fragments<T> f[2];
    float sums[T::MS][T::NS][4] = {};
    for (unsigned step = 0; step < steps; step++) {
        unsigned stage = step % T::STAGES;
        if (threadIdx.x == 0 && step + T::STAGES - 1 < steps) {
            start(step + T::STAGES - 1);
        }
        __syncwarp();
        mbarrier_wait(shared_address(&full[stage]), step / T::STAGES % 2);
        const E *at = (const E *)(shared_bytes + stage * BYTES);
        load_fragments<T>(f[0], at, 0);
        multiply_stage<T>(
            sums, f, at, NULL, []() {}, [](int) {});
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            mbarrier_arrive(shared_address(&empty[stage]));
        }
    }
    __syncthreads();
    for_each_eight<T>(shared_bytes, sums, (size_t)m0, (size_t)n0,
                      [&](float *x, size_t m, size_t n) { epilogue_eight<E>(epilogue, x, m, n); });
#endif
}

} // namespace

enum status gemm16_v5_tma(const struct gemm16_problem *p, void *workspace, device_stream stream,
                          struct error *error) {
    unsigned tiles;
    TRY(gemm16_check(p, error));
    TRY(gemm16_needs(90, "v5_tma", error));
    if (!has_plain_rows(p)) {
        return gemm16_v1_tile(p, workspace, stream, error);
    }
    TRY(count_tiles(p, 128, 128, &tiles, error));
    if (tiles == 0) {
        return STATUS_OK;
    }
    unsigned steps = (unsigned)((p->K + BK - 1) / BK), tiles_n = (unsigned)((p->N + 127) / 128);
    return for_element(p->dtype, [&](auto type) {
        typedef tile_of<typename decltype(type)::E> T;
        struct factor_maps maps;
        TRY(describe(&maps.in, p->dtype, p->in, p->M, p->K, T::BM, BK, error));
        TRY(describe(&maps.weight, p->dtype, p->weight, p->N, p->K, T::BN, BK, error));
        TRY(allow_shared<gemm16_tma<T>>(T::BYTES + 1024, error));
        gemm16_tma<T><<<tiles, T::THREADS, T::BYTES + 1024, stream>>>(maps, steps, tiles_n,
                                                                      gemm16_epilogue_of(p));
        return device_launched("gemm16_tma", error);
    });
}
