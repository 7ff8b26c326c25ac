/**
 * @file rows_v1_thread_a_row.cu
 * @brief The formula: one thread a row, two or three passes over it.
 *
 * Neighbouring threads are a whole row apart: 32 sectors a load for 128 useful
 * bytes, if the rest of a sector has left the cache before it is used.
 * And a batch has too few rows to keep a GPU busy: 2048 rows are 64 warps, half
 * a warp a multiprocessor.
 *
 * Launch: blocks of 128 threads, a row each, in a grid-stride loop.
 * Bytes: each element read three times (RMSNorm two), written once.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/operators.cuh"

enum { BLOCK = 128 };

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) thread_a_row(struct rows_problem p) {
    for (size_t row = (size_t)blockIdx.x * BLOCK + threadIdx.x; row < p.rows;
         row += (size_t)gridDim.x * BLOCK) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        const uint8_t *mask = mask_of<OP>(p, row);
        float sum_or_max = add_or_max_identity<OP>(), sum = 0.0f;
        for (size_t c = 0; HAS_MEAN_OR_MAX<OP> && c < p.C; c++) {
            sum_or_max = add_or_max<OP>(sum_or_max, element<OP>(x, mask, c));
        }
        float mean_or_max = mean_or_max_of<OP>(sum_or_max, p.C);
        for (size_t c = 0; c < p.C; c++) {
            sum += square_or_exp<OP>(element<OP>(x, mask, c), mean_or_max);
        }
        float rstd_or_rcp = rstd_or_rcp_of<OP>(sum, p);
        for (size_t c = 0; c < p.C; c++) {
            store_rounded(y + c, normalise_at<OP, T>(p, c, element<OP>(x, mask, c), mean_or_max,
                                                     rstd_or_rcp));
        }
    }
}

enum status rows_v1_thread_a_row(const struct rows_problem *problem, void *workspace,
                                 device_stream stream, struct error *error) {
    (void)workspace;
    return launch_rows(
        "rows_v1_thread_a_row", *problem, BLOCK, error, [&](unsigned grid, auto op, auto t) {
            thread_a_row<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
        });
}
