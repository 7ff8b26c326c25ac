/**
 * @file gemm16_v4_ring.cu
 * @brief Step 4: a ring of stages that cp.async fills.
 *
 * Changes since v3: copies pass by the registers (cp.async), into a ring of three stages: while one
 * is multiplied, two are in flight. One __syncthreads() a step is left: it says both that this step
 * has arrived for all threads and that all have read the one before, whose stage is filled next.
 *
 * Why: at 128 x 128 a step of 64 has 32 KiB to copy and 2^20 multiply-adds, some 1000 cycles of the
 * tensor cores; device memory answers after about that long. What limits it now: every thread
 * computes addresses and issues copies, 8 of 16 bytes a step, between its mma.
 */
#include "common/cuda/async_copy.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"
#include "solutions/12_tensor_cores/steps/mma_tile.cuh"

namespace {

template <typename E> using tile_of = tile<E, 128, 128, 2, 4, 3>;

/* Starts copying SIZE rows of a (rows, K) factor, elements k to k + 64; zeros outside. */
template <int SIZE, int THREADS, typename E>
__device__ __forceinline__ void start_copies(E *to, const void *factor, size_t row, size_t rows,
                                             size_t k, size_t K) {
#pragma unroll
    for (int i = 0; i < SIZE * PIECES / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x, r = at / PIECES, piece = at % PIECES;
        bool inside = row + r < rows && k + piece * 8 < K;
        cp_async<16>(piece_at(to, r, piece),
                     (const E *)factor + (inside ? (row + r) * K + k + piece * 8 : 0), inside);
    }
}

template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_ring(const struct gemm16_problem p, unsigned tiles_n, const struct gemm16_epilogue f) {
    typedef typename T::E E;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    E *stages = (E *)shared_bytes;
    size_t m0 = (size_t)(blockIdx.x / tiles_n) * T::BM, n0 = (size_t)(blockIdx.x % tiles_n) * T::BN;
    size_t steps = (p.K + BK - 1) / BK;
    auto start = [&](size_t step) {
        E *stage = stages + step % T::STAGES * T::STAGE;
        if (step < steps) {
            start_copies<T::BM, T::THREADS>(stage, p.in, m0, p.M, step * BK, p.K);
            start_copies<T::BN, T::THREADS>(stage + T::BM * BK, p.weight, n0, p.N, step * BK, p.K);
        }
        cp_async_commit(); /* a group a step, if an empty one */
    };
    float sums[T::MS][T::NS][4] = {};
    for (int step = 0; step < T::STAGES - 1; step++) {
        start(step);
    }
    for (size_t step = 0; step < steps; step++) {
        cp_async_wait<T::STAGES - 2>();
        __syncthreads();
        start(step + T::STAGES - 1);
        multiply_stage<T>(sums, stages + step % T::STAGES * T::STAGE);
    }
    cp_async_wait<0>();
    __syncthreads();
    for_each_eight<T>(shared_bytes, sums, m0, n0,
                      [&](float *x, size_t m, size_t n) { epilogue_eight<E>(f, x, m, n); });
}

} // namespace

enum status gemm16_v4_ring(const struct gemm16_problem *p, void *workspace, device_stream stream,
                           struct error *error) {
    unsigned tiles;
    TRY(gemm16_check(p, error));
    TRY(gemm16_needs(80, "v4_ring", error));
    if (!has_plain_rows(p)) {
        return gemm16_v1_tile(p, workspace, stream, error);
    }
    TRY(count_tiles(p, 128, 128, &tiles, error));
    if (tiles == 0) {
        return STATUS_OK;
    }
    unsigned tiles_n = (unsigned)((p->N + 127) / 128);
    return for_element(p->dtype, [&](auto type) {
        typedef tile_of<typename decltype(type)::E> T;
        TRY(allow_shared<gemm16_ring<T>>(T::BYTES, error));
        gemm16_ring<T><<<tiles, T::THREADS, T::BYTES, stream>>>(*p, tiles_n, gemm16_epilogue_of(p));
        return device_launched("gemm16_ring", error);
    });
}
