/**
 * @file gemm16_v2_wmma.cu
 * @brief Step 2: tensor cores through CUDA's own interface, nvcuda::wmma.
 *
 * Changes since v1: a warp, not a thread, owns a piece of the tile, 64 x 32 as 4 x 2 fragments of
 * 16 x
 * 16. Tiles stay 16-bit in shared memory. A fragment's layout is not documented, so each sum passes
 * through shared memory before a thread can add a bias to it.
 *
 * Why: a multiply-add of a tensor core needs neither an instruction nor three registers of its own.
 * What limits it now: wmma::load_matrix_sync reads rows that begin in the same banks (here rows are
 * 8 elements longer, so that only pairs collide), and nothing is copied while the block multiplies.
 *
 * Rows of both factors are whole 16-byte pieces; v1 takes the rest.
 *
 * Measured: NVIDIA H100 80GB HBM3, 4096 x 4096 x 4096, bf16: 165 TFLOP/s, 21% of cublasLt's.
 */
#include <mma.h>

#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

namespace {

using namespace nvcuda;

constexpr int BM = 128, BN = 128, WM = 64, WN = 32;
constexpr int WARPS_N = BN / WN, THREADS = BM / WM * WARPS_N * 32;

/* Copies rows row to row + 128 of a (rows, K) factor, elements k to k + 32, 16 bytes a thread. */
template <int BK, typename E>
__device__ __forceinline__ void copy_tile(E *to, const void *factor, size_t row, size_t rows,
                                          size_t k, size_t K) {
    constexpr int PIECES = BK / 8, PITCH = BK + 8;
#pragma unroll
    for (int i = 0; i < BM * PIECES / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x, r = at / PIECES, d = at % PIECES * 8;
        struct eight x = {};
        if (row + r < rows && k + d < K) {
            x = *(const struct eight *)((const E *)factor + (row + r) * K + k + d);
        }
        *(struct eight *)(to + r * PITCH + d) = x;
    }
}

template <typename E>
__global__ void __launch_bounds__(THREADS)
    gemm16_wmma(const struct gemm16_problem p, unsigned tiles_n, const struct gemm16_epilogue f) {
#if __CUDA_ARCH__ >= 800
    constexpr int BK = 32;            /* elements of K a step */
    constexpr int PITCH = BK + 8;     /* elements, of a row of a tile */
    constexpr int SUM_PITCH = WN + 4; /* floats, of a row of a warp's sums */
    __shared__ __align__(128) E a[BM * PITCH], b[BN * PITCH];
    __shared__ __align__(128) float all_sums[THREADS / 32][16 * SUM_PITCH];
    size_t m0 = (size_t)(blockIdx.x / tiles_n) * BM, n0 = (size_t)(blockIdx.x % tiles_n) * BN;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / WARPS_N * WM, column = warp % WARPS_N * WN;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[WM / 16][WN / 16];
    for (int i = 0; i < WM / 16 * (WN / 16); i++) {
        wmma::fill_fragment(sums[i / (WN / 16)][i % (WN / 16)], 0.0f);
    }
    for (size_t k = 0; k < p.K; k += BK) {
        copy_tile<BK>(a, p.in, m0, p.M, k, p.K);
        copy_tile<BK>(b, p.weight, n0, p.N, k, p.K);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BK; d += 16) {
            wmma::fragment<wmma::matrix_b, 16, 16, 16, E, wmma::col_major> right[WN / 16];
            for (int j = 0; j < WN / 16; j++) {
                wmma::load_matrix_sync(right[j], b + (column + 16 * j) * PITCH + d, PITCH);
            }
            for (int i = 0; i < WM / 16; i++) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, E, wmma::row_major> left;
                wmma::load_matrix_sync(left, a + (row + 16 * i) * PITCH + d, PITCH);
                for (int j = 0; j < WN / 16; j++) {
                    wmma::mma_sync(sums[i][j], left, right[j], sums[i][j]);
                }
            }
        }
        __syncthreads();
    }
    float *own = all_sums[warp];
    for (int i = 0; i < WM / 16; i++) {
        for (int j = 0; j < WN / 16; j++) {
            wmma::store_matrix_sync(own + 16 * j, sums[i][j], SUM_PITCH, wmma::mem_row_major);
        }
        __syncwarp();
        for (int at = lane; at < 16 * (WN / 8); at += 32) {
            int r = at / (WN / 8), n = at % (WN / 8) * 8;
            epilogue_eight<E>(f, own + r * SUM_PITCH + n, m0 + row + 16 * i + r, n0 + column + n);
        }
        __syncwarp();
    }
#endif
}

} // namespace

enum status gemm16_v2_wmma(const struct gemm16_problem *p, void *workspace, device_stream stream,
                           struct error *error) {
    unsigned tiles;
    TRY(gemm16_check(p, error));
    TRY(gemm16_needs(80, "v2_wmma", error));
    if (!has_plain_rows(p)) {
        return gemm16_v1_tile(p, workspace, stream, error);
    }
    TRY(count_tiles(p, BM, BN, &tiles, error));
    if (tiles == 0) {
        return STATUS_OK;
    }
    unsigned tiles_n = (unsigned)((p->N + BN - 1) / BN);
    return for_element(p->dtype, [&](auto type) {
        gemm16_wmma<typename decltype(type)::E>
            <<<tiles, THREADS, 0, stream>>>(*p, tiles_n, gemm16_epilogue_of(p));
        return device_launched("gemm16_wmma", error);
    });
}
