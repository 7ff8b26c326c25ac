/**
 * @file rows_v5_registers.cu
 * @brief The row is read once, 16 bytes a load, and waits in registers.
 *
 * Changes since v4: a block of 256 threads a row, each with up to eight vectors
 * of 16 bytes, all asked for before the first is used. Then both passes run over
 * registers; so two passes cost nothing and Welford is not needed. Rows that do
 * not fit (more than 2048 vectors), or are not aligned to 16 bytes, go to v4.
 *
 * Why: relieves memory twice: fewer bytes, and more of them on the way at once.
 * An H200 needs about 30 KB in flight on each multiprocessor to be busy.
 *
 * Launch: a block a row. Bytes: each element read once, written once; weights
 * come from L1 or L2.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/vectors.cuh"

enum { WARP = 32, BLOCK = 256, WARPS = BLOCK / WARP, VECTORS = 8 };

/* Over the block, in every thread: each warp writes one number and reads all of them. */
template <int OP, bool SUM>
static __device__ __forceinline__ float block_all(float x, float *meet) {
    x = SUM ? warp_sum<WARP>(x) : warp_first<OP, WARP>(x);
    if (threadIdx.x % WARP == 0) {
        meet[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    x = meet[threadIdx.x % WARPS];
    return SUM ? warp_sum<WARPS>(x) : warp_first<OP, WARPS>(x);
}

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) registers(struct rows_problem p) {
    __shared__ float meet[2][WARPS];
    row_view<T> view = view_row<OP, T, true>(p, blockIdx.x);
    int count = view.C / VECTOR_ELEMENTS<T>;
    uint4 bits[VECTORS];
    float first = first_of_none<OP>(), spread = 0.0f;
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        int i = (int)threadIdx.x + j * BLOCK;
        if (i < count) {
            bits[j] = load_vector<OP, T, true>(view, i);
        }
    }
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        int i = (int)threadIdx.x + j * BLOCK;
        if (i < count) {
            bits[j] =
                view.mask != NULL ? hide<T, true>(view, i * VECTOR_ELEMENTS<T>, bits[j]) : bits[j];
            first = HAS_CENTRE<OP> ? vector_first<OP, T>(bits[j], first) : 0.0f;
        }
    }
    first = HAS_CENTRE<OP> ? block_all<OP, false>(first, meet[0]) : 0.0f;
    float centre = centre_of<OP>(first, p.C);
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        int i = (int)threadIdx.x + j * BLOCK;
        if (i < count) {
            spread += vector_spread<OP, T, true>(view, i, bits[j], centre);
        }
    }
    float scale = scale_of<OP>(block_all<OP, true>(spread, meet[1]), p);
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        int i = (int)threadIdx.x + j * BLOCK;
        if (i < count) {
            finish_vector<OP, T, true>(p, view, i, bits[j], centre, scale);
        }
    }
}

enum status rows_v5_registers(const struct rows_problem *problem, void *workspace,
                              device_stream stream, struct error *error) {
    bool empty;
    enum status status = rows_check(problem, &empty, error);
    if (status != STATUS_OK || empty) {
        return status;
    }
    if (!is_aligned(*problem) || vectors_of(*problem) > VECTORS * BLOCK ||
        problem->rows > INT32_MAX) {
        return rows_v4_warp_online(problem, workspace, stream, error);
    }
    unsigned grid = (unsigned)problem->rows;
    with_op_and_type(*problem, [&](auto op, auto t) {
        registers<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
    });
    return device_launched("rows_v5_registers", error);
}
