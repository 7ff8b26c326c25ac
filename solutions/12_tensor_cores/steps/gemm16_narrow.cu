/**
 * @file gemm16_narrow.cu
 * @brief Some 16 to 128 rows: v4's ring with tiles of few columns, and clusters that split K.
 *
 * A tile of 64 or 128 rows by 128 columns gives 6 to 32 blocks, of which none has enough bytes in
 * flight. Here a tile has 32 or 64 columns, the blocks of a cluster have parts of K, and the ring
 * is deep: for most shapes all of a block's part is asked for before the first step is multiplied.
 * At the end each block adds its share of the tile over all blocks, through distributed shared
 * memory, in the order of the blocks: the same bits every time, no workspace, no second kernel.
 *
 * Weights are loaded with evict_first, see split_cluster.cuh. The TMA would save the threads' work
 * on addresses, but a CUtensorMap that is not in L2 costs the latency of memory once more.
 *
 * Bytes: 2 N K, and `in` from L2 once for every tile of columns. Compute capability 8.0.
 */
#include "common/cuda/async_copy.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/helpers.cuh"
#include "solutions/12_tensor_cores/steps/mma_tile.cuh"
#include "solutions/12_tensor_cores/steps/split_cluster.cuh"

namespace {

/* cp.async of 16 bytes, or of zeros, with a policy for L2. */
__device__ __forceinline__ void copy_with_policy(void *to, const void *from, bool inside,
                                                 unsigned long long policy) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(inside ? 16 : 0), "l"(policy)
                 : "memory");
#endif
}

/* Starts copying SIZE rows of a (rows, K) factor, elements k to k + 64; zeros outside. */
template <int SIZE, int THREADS, bool WITH_POLICY, typename E>
__device__ __forceinline__ void start_rows(E *to, const void *factor, size_t row, size_t rows,
                                           size_t k, size_t K, unsigned long long policy) {
#pragma unroll
    for (int i = 0; i < (SIZE * PIECES + THREADS - 1) / THREADS; i++) {
        int at = i * THREADS + (int)threadIdx.x, r = at / PIECES, piece = at % PIECES;
        if (SIZE * PIECES % THREADS != 0 && r >= SIZE) {
            break;
        }
        bool inside = row + r < rows && k + piece * 8 < K;
        const E *from = (const E *)factor + (inside ? (row + r) * K + k + piece * 8 : 0);
        if (WITH_POLICY) {
            copy_with_policy(piece_at(to, r, piece), from, inside, policy);
        } else {
            cp_async<16>(piece_at(to, r, piece), from, inside);
        }
    }
}

/* This block's share of the tile: adds it over the blocks, then the epilogue. */
template <typename T>
__device__ __forceinline__ void add_parts(const float *own, unsigned rank, unsigned blocks,
                                          const struct gemm16_epilogue &f, size_t m0, size_t n0) {
    constexpr unsigned ROW = T::BN / 8, ALL = T::BM * ROW; /* pieces of eight sums */
    unsigned share = (ALL + blocks - 1) / blocks, end = min((rank + 1) * share, ALL);
    for (unsigned i = rank * share + threadIdx.x; i < end; i += T::THREADS) {
        const float *from = own + i / ROW * T::PITCH + i % ROW * 8;
        float x[8] = {};
        for (unsigned block = 0; block < blocks; block++) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                x[j] += blocks > 1 ? load_from_block(from + j, block) : from[j];
            }
        }
        epilogue_eight<typename T::E>(f, x, m0 + i / ROW, n0 + i % ROW * 8);
    }
}

/* grid: (tiles of columns) * blocks of a cluster, tiles of rows */
template <typename T>
__global__ void __launch_bounds__(T::THREADS)
    gemm16_narrow_tiles(const struct gemm16_problem p, unsigned blocks,
                        const struct gemm16_epilogue f) {
    typedef typename T::E E;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    E *stages = (E *)shared_bytes;
    unsigned rank = blockIdx.x % blocks, all_steps = (unsigned)((p.K + BK - 1) / BK);
    unsigned each = (all_steps + blocks - 1) / blocks, first = min(all_steps, rank * each);
    unsigned steps = min(each, all_steps - first);
    size_t m0 = (size_t)blockIdx.y * T::BM, n0 = (size_t)(blockIdx.x / blocks) * T::BN;
    unsigned long long policy = evict_first_policy();
    auto start = [&](unsigned step, int to) {
        size_t k = (size_t)(first + step) * BK;
        if (step < steps) {
            start_rows<T::BN, T::THREADS, true>(stages + to * T::STAGE + T::BM * BK, p.weight, n0,
                                                p.N, k, p.K, policy);
            start_rows<T::BM, T::THREADS, false>(stages + to * T::STAGE, p.in, m0, p.M, k, p.K, 0);
        }
        cp_async_commit(); /* a group a step, if an empty one */
    };
    struct fragments<T> fragments[2];
    float sums[T::MS][T::NS][4] = {};
    for (int step = 0; step < T::STAGES - 1; step++) {
        start(step, step);
    }
    int at = 0, fill = T::STAGES - 1; /* stages to multiply and to fill */
    for (unsigned step = 0; step < steps; step++) {
        cp_async_wait<T::STAGES - 2>();
        __syncthreads(); /* this step is there, and the one before it read */
        start(step + T::STAGES - 1, fill);
        load_fragments<T>(fragments[0], stages + at * T::STAGE, 0);
        multiply_stage<T>(
            sums, fragments, stages + at * T::STAGE, NULL, []() {}, [](int) {});
        at = at + 1 == T::STAGES ? 0 : at + 1;
        fill = fill + 1 == T::STAGES ? 0 : fill + 1;
    }
    cp_async_wait<0>();
    __syncthreads();
    store_accumulators<T>((float *)shared_bytes, sums);
    if (blocks > 1) {
        meet_blocks();
    } else {
        __syncthreads();
    }
    add_parts<T>((const float *)shared_bytes, rank, blocks, f, m0, n0);
    if (blocks > 1) {
        meet_blocks(); /* no block exits while others read its sums */
    }
}

template <typename T>
enum status launch(const struct gemm16_problem *p, unsigned blocks, device_stream stream,
                   struct error *error) {
    dim3 grid((unsigned)((p->N + T::BN - 1) / T::BN) * blocks,
              (unsigned)((p->M + T::BM - 1) / T::BM));
    TRY(allow_shared<gemm16_narrow_tiles<T>>(T::BYTES, error));
    return launch_clusters<gemm16_narrow_tiles<T>>(p, grid, T::THREADS, T::BYTES, blocks, stream,
                                                   error);
}

} // namespace

/* SHAPE(rows, columns, warps of rows, of columns, stages) */
#define SHAPES              \
    SHAPE(32, 32, 2, 2, 12) \
    SHAPE(64, 64, 2, 4, 6)  \
    SHAPE(128, 32, 4, 2, 5)

const struct gemm16_few_shape *gemm16_narrow_shapes(int *count) {
#define SHAPE(rows, columns, warps_m, warps_n, stages) {rows, columns, BK},
    static const struct gemm16_few_shape shapes[] = {SHAPES};
#undef SHAPE
    *count = (int)(sizeof shapes / sizeof *shapes);
    return shapes;
}

enum status gemm16_narrow(const struct gemm16_problem *p, int shape, unsigned blocks,
                          device_stream stream, struct error *error) {
    return for_element(p->dtype, [&](auto type) {
        typedef typename decltype(type)::E E;
        typedef enum status launcher(const struct gemm16_problem *, unsigned, device_stream,
                                     struct error *);
#define SHAPE(rows, columns, warps_m, warps_n, stages) \
    launch<tile<E, rows, columns, warps_m, warps_n, stages, false, false, true>>,
        static launcher *const launchers[] = {SHAPES};
#undef SHAPE
        return launchers[shape](p, blocks, stream, error);
    });
}
