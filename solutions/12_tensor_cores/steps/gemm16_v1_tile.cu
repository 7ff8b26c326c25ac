/**
 * @file gemm16_v1_tile.cu
 * @brief Step 1: lab 04's tile on 16-bit factors, multiplied by fp32 FMA.
 *
 * Where we start. A block computes 128 x 128 results, a thread 8 x 8 of them in registers, from
 * tiles of 8 elements of K in shared memory, which are fp32 there: an element is converted once,
 * when it is copied. Half the bytes of lab 04 come from device memory, and nothing is faster for
 * it:
 *
 * - FLOPs: 2 a multiply-add, 128 a cycle and multiprocessor; tensor cores do 4096.
 * - Bytes from shared memory: 16 floats, 64 bytes, for 64 multiply-adds of a thread.
 *
 * It takes every problem: a factor is a pointer and two strides. Later steps pass on to it what
 * they do not take.
 *
 * Measured: NVIDIA H100 80GB HBM3, 4096 x 4096 x 4096, bf16: 22 TFLOP/s, 3% of cublasLt's.
 */
#include "common/cuda/convert.cuh"
#include "solutions/12_tensor_cores/steps/gemm16_epilogue.cuh"
#include "solutions/12_tensor_cores/steps/helpers.cuh"

namespace {

constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, THREADS = BM / TM * (BN / TN);

/* Element (row, k) of a factor lies at `from` + row * row_stride + k * k_stride. */
struct factor {
    const void *from;
    size_t rows, row_stride, k_stride;
};

/* Copies rows row to row + 128, elements k to k + 8 of K: `to` is (BK, 128). Neighbouring threads
   take neighbours in memory. */
template <typename E>
__device__ __forceinline__ void copy_tile(float (*to)[BM], const struct factor &f, size_t row,
                                          size_t k, size_t K) {
#pragma unroll
    for (int i = 0; i < BM * BK / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x;
        int r = f.k_stride == 1 ? at / BK : at % BM, d = f.k_stride == 1 ? at % BK : at / BM;
        bool inside = row + r < f.rows && k + d < K;
        to[d][r] =
            inside ? to_float(((const E *)f.from)[(row + r) * f.row_stride + (k + d) * f.k_stride])
                   : 0.0f;
    }
}

/* Eight floats of a row of a tile. */
__device__ __forceinline__ void read_row(float *x, const float *row) {
    float4 low = ((const float4 *)row)[0], high = ((const float4 *)row)[1];
    x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
    x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

template <typename E>
__global__ void __launch_bounds__(THREADS)
    gemm16_fma(const struct factor in, const struct factor weight, size_t K, unsigned tiles_n,
               const struct gemm16_epilogue f) {
    __shared__ __align__(16) float a[BK][BM], b[BK][BN];
    size_t m0 = (size_t)(blockIdx.x / tiles_n) * BM, n0 = (size_t)(blockIdx.x % tiles_n) * BN;
    int row = threadIdx.x / (BN / TN) * TM, column = threadIdx.x % (BN / TN) * TN;
    float sums[TM][TN] = {};
    for (size_t k = 0; k < K; k += BK) {
        copy_tile<E>(a, in, m0, k, K);
        copy_tile<E>(b, weight, n0, k, K);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < BK; d++) {
            float x[TM], y[TN];
            read_row(x, a[d] + row);
            read_row(y, b[d] + column);
#pragma unroll
            for (int i = 0; i < TM * TN; i++) {
                sums[i / TN][i % TN] = fmaf(x[i / TN], y[i % TN], sums[i / TN][i % TN]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
        epilogue_eight<E>(f, sums[i], m0 + row + i, n0 + column);
    }
}

struct factor factor_of(const void *from, bool transposed, size_t rows, size_t K) {
    return {from, rows, transposed ? 1 : K, transposed ? rows : 1};
}

} // namespace

enum status gemm16_v1_tile(const struct gemm16_problem *p, void *workspace, device_stream stream,
                           struct error *error) {
    (void)workspace;
    unsigned tiles;
    TRY(gemm16_check(p, error));
    TRY(count_tiles(p, BM, BN, &tiles, error));
    if (tiles == 0) {
        return STATUS_OK;
    }
    const struct factor in = factor_of(p->in, p->in_is_transposed, p->M, p->K);
    const struct factor weight = factor_of(p->weight, p->weight_is_transposed, p->N, p->K);
    unsigned tiles_n = (unsigned)((p->N + BN - 1) / BN);
    return for_element(p->dtype, [&](auto type) {
        gemm16_fma<typename decltype(type)::E>
            <<<tiles, THREADS, 0, stream>>>(in, weight, p->K, tiles_n, gemm16_epilogue_of(p));
        return device_launched("gemm16_fma", error);
    });
}
