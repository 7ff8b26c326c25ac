/**
 * @file rows_v2_block_a_row.cu
 * @brief One block a row; its threads' sums are reduced by a tree in shared memory.
 *
 * Changes since v1: neighbouring threads read neighbouring elements, and a row
 * has 256 threads. Each reduction is a tree: 128 threads add the other 128, then
 * 64, ... with a barrier after each of eight levels.
 *
 * Why: relieves the memory system, which moved sectors that nobody used, and
 * gives every multiprocessor rows to work on. What it costs: some twenty
 * barriers a row, and short rows leave most of the threads idle.
 *
 * Launch: a block of 256 threads a row, in a grid-stride loop.
 * Bytes: from the caches as v1; from memory each element about once.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/operators.cuh"

enum { BLOCK = 256 };

/* Over the block, in every thread. MAXIMUM: of the first pass of softmax; else a sum. */
template <bool MAXIMUM> static __device__ float tree(float x, float *shared) {
    unsigned t = threadIdx.x;
    shared[t] = x;
    __syncthreads();
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        if (t < half) {
            float other = shared[t + half];
            shared[t] = MAXIMUM ? fmaxf(shared[t], other) : shared[t] + other;
        }
        __syncthreads();
    }
    float all = shared[0];
    __syncthreads(); /* before the next reduction writes there */
    return all;
}

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) block_a_row(struct rows_problem p) {
    __shared__ float shared[BLOCK];
    for (size_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        const uint8_t *mask = mask_of<OP>(p, row);
        float sum_or_max = add_or_max_identity<OP>(), sum = 0.0f;
        for (size_t c = threadIdx.x; HAS_MEAN_OR_MAX<OP> && c < p.C; c += BLOCK) {
            sum_or_max = add_or_max<OP>(sum_or_max, element<OP>(x, mask, c));
        }
        if (HAS_MEAN_OR_MAX<OP>) {
            sum_or_max = tree<OP == ROWS_SOFTMAX>(sum_or_max, shared);
        }
        float mean_or_max = mean_or_max_of<OP>(sum_or_max, p.C);
        for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
            sum += square_or_exp<OP>(element<OP>(x, mask, c), mean_or_max);
        }
        float rstd_or_rcp = rstd_or_rcp_of<OP>(tree<false>(sum, shared), p);
        for (size_t c = threadIdx.x; c < p.C; c += BLOCK) {
            store_rounded(y + c, normalise_at<OP, T>(p, c, element<OP>(x, mask, c), mean_or_max,
                                                     rstd_or_rcp));
        }
    }
}

enum status rows_v2_block_a_row(const struct rows_problem *problem, void *workspace,
                                device_stream stream, struct error *error) {
    (void)workspace;
    return launch_rows(
        "rows_v2_block_a_row", *problem, 1, error, [&](unsigned grid, auto op, auto t) {
            block_a_row<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
        });
}
