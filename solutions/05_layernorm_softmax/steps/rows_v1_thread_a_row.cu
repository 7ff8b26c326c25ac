/**
 * @file rows_v1_thread_a_row.cu
 * @brief The formula: one thread a row, two or three walks along it.
 *
 * Neighbouring threads are a whole row apart: 32 sectors a load for 128 useful
 * bytes, if the rest of a sector is gone from the cache before its turn comes.
 * And a batch has too few rows to keep a GPU busy: 2048 rows are 64 warps, half
 * a warp a multiprocessor.
 *
 * Launch: blocks of 128 threads, a row each, on in steps of the grid.
 * Bytes: each element read three times (RMSNorm two), written once.
 */
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/05_layernorm_softmax/steps/parts.cuh"

enum { BLOCK = 128, MOST_BLOCKS = 1 << 20 };

template <int OP, typename T>
static __global__ void __launch_bounds__(BLOCK) thread_a_row(struct rows_problem p) {
    for (size_t row = (size_t)blockIdx.x * BLOCK + threadIdx.x; row < p.rows;
         row += (size_t)gridDim.x * BLOCK) {
        const T *x = (const T *)p.in + row * p.C;
        T *y = (T *)p.out + row * p.C;
        const uint8_t *mask = mask_of<OP>(p, row);
        float first = first_of_none<OP>(), spread = 0.0f;
        for (size_t c = 0; HAS_CENTRE<OP> && c < p.C; c++) {
            first = first_of<OP>(first, element<OP>(x, mask, c));
        }
        float centre = centre_of<OP>(first, p.C);
        for (size_t c = 0; c < p.C; c++) {
            spread += spread_of<OP>(element<OP>(x, mask, c), centre);
        }
        float scale = scale_of<OP>(spread, p);
        for (size_t c = 0; c < p.C; c++) {
            store_rounded(y + c, finish_at<OP, T>(p, c, element<OP>(x, mask, c), centre, scale));
        }
    }
}

enum status rows_v1_thread_a_row(const struct rows_problem *problem, void *workspace,
                                 device_stream stream, struct error *error) {
    (void)workspace;
    bool empty;
    enum status status = rows_check(problem, &empty, error);
    if (status != STATUS_OK || empty) {
        return status;
    }
    size_t blocks = (problem->rows + BLOCK - 1) / BLOCK;
    unsigned grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    with_op_and_type(*problem, [&](auto op, auto t) {
        thread_a_row<decltype(op)::value, decltype(t)><<<grid, BLOCK, 0, stream>>>(*problem);
    });
    return device_launched("rows_v1_thread_a_row", error);
}
