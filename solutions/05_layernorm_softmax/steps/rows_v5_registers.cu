/**
 * @file rows_v5_registers.cu
 * @brief The row is read once, 16 bytes a load, and kept in registers.
 *
 * Changes since v4: a block of 256 threads a row, each with up to eight vectors
 * of 16 bytes, all loaded before the first is used. Then both passes run over
 * registers; so two passes cost nothing and Welford is not needed. v4 serves rows
 * that do not fit (more than 2048 vectors) or are not aligned to 16 bytes.
 *
 * Why: relieves memory twice: fewer bytes, and more of them in flight.
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
static __device__ __forceinline__ float block_all(float x, float *exchange) {
    x = SUM ? warp_sum<WARP>(x) : warp_add_or_max<OP, WARP>(x);
    if (threadIdx.x % WARP == 0) {
        exchange[threadIdx.x / WARP] = x;
    }
    __syncthreads();
    x = exchange[threadIdx.x % WARPS];
    return SUM ? warp_sum<WARPS>(x) : warp_add_or_max<OP, WARPS>(x);
}

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) registers(struct rows_problem p) {
    __shared__ float exchange[2][WARPS];
    row_view<T> view = view_row<OP, T, true>(p, blockIdx.x);
    int count = view.C / VECTOR_ELEMENTS<T>;
    uint4 bits[VECTORS];
    float sum_or_max = add_or_max_identity<OP>(), sum = 0.0f;
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
            bits[j] = view.mask != NULL ? apply_mask<T, true>(view, i * VECTOR_ELEMENTS<T>, bits[j])
                                        : bits[j];
            sum_or_max = HAS_MEAN_OR_MAX<OP> ? vector_add_or_max<OP, T>(bits[j], sum_or_max) : 0.0f;
        }
    }
    sum_or_max = HAS_MEAN_OR_MAX<OP> ? block_all<OP, false>(sum_or_max, exchange[0]) : 0.0f;
    float mean_or_max = mean_or_max_of<OP>(sum_or_max, p.C);
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        int i = (int)threadIdx.x + j * BLOCK;
        if (i < count) {
            sum += vector_squares_or_exps<OP, T, true>(view, i, bits[j], mean_or_max);
        }
    }
    float rstd_or_rcp = rstd_or_rcp_of<OP>(block_all<OP, true>(sum, exchange[1]), p);
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        int i = (int)threadIdx.x + j * BLOCK;
        if (i < count) {
            normalise_vector<OP, T, true>(p, view, i, bits[j], mean_or_max, rstd_or_rcp);
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
