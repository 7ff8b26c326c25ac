/**
 * @file sgemm_v08_conflict_free.cu
 * @brief A tile's rows are four floats longer than they need to be.
 *
 * Changes since v07: PITCH, the floats from one row of a tile to the next, is
 * 132 instead of 128.
 *
 * Why: relieves the banks of shared memory. 8 lanes that copy neighbouring
 * values of K write one below the other; 128 floats apart they are all in one
 * bank, and the write takes 8 wavefronts. 132 apart, 8 values of K of 4 rows
 * are 32 different banks. It must be a multiple of 4, for the float4 that are
 * read.
 *
 * Launch: as v07. Bytes: K / 16 per element of C. FLOPs: 2 M N K.
 *
 * Measured on an H200 at 1.98 GHz, 4096 x 4096 x 4096: B plain 4.08 ms, 33.7
 * TFLOP/s; B transposed 4.29 ms, 32 TFLOP/s. 1.12x and 1.19x v07, 1.06x and
 * 1.02x v06.
 */
#include "common/cuda/async_copy.cuh"
#include "solutions/04_sgemm/steps/outer_product.cuh"

/* Floats from one row of a tile to the next. */
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
    unsigned depth = threadIdx.x / (BN / 4), column = threadIdx.x % (BN / 4) * 4;
    const float *from = p.B + (k + depth) * p.N + n + column;
    if (vector) {
        bool inside = k + depth < p.K && n + column < p.N;
        cp_async<16>(&to[depth][column], inside ? from : p.B, inside);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool inside = k + depth < p.K && n + column + i < p.N;
        cp_async<4>(&to[depth][column + i], inside ? from + i : p.B, inside);
    }
}

static __global__ void __launch_bounds__(THREADS) conflict_free(struct sgemm_problem p) {
    __shared__ __align__(16) tile a[2], b[2];
    unsigned columns = (unsigned)((p.N + BN - 1) / BN), t = threadIdx.x;
    size_t m = (size_t)(blockIdx.x / columns) * BM, n = (size_t)(blockIdx.x % columns) * BN;
    bool vector = aligned16(p.B, p.N);
    unsigned row = t / 16 * 4, column = t % 16 * 4;
    float sum[SIDE][SIDE] = {};
    int current = 0;
    auto copy = [&](int buffer, size_t k) {
        copy_rows(a[buffer], p.A, p.M, p.K, m, k);
        if (p.form == SGEMM_B_PLAIN) {
            copy_columns(b[buffer], p, n, k, vector);
        } else {
            copy_rows(b[buffer], p.B, p.N, p.K, n, k);
        }
        cp_async_commit();
    };
    copy(0, 0);
    for (size_t k = 0; k < p.K; k += BK) {
        cp_async_wait<0>();
        __syncthreads(); /* the tile has arrived, and the other buffer has been read
                          */
        if (k + BK < p.K) {
            copy(1 - current, k + BK);
        }
        multiply(sum, a[current], b[current], row, column);
        current = 1 - current;
    }
    store_tile(p, m + row, n + column, sum);
}

enum status sgemm_v08_conflict_free(const struct sgemm_problem *problem, void *workspace,
                                    device_stream stream, struct error *error) {
    (void)workspace;
    return launch_tiles<conflict_free>("sgemm_v08_conflict_free", problem, BM, BN, THREADS, stream,
                                       error);
}
