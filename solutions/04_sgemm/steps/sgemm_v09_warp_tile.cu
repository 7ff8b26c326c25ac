/**
 * @file sgemm_v09_warp_tile.cu
 * @brief A warp has a tile of its own, 64 x 64, and a thread 16 x 8 results of
 * it.
 *
 * Changes since v08: 128 threads a block instead of 256, each with twice the
 * results, in up to 255 registers; two blocks share a multiprocessor. The lanes
 * of a warp are 4 x 8. While one value of K is multiplied, the fragments of the
 * next are read. Three stages of shared memory instead of two.
 *
 * Why: relieves the issue slots and shared memory: 6 loads for 128
 * multiply-adds instead of 4 for 64; a warp reads 64 rows and 64 columns, 512
 * bytes, for 4096 multiply-adds instead of 640 for 2048. And it respects the
 * register file: its two banks deliver one operand each a cycle, but a
 * multiply-add has three. So columns are visited forwards and backwards in
 * turn: each product shares an operand with the one before, and the hardware
 * keeps that in its operand cache (".reuse" in the machine code).
 *
 * Launch: 128 threads a block; tiles of 128 x 128, in bands of 16 tile rows, so
 * that blocks that run together share rows and columns in L2. Bytes: K / 16 per
 * element of C. FLOPs: 2 M N K.
 *
 * Measured on an H200 at 1.98 GHz, 4096 x 4096 x 4096: B plain 3.33 ms, 41.3
 * TFLOP/s; B transposed 3.53 ms, 39 TFLOP/s. 1.23x and 1.22x v08; 0.82x and
 * 0.79x cuBLAS.
 */
#include "common/cuda/async_copy.cuh"
#include "solutions/04_sgemm/steps/helpers.cuh"

enum { BM = 128, BN = 128, BK = 8, ROWS = 16, COLUMNS = 8, THREADS = 128, STAGES = 3, BAND = 16 };

/* Floats from one row of a tile to the next: see v08. */
enum { PITCH = BM + 4 };

typedef float tile[BK][PITCH];

/* Starts the copy of BM rows along K, k to k + BK, as (BK, BM). Eight lanes
   read 32 contiguous bytes. What lies outside becomes 0. */
static __device__ __forceinline__ void copy_rows(float (*to)[PITCH], const float *matrix,
                                                 size_t rows, size_t K, size_t first, size_t k) {
#pragma unroll
    for (int i = 0; i < BM * BK; i += THREADS) {
        unsigned e = threadIdx.x + i, depth = e % BK, row = e / BK;
        bool inside = first + row < rows && k + depth < K;
        cp_async<4>(&to[depth][row], inside ? matrix + (first + row) * K + k + depth : matrix,
                    inside);
    }
}

/* The same for B as (K, N): BN columns, BK rows. */
static __device__ __forceinline__ void
copy_columns(float (*to)[PITCH], const struct sgemm_problem &p, size_t n, size_t k, bool vector) {
#pragma unroll
    for (int i = 0; i < BK * BN / 4; i += THREADS) {
        unsigned e = threadIdx.x + i, depth = e / (BN / 4), column = e % (BN / 4) * 4;
        const float *from = p.B + (k + depth) * p.N + n + column;
        if (vector) {
            bool inside = k + depth < p.K && n + column < p.N;
            cp_async<16>(&to[depth][column], inside ? from : p.B, inside);
            continue;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            bool inside = k + depth < p.K && n + column + j < p.N;
            cp_async<4>(&to[depth][column + j], inside ? from + j : p.B, inside);
        }
    }
}

/* Four floats, STEP further on four more, COUNT in all. */
template <int COUNT, int STEP>
static __device__ __forceinline__ void read(float *to, const float *from) {
#pragma unroll
    for (int i = 0; i < COUNT / 4; i++) {
        *(float4 *)(to + 4 * i) = *(const float4 *)(from + i * STEP);
    }
}

static __device__ __forceinline__ void multiply(float (*sum)[COLUMNS], const float (*a)[PITCH],
                                                const float (*b)[PITCH], unsigned row,
                                                unsigned column) {
    float x[2][ROWS], y[2][COLUMNS];
    read<ROWS, 16>(x[0], &a[0][row]);
    read<COLUMNS, 32>(y[0], &b[0][column]);
#pragma unroll
    for (int i = 0; i < BK; i++) {
        if (i + 1 < BK) {
            read<ROWS, 16>(x[(i + 1) % 2], &a[i + 1][row]);
            read<COLUMNS, 32>(y[(i + 1) % 2], &b[i + 1][column]);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                int c = r % 2 ? COLUMNS - 1 - j : j;
                sum[r][c] += x[i % 2][r] * y[i % 2][c];
            }
        }
    }
}

static __device__ __forceinline__ void store_tile(const struct sgemm_problem &p, size_t m, size_t n,
                                                  const float (*sum)[COLUMNS]) {
    bool vector = aligned16(p.C, p.N);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 4) {
            size_t row = m + r / 4 * 16 + r % 4, column = n + c / 4 * 32;
            if (vector && row < p.M && column < p.N) {
                store4(p, row, column, &sum[r][c]);
            } else if (!vector) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    store(p, row, column + i, sum[r][c + i]);
                }
            }
        }
    }
}

static __global__ void __launch_bounds__(THREADS, 2) warp_tile(struct sgemm_problem p) {
    __shared__ __align__(16) tile a[STAGES], b[STAGES];
    unsigned rows = (unsigned)((p.M + BM - 1) / BM), columns = (unsigned)((p.N + BN - 1) / BN);
    unsigned band = blockIdx.x / (BAND * columns) * BAND, inside = blockIdx.x % (BAND * columns);
    unsigned height = min((unsigned)BAND, rows - band);
    size_t m = (size_t)(band + inside % height) * BM, n = (size_t)(inside / height) * BN;
    bool vector = aligned16(p.B, p.N);
    /* Bits 1 and 3 of the lane choose the row, the others the column: of lanes
       that read together, neighbours then want the same 16 bytes. */
    unsigned lane = threadIdx.x, warp = threadIdx.x / 32;
    unsigned row = warp / 2 * 64 + 4 * ((lane >> 1 & 1) + (lane >> 2 & 2));
    unsigned column = warp % 2 * 64 + 4 * ((lane & 1) + (lane >> 1 & 2) + (lane >> 2 & 4));
    float sum[ROWS][COLUMNS] = {};
    auto copy = [&](int stage, size_t k) {
        if (k < p.K) {
            copy_rows(a[stage], p.A, p.M, p.K, m, k);
            if (p.form == SGEMM_B_PLAIN) {
                copy_columns(b[stage], p, n, k, vector);
            } else {
                copy_rows(b[stage], p.B, p.N, p.K, n, k);
            }
        }
        cp_async_commit();
    };
    copy(0, 0);
    copy(1, BK);
    int stage = 0;
    for (size_t k = 0; k < p.K; k += BK) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        copy((stage + 2) % STAGES, k + 2 * BK);
        multiply(sum, a[stage], b[stage], row, column);
        stage = (stage + 1) % STAGES;
    }
    store_tile(p, m + row, n + column, sum);
}

enum status sgemm_v09_warp_tile(const struct sgemm_problem *problem, void *workspace,
                                device_stream stream, struct error *error) {
    (void)workspace;
    return launch_tiles<warp_tile>("sgemm_v09_warp_tile", problem, BM, BN, THREADS, stream, error);
}
