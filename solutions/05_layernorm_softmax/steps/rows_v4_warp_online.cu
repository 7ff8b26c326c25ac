/**
 * @file rows_v4_warp_online.cu
 * @brief Centre and scale in one walk: Welford's mean and variance, online softmax.
 *
 * Changes since v3: each lane keeps count, mean and M2 (softmax: largest and
 * sum) of what it has seen; lanes are put together by Chan's formula. The row
 * is read twice instead of three times.
 *
 * Why: relieves memory where the second read of a row no longer finds it in a
 * cache. It costs a division (softmax: two exponentials) an element, in a chain:
 * each step needs the one before. Where a row is in L1 anyway that is a loss.
 *
 * Launch: as v3. Bytes: each element read twice, written once.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/online.cuh"

enum { WARP = 32, BLOCK = 256, ROWS = BLOCK / WARP, MOST_BLOCKS = 1 << 20 };

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) warp_online(struct rows_problem p) {
    unsigned lane = threadIdx.x % WARP;
    for (size_t row = (size_t)blockIdx.x * ROWS + threadIdx.x / WARP; row < p.rows;
         row += (size_t)gridDim.x * ROWS) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        const uint8_t *mask = mask_of<OP>(p, row);
        struct part part = part_of_none<OP>();
        for (size_t c = lane; c < p.C; c += WARP) {
            part = add<OP>(part, element<OP>(x, mask, c));
        }
        part = lanes_merge<OP, WARP>(part);
        float centre = part_centre<OP>(part), scale = part_scale<OP>(part, p);
        for (size_t c = lane; c < p.C; c += WARP) {
            store_rounded(y + c, finish_at<OP, T>(p, c, element<OP>(x, mask, c), centre, scale));
        }
    }
}

enum status rows_v4_warp_online(const struct rows_problem *problem, void *workspace,
                                device_stream stream, struct error *error) {
    (void)workspace;
    bool empty;
    enum status status = rows_check(problem, &empty, error);
    if (status != STATUS_OK || empty) {
        return status;
    }
    size_t blocks = (problem->rows + ROWS - 1) / ROWS;
    unsigned grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    with_op_and_type(*problem, [&](auto op, auto t) {
        warp_online<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
    });
    return device_launched("rows_v4_warp_online", error);
}
