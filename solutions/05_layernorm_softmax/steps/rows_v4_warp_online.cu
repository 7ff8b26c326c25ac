/**
 * @file rows_v4_warp_online.cu
 * @brief Both statistics in one pass: Welford's mean and variance, online softmax.
 *
 * Changes since v3: each lane keeps a running count, mean and M2 (softmax: max
 * and sum); Chan's formula merges the lanes. The row is read twice instead of
 * three times.
 *
 * Why: relieves memory where the second read of a row no longer finds it in a
 * cache. It costs a division (softmax: two exponentials) an element, in a chain:
 * each step needs the one before. Where a row is in L1 anyway that is a loss.
 *
 * Launch: as v3. Bytes: each element read twice, written once.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/online.cuh"

enum { WARP = 32, BLOCK = 256, ROWS = BLOCK / WARP };

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) warp_online(struct rows_problem p) {
    unsigned lane = threadIdx.x % WARP;
    for (size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / WARP; row < p.rows;
         row += (size_t)gridDim.x * ROWS) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        const uint8_t *mask = mask_of<OP>(p, row);
        struct row_stats stats = empty_stats<OP>();
        for (size_t c = lane; c < p.C; c += WARP) {
            stats = add<OP>(stats, element<OP>(x, mask, c));
        }
        stats = lanes_merge<OP, WARP>(stats);
        float mean_or_max = stats_mean_or_max<OP>(stats),
              rstd_or_rcp = stats_rstd_or_rcp<OP>(stats, p);
        for (size_t c = lane; c < p.C; c += WARP) {
            store_rounded(y + c, normalise_at<OP, T>(p, c, element<OP>(x, mask, c), mean_or_max,
                                                     rstd_or_rcp));
        }
    }
}

enum status rows_v4_warp_online(const struct rows_problem *problem, void *workspace,
                                device_stream stream, struct error *error) {
    (void)workspace;
    return launch_rows(
        "rows_v4_warp_online", *problem, ROWS, error, [&](unsigned grid, auto op, auto t) {
            warp_online<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
        });
}
