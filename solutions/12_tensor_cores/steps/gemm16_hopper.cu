/**
 * @file gemm16_hopper.cu
 * @brief gemm16_hopper(): which of v10's kernels for Hopper a problem gets.
 */
#include <math.h>

#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"
#include "solutions/12_tensor_cores/steps/ladder.h"

static size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

static bool is_transposed(const struct gemm16_problem *p) {
    return p->in_is_transposed || p->weight_is_transposed;
}

const struct gemm16_hopper_tile *gemm16_hopper_tiles(const struct gemm16_problem *p, int *count) {
    /* As measured: see README.md. The time of a product relative to the fastest tile's, and the
       steps of K that take as long as the epilogue: plain, with residual, with activation. */
    static const struct gemm16_hopper_tile plain[] = {
        {256, 256, 2, false, 1.0, {100.0, 150.0, 400.0}},
        {256, 128, 2, true, 1.1, {300.0, 400.0, 800.0}},
        {128, 192, 1, false, 1.05, {100.0, 150.0, 400.0}},
        {64, 192, 1, true, 1.27, {300.0, 400.0, 800.0}},
        {128, 128, 1, false, 1.1, {100.0, 150.0, 400.0}},
        {128, 96, 1, false, 1.3, {100.0, 150.0, 400.0}},
    };
    static const struct gemm16_hopper_tile transposed[] = {
        {256, 256, 2, false, 1.0, {100.0, 200.0, 0.0}},
        {128, 192, 1, false, 1.05, {100.0, 200.0, 0.0}},
        {128, 128, 1, false, 1.1, {100.0, 200.0, 0.0}},
    };
    *count = is_transposed(p) ? (int)(sizeof transposed / sizeof *transposed)
                              : (int)(sizeof plain / sizeof *plain);
    return is_transposed(p) ? transposed : plain;
}

/* Time of the busiest cluster, in products of one of its multiprocessors. Ping-pong: one warpgroup
   multiplies during the other one's epilogue; the longer of the two counts, and the epilogue of the
   last tile. Split-K: BYTE for each byte of partial sums, written and read, LAUNCH for the second
   kernel. */
static double cost_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
                      const struct gemm16_gpu *gpu, size_t splits) {
    constexpr double START = 100.0, BYTE = 415.0, LAUNCH = 4e6;
    size_t count = divide_up(p->M, t->rows) * divide_up(p->N, t->columns) * splits;
    double clusters = (double)(gpu->multiprocessors / t->blocks);
    double each = ceil((double)count / fmax(clusters, 1.0));
    double area = (double)(t->rows * t->columns / (size_t)t->blocks);
    double depth = (double)(divide_up(divide_up(p->K, 64), splits) * 64);
    double multiply = area * (depth + START) * t->slowness;
    int kind = splits > 1 ? 0 : p->activate ? 2 : p->residual != NULL ? 1 : 0;
    double epilogue = area * t->epilogue[kind];
    double products =
        t->pingpong ? fmax(each * multiply + epilogue, ceil(each / 2.0) * (multiply + epilogue))
                    : each * (multiply + epilogue);
    double sums = (double)(splits * p->M * p->N) * sizeof(float);
    return products + (splits > 1 ? sums * BYTE / gpu->multiprocessors + LAUNCH : 0.0);
}

/* `splits`, or fewer if the workspace has no room for their partial sums; at least 1. Rows of N
   that are no whole 16-byte pieces the TMA does not store. */
static size_t within_room(const struct gemm16_problem *p, size_t splits) {
    constexpr size_t MOST_ROWS =
        256; /* of a cluster's tiles: partial sums are those of whole ones */
    size_t rows = divide_up(p->M, MOST_ROWS) * MOST_ROWS;
    size_t room = GEMM16_WORKSPACE_BYTES / sizeof(float) / rows / p->N;
    splits = splits < room ? splits : room;
    return splits < 1 || p->N % 8 != 0 ? 1 : splits;
}

/* The most splits to try, none with less than 4 steps. */
static size_t max_splits(const struct gemm16_problem *p) {
    constexpr size_t MOST = 16;
    size_t most = divide_up(p->K, 64) / 4;
    return within_room(p, most < MOST ? most : MOST);
}

struct plan {
    int tile;
    size_t splits; /* of K */
};

/* The cheapest; `only` -1: of all tiles. */
static struct plan choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int only) {
    int count;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(p, &count);
    int first = only < 0 ? 0 : only, end = only < 0 ? count : only + 1;
    struct plan best = {first, 1};
    double least = INFINITY;
    for (int tile = first; tile < end; tile++) {
        for (size_t splits = 1; splits <= max_splits(p); splits++) {
            double cost = cost_of(&tiles[tile], p, gpu, splits);
            if (cost < least) {
                least = cost;
                best = {tile, splits};
            }
        }
    }
    return best;
}

bool gemm16_hopper_can(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    bool bare = p->bias == NULL && !p->activate &&
                (p->residual == NULL || p->residual_is_float == (p->out_dtype == NN_F32));
    return gpu->major == 9 && gemm16_hopper_code() && gemm16_has_whole_pieces(p) && p->K > 0 &&
           (!is_transposed(p) || (bare && gemm16_epilogue_of(p).vector));
}

bool gemm16_hopper_is_faster(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    size_t count = divide_up(p->M, 64) * divide_up(p->N, 128) * divide_up(p->K, 512);
    return p->M > 64 && count >= (size_t)gpu->multiprocessors / 2;
}

enum status gemm16_hopper(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int tile,
                          size_t splits, void *workspace, device_stream stream,
                          struct error *error) {
    struct plan plan = choose(p, gpu, tile);
    plan.splits = splits == 0 ? plan.splits : within_room(p, splits);
    constexpr unsigned BAND = 8;
    if (!is_transposed(p)) {
        return gemm16_hopper_plain(p, gpu, plan.tile, plan.splits, BAND, workspace, stream, error);
    }
    return gemm16_hopper_transposed(p, gpu, plan.tile, plan.splits, BAND, workspace, stream, error);
}
