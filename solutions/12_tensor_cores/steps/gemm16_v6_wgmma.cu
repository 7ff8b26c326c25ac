/**
 * @file gemm16_v6_wgmma.cu
 * @brief Step 6: wgmma, which multiplies from shared memory.
 *
 * Changes since v5: a warpgroup, 4 warps together, starts m64n128k16 instructions that read both
 * operands from the stage, by descriptors; sums stay in registers. Nothing is loaded by threads: no
 * ldmatrix, no fragments. wgmma runs on its own: the warps wait for it when they need the stage
 * back.
 *
 * Why: the only way to Hopper's full rate; mma.sync has no more than some 62% of it. What limits it
 * now: the threads that multiply also start the copies, 128 x 128 reads 96 bytes of shared memory a
 * cycle of the 128 there are, and a block's prologue and epilogue leave its multiprocessor without
 * products.
 *
 * Compute capability 9.0a.
 *
 * Measured: NVIDIA H100 80GB HBM3, 4096 x 4096 x 4096, bf16: 473 TFLOP/s, 61% of cublasLt's; its
 * tensor pipe is busy 52% of the cycles.
 */
#include "solutions/12_tensor_cores/steps/direct_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/hopper_tile.cuh"

namespace {

constexpr int BM = 128, BN = 128, STAGES = 4, GROUPS = BM / 64;
constexpr unsigned STAGE = (BM + BN) * BK * 2, BYTES = STAGES * STAGE + 1024;

template <typename E, bool PLAIN>
__global__ void __launch_bounds__(GROUPS *GROUP)
    gemm16_warpgroups(const __grid_constant__ struct hopper_maps maps, unsigned steps,
                      unsigned tiles_n, const struct gemm16_epilogue f) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char shared_bytes[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    unsigned stages = (shared_address(shared_bytes) + 1023) / 1024 * 1024;
    int m0 = (int)(blockIdx.x / tiles_n * BM), n0 = (int)(blockIdx.x % tiles_n * BN);
    int group = threadIdx.x / GROUP;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), GROUPS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    auto start = [&](unsigned step) {
        unsigned stage = step % STAGES, barrier = shared_address(&full[stage]);
        unsigned to = stages + stage * STAGE;
        if (step >= STAGES) {
            mbarrier_wait(shared_address(&empty[stage]), (step / STAGES - 1) % 2);
        }
        mbarrier_arrive_expect_tx(barrier, STAGE);
        tma_load_2d(to, &maps.in, (int)(step * BK), m0, barrier);
        tma_load_2d(to + BM * BK * 2, &maps.weight, (int)(step * BK), n0, barrier);
    };
    for (unsigned step = 0; threadIdx.x == 0 && step < min(steps, (unsigned)STAGES - 1); step++) {
        start(step);
    }
    float sums[BN / 2];
    for (unsigned step = 0; step < steps; step++) {
        unsigned at = stages + step % STAGES * STAGE;
        mbarrier_wait(shared_address(&full[step % STAGES]), step / STAGES % 2);
        uint64_t in = wgmma_descriptor<false>(at + group * 64 * BK * 2);
        uint64_t weight = wgmma_descriptor<false>(at + BM * BK * 2);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BK / 16; depth++) { /* 16 elements further on: 32 bytes */
            wgmma<BN>::run<0, 0>(sums, in + 2 * depth, weight + 2 * depth, step > 0 || depth > 0,
                                 E());
        }
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x % GROUP == 0) {
            mbarrier_arrive(shared_address(&empty[step % STAGES]));
        }
        if (threadIdx.x == 0 && step + STAGES - 1 < steps) {
            start(step + STAGES - 1);
        }
        __syncwarp();
    }
    store_sums<E, BN, PLAIN>(f, sums, (size_t)m0 + group * 64, (size_t)n0);
#endif
}

} // namespace

enum status gemm16_v6_wgmma(const struct gemm16_problem *p, void *workspace, device_stream stream,
                            struct error *error) {
    unsigned tiles;
    TRY(gemm16_check(p, error));
    bool there = hopper_has_code<gemm16_warpgroups<__half, true>>();
    TRY(gemm16_needs_code(there, "v6_wgmma", error));
    if (!has_plain_rows(p)) {
        return gemm16_v1_tile(p, workspace, stream, error);
    }
    TRY(count_tiles(p, BM, BN, &tiles, error));
    if (tiles == 0) {
        return STATUS_OK;
    }
    unsigned steps = (unsigned)divide_up(p->K, BK), tiles_n = (unsigned)divide_up(p->N, BN);
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        struct hopper_maps maps = {};
        TRY(describe(&maps.in, p->dtype, p->in, p->M, p->K, BM, BK, error));
        TRY(describe(&maps.weight, p->dtype, p->weight, p->N, p->K, BN, BK, error));
        const struct gemm16_epilogue f = gemm16_epilogue_of(p);
        auto launch = [&](auto kernel, enum status allowed) {
            TRY(allowed);
            kernel<<<tiles, GROUPS * GROUP, BYTES, stream>>>(maps, steps, tiles_n, f);
            return device_launched("gemm16_warpgroups", error);
        };
        return is_plain(f) ? launch(gemm16_warpgroups<E, true>,
                                    allow_shared<gemm16_warpgroups<E, true>>(BYTES, error))
                           : launch(gemm16_warpgroups<E, false>,
                                    allow_shared<gemm16_warpgroups<E, false>>(BYTES, error));
    });
}
