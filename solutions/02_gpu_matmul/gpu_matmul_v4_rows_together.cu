/**
 * @file gpu_matmul_v4_rows_together.cu
 * @brief Step 4: a warp multiplies one row of weights with several rows of input.
 *
 * Changes since v3: a warp computes out[m .. m + ROWS - 1, n], with a sum for
 * each row of input and the loaded weights used for all of them. ROWS is 1 for
 * a single row (that is v3), 4 for up to four rows, and 8 from there on.
 *
 * Why: a prompt is read many tokens at a time. v3 reads all weights once for
 * each of them, this step once for eight. Decoding, M = 1, gains nothing: each
 * weight is used once and read once, and that is all there is.
 *
 * Grid: ceil(N / 8) x ceil(M / ROWS) blocks of 8 warps, in one dimension, n
 * fastest. FLOPs 2*M*N*K; weights are read ceil(M / ROWS) times.
 */
#include "solutions/02_gpu_matmul/ladder.h"
#include "solutions/02_gpu_matmul/parts.cuh"

enum { WARPS = 8 };

static __device__ __forceinline__ void add_product(float *sum, float4 a, float4 b) {
    *sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}

static __device__ __forceinline__ void add_product(float *sum, float a, float b) {
    *sum += a * b;
}

/*
 * This lane's shares of ROWS dot products of x's rows with w.
 * VECTOR is float or float4; length and stride count VECTORs. `rows` of x exist: the others' sums
 * repeat the last one's and are not stored.
 */
template <int ROWS, typename VECTOR>
static __device__ __forceinline__ void dots(float (&sums)[ROWS], const VECTOR *x, const VECTOR *w,
                                            size_t length, size_t rows, unsigned lane) {
    const VECTOR *row[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        row[r] = x + ((size_t)r < rows ? (size_t)r : rows - 1) * length;
    }
#pragma unroll 4
    for (size_t k = lane; k < length; k += WARP) {
        VECTOR b = w[k];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            add_product(&sums[r], row[r][k], b);
        }
    }
}

template <int ROWS, typename VECTOR>
static __global__ void rows_together(float *out, const float *in, const float *weight, size_t M,
                                     size_t N, size_t K) {
    const size_t floats = sizeof(VECTOR) / sizeof(float);
    unsigned lane = threadIdx.x % WARP;
    size_t items = N * ((M + ROWS - 1) / ROWS);
    size_t first = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    for (size_t i = first; i < items; i += (size_t)gridDim.x * WARPS) {
        size_t n = i % N;
        size_t m = i / N * ROWS;
        float sums[ROWS] = {};
        dots<ROWS>(sums, (const VECTOR *)(in + m * K), (const VECTOR *)(weight + n * K), K / floats,
                   M - m, lane);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            float sum = warp_sum(sums[r]);
            if (lane == 0 && m + r < M) {
                out[(m + r) * N + n] = sum;
            }
        }
    }
}

template <int ROWS>
static void launch(float *out, const float *in, const float *weight, size_t M, size_t N, size_t K,
                   device_stream stream) {
    unsigned blocks = grid_for(N * ceil_div(M, ROWS), WARPS);
    const unsigned threads = WARPS * WARP;
    if (rows_aligned(in, K) && rows_aligned(weight, K)) {
        rows_together<ROWS, float4><<<blocks, threads, 0, stream>>>(out, in, weight, M, N, K);
    } else {
        rows_together<ROWS, float><<<blocks, threads, 0, stream>>>(out, in, weight, M, N, K);
    }
}

enum status gpu_matmul_v4_rows_together(float *out, const float *in, const float *weight, size_t M,
                                        size_t N, size_t K, device_stream stream,
                                        struct error *error) {
    if (M == 0 || N == 0) {
        return STATUS_OK;
    }
    if (M == 1) {
        launch<1>(out, in, weight, M, N, K, stream);
    } else if (M <= 4) {
        launch<4>(out, in, weight, M, N, K, stream);
    } else {
        launch<8>(out, in, weight, M, N, K, stream);
    }
    return device_launched("rows_together", error);
}
