/**
 * @file gemm16_v3_mma.cu
 * @brief Step 3: mma.sync, ldmatrix and a swizzled tile.
 *
 * Changes since v2: the instruction itself, mma.sync.m16n8k16, whose layout is documented
 * (common/cuda/mma.cuh draws it); ldmatrix, which brings four 8 x 8 matrices a warp; rows of 64
 * elements without padding, their eight pieces permuted by the row; and the next depth's fragments
 * are loaded while one is multiplied (mma_tile.cuh).
 *
 * Why: eight rows of the same piece lie in all 32 banks, so an ldmatrix of 512 bytes takes four
 * wavefronts, not eight. A warp of 64 x 32 reads 96 rows of 32 bytes for 16 mma: 3 KiB for 32768
 * multiply-adds. What limits it now: between two __syncthreads() the block either copies or
 * multiplies.
 *
 * Measured: NVIDIA H100 80GB HBM3, 4096 x 4096 x 4096, bf16: 198 TFLOP/s, 26% of cublasLt's.
 */
#include "solutions/12_tensor_cores/steps/helpers.cuh"
#include "solutions/12_tensor_cores/steps/mma_tile.cuh"

namespace {

template <typename E> using tile_of = tile<E, 128, 128, 2, 4, 1>;

/* Copies SIZE rows of a (rows, K) factor, elements k to k + 64, 16 bytes a thread. */
template <int SIZE, int THREADS, typename E>
__device__ __forceinline__ void copy_tile(E *to, const void *factor, size_t row, size_t rows,
                                          size_t k, size_t K) {
    struct eight x[SIZE * PIECES / THREADS] = {};
#pragma unroll
    for (int i = 0; i < SIZE * PIECES / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x, r = at / PIECES, piece = at % PIECES;
        if (row + r < rows && k + piece * 8 < K) {
            x[i] = *(const struct eight *)((const E *)factor + (row + r) * K + k + piece * 8);
        }
    }
#pragma unroll
    for (int i = 0; i < SIZE * PIECES / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x;
        *(struct eight *)piece_at(to, at / PIECES, at % PIECES) = x[i];
    }
}

template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_ldmatrix(const struct gemm16_problem p, unsigned tiles_n,
                    const struct gemm16_epilogue epilogue) {
    typedef typename T::E E;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    E *stage = (E *)shared_bytes;
    size_t m0 = (size_t)(blockIdx.x / tiles_n) * T::BM, n0 = (size_t)(blockIdx.x % tiles_n) * T::BN;
    struct fragments<T> f[2];
    float sums[T::MS][T::NS][4] = {};
    for (size_t k = 0; k < p.K; k += BK) {
        copy_tile<T::BM, T::THREADS>(stage, p.in, m0, p.M, k, p.K);
        copy_tile<T::BN, T::THREADS>(stage + T::BM * BK, p.weight, n0, p.N, k, p.K);
        __syncthreads();
        load_fragments<T>(f[0], stage, 0);
        multiply_stage<T>(
            sums, f, stage, NULL, []() {}, [](int) {});
        __syncthreads();
    }
    for_each_eight<T>(shared_bytes, sums, m0, n0,
                      [&](float *x, size_t m, size_t n) { epilogue_eight<E>(epilogue, x, m, n); });
}

} // namespace

enum status gemm16_v3_mma(const struct gemm16_problem *p, void *workspace, device_stream stream,
                          struct error *error) {
    unsigned tiles;
    TRY(gemm16_check(p, error));
    TRY(gemm16_needs(80, "v3_mma", error));
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
        TRY(allow_shared<gemm16_ldmatrix<T>>(T::BYTES, error));
        gemm16_ldmatrix<T>
            <<<tiles, T::THREADS, T::BYTES, stream>>>(*p, tiles_n, gemm16_epilogue_of(p));
        return device_launched("gemm16_ldmatrix", error);
    });
}
