/**
 * @file rows_v3_warp_two_pass.cu
 * @brief One warp a row; its lanes' sums are reduced by shuffles.
 *
 * Changes since v2: 32 threads a row instead of 256, and five shuffles instead
 * of eight levels of shared memory with barriers. Two passes still: first the
 * mean or max, then the rstd or reciprocal sum.
 *
 * Why: relieves the barriers, at which a whole block waits for its slowest warp;
 * warps now continue alone. Rows of some hundred elements keep all lanes busy.
 *
 * Launch: blocks of 256 threads, eight rows, in a grid-stride loop.
 * Bytes: as v2.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/operators.cuh"

enum { WARP = 32, BLOCK = 256, ROWS = BLOCK / WARP };

/* Over GROUP neighbouring lanes, in each of them: a butterfly of shuffles. All lanes of the warp
   call it. Later steps take it from the toolbox: warp_reduce() of common/cuda/warp.cuh. */
template <int OP, int GROUP> static __device__ __forceinline__ float lanes_add_or_max(float x) {
#pragma unroll
    for (int offset = GROUP / 2; offset > 0; offset /= 2) {
        x = add_or_max<OP>(x, __shfl_xor_sync(0xffffffffu, x, offset));
    }
    return x;
}

template <int GROUP> static __device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
    for (int offset = GROUP / 2; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    }
    return x;
}

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) warp_two_pass(struct rows_problem p) {
    unsigned lane = threadIdx.x % WARP;
    for (size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / WARP; row < p.rows;
         row += (size_t)gridDim.x * ROWS) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        const uint8_t *mask = mask_of<OP>(p, row);
        float sum_or_max = add_or_max_identity<OP>(), sum = 0.0f;
        for (size_t c = lane; HAS_MEAN_OR_MAX<OP> && c < p.C; c += WARP) {
            sum_or_max = add_or_max<OP>(sum_or_max, element<OP>(x, mask, c));
        }
        float mean_or_max = mean_or_max_of<OP>(lanes_add_or_max<OP, WARP>(sum_or_max), p.C);
        for (size_t c = lane; c < p.C; c += WARP) {
            sum += square_or_exp<OP>(element<OP>(x, mask, c), mean_or_max);
        }
        float rstd_or_rcp = rstd_or_rcp_of<OP>(lanes_sum<WARP>(sum), p);
        for (size_t c = lane; c < p.C; c += WARP) {
            store_rounded(y + c, normalise_at<OP, T>(p, c, element<OP>(x, mask, c), mean_or_max,
                                                     rstd_or_rcp));
        }
    }
}

enum status rows_v3_warp_two_pass(const struct rows_problem *problem, void *workspace,
                                  device_stream stream, struct error *error) {
    (void)workspace;
    return launch_rows(
        "rows_v3_warp_two_pass", *problem, ROWS, error, [&](unsigned grid, auto op, auto t) {
            warp_two_pass<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
        });
}
