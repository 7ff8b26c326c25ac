/**
 * @file sgemm_v07_double_buffer.cu
 * @brief While one tile is multiplied, the next one is copied, without
 * registers.
 *
 * Changes since v06: two buffers in shared memory, filled by cp.async, which
 * copies from global to shared memory without waiting and without registers.
 * The operands that must be transposed (A, and B in the transposed form) are
 * copied float by float, B plain 16 bytes at a time. One barrier a tile instead
 * of two. Before compute capability 8.0 the same copies are plain loads and
 * stores.
 *
 * Why: relieves latency: v06 loads, waits, multiplies, and nothing is in flight
 * while it multiplies.
 *
 * Launch: as v06. Bytes: K / 16 per element of C. FLOPs: 2 M N K.
 *
 * Measured on an H200 at 1.98 GHz, 4096 x 4096 x 4096: B plain 4.56 ms, 30.1
 * TFLOP/s; B transposed 5.11 ms, 26.9 TFLOP/s. Slower than v06: 0.95x and
 * 0.86x. The copies, float by float, conflict in one bank (v08), and there are
 * four times as many of them.
 */
#include "solutions/04_sgemm/steps/outer_product.cuh"

/* Floats from one row of a tile to the next. */
enum { PITCH = BM };

typedef float tile[BK][PITCH];

/* Asynchronous copies, written out where they are new; later steps take them
   from the toolbox, common/cuda/async_copy.cuh. */

/* Starts a copy of 4 bytes from global to shared memory, or of zeros. Before
   compute capability 8.0: copies. */
static __device__ __forceinline__ void copy4(float *to, const float *from, bool inside) {
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#else
    *to = inside ? *from : 0;
#endif
}

/* Starts a copy of 16 bytes, both sides 16-byte aligned. */
static __device__ __forceinline__ void copy16(float *to, const float *from, bool inside) {
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#else
    float4 zero = {0, 0, 0, 0};
    *(float4 *)to = inside ? *(const float4 *)from : zero;
#endif
}

/* Closes a group of this thread's copies. */
static __device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for this thread's groups but for the PENDING youngest. */
template <int PENDING> static __device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* Starts the copy of BM rows along K, k to k + BK, as (BK, BM). Eight lanes
   read 32 contiguous bytes. What lies outside becomes 0. */
static __device__ __forceinline__ void copy_rows(float (*to)[PITCH], const float *matrix,
                                                 size_t rows, size_t K, size_t first, size_t k) {
#pragma unroll
    for (int i = 0; i < BM * BK; i += THREADS) {
        unsigned e = threadIdx.x + i, depth = e % BK, row = e / BK;
        bool inside = first + row < rows && k + depth < K;
        copy4(&to[depth][row], inside ? matrix + (first + row) * K + k + depth : matrix, inside);
    }
}

/* The same for B as (K, N): BN columns, BK rows. */
static __device__ __forceinline__ void
copy_columns(float (*to)[PITCH], const struct sgemm_problem &p, size_t n, size_t k, bool vector) {
    unsigned depth = threadIdx.x / (BN / 4), column = threadIdx.x % (BN / 4) * 4;
    const float *from = p.B + (k + depth) * p.N + n + column;
    if (vector) {
        bool inside = k + depth < p.K && n + column < p.N;
        copy16(&to[depth][column], inside ? from : p.B, inside);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool inside = k + depth < p.K && n + column + i < p.N;
        copy4(&to[depth][column + i], inside ? from + i : p.B, inside);
    }
}

static __global__ void __launch_bounds__(THREADS) double_buffer(struct sgemm_problem p) {
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
        commit_copies();
    };
    copy(0, 0);
    for (size_t k = 0; k < p.K; k += BK) {
        wait_copies<0>();
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

enum status sgemm_v07_double_buffer(const struct sgemm_problem *problem, void *workspace,
                                    device_stream stream, struct error *error) {
    (void)workspace;
    return launch_tiles<double_buffer>("sgemm_v07_double_buffer", problem, BM, BN, THREADS, stream,
                                       error);
}
