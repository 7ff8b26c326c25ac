/**
 * @file gemm16_hopper.cu
 * @brief gemm16_hopper(): which of v10's kernels for Hopper a problem gets.
 */
#include <math.h>

#include "common/cuda/gpu_limits.cuh"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"
#include "solutions/12_tensor_cores/steps/ladder.h"

static size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

static bool is_transposed(const struct gemm16_problem *p) {
    return p->in_is_transposed || p->weight_is_transposed;
}

enum finish gemm16_finish_of(const struct gemm16_problem *p) {
    const struct gemm16_epilogue f = gemm16_epilogue_of(p);
    bool residual = f.residual != NULL;
    if (!f.vector || (residual && f.residual_is_float != f.out_is_float) ||
        (f.out_is_float && p->activate) || (is_transposed(p) && f.bias != NULL)) {
        return FINISH_ANY;
    }
    if (f.gate) {
        return f.out_is_float || p->N % 16 != 0 ? FINISH_ANY : FINISH_GATE;
    }
    if (f.out_is_float) {
        return residual ? FINISH_FLOAT_RESIDUAL : FINISH_FLOAT;
    }
    if (p->activate) {
        return residual               ? FINISH_ACTIVATION
               : p->f == NN_GELU_TANH ? FINISH_GELU_TANH
               : p->f == NN_GELU      ? FINISH_GELU
                                      : FINISH_ACTIVATION;
    }
    return residual ? FINISH_RESIDUAL : f.bias != NULL ? FINISH_BIAS : FINISH_PLAIN;
}

const struct gemm16_hopper_tile *gemm16_hopper_tiles(const struct gemm16_problem *p, int *count) {
    static const struct gemm16_hopper_tile forward[] = {
        {128, 256, 1, 1, 0.699, {0.79, 1.54, 0, 3.20, 5.01, 6.00, 2.95, 4.44, 4.03}},
        {256, 192, 2, 1, 0.517, {0.66, 1.24, 0, 0, 2.46, 3.37, 1.75, 3.00, 2.55}},
        {128, 192, 1, 1, 0.515, {0.45, 1.00, 4.53, 4.50, 1.66, 3.37, 1.00, 2.20, 1.90}},
        {128, 160, 1, 1, 0.454, {0.18, 0.90, 0, 3.70, 1.60, 0, 2.10, 3.89, 1.60}},
        {64, 192, 1, 1, 0.341, {0.96, 0.85, 2.67, 1.30, 1.45, 2.00, 1.58, 2.77, 1.20}},
        {128, 192, 1, 1, 0.520, {0, 0, 0, 2.40, 0, 0, 0, 3.27}},
        {256, 256, 2, 1, 0.714, {1.22, 1.75, 0, 4.00, 5.77, 6.50, 3.59, 5.37}},
        {128, 128, 1, 1, 0.400, {0.20, 0.80, 0, 2.20, 1.40, 0, 1.46, 3.10}},
        {192, 192, 1, 1, 0.780, {1.74, 2.28, 0, 4.60, 4.70, 0, 4.20, 4.59, 4.10}},
        {128, 96, 1, 1, 0.365, {0.50, 0.56, 0, 0.95, 1.00, 0, 1.00, 1.67, 0.90}},
    };
    static const struct gemm16_hopper_tile din[] = {
        {128, 192, 1, 1, 0.520, {1.44, 0, 0, 3.00}},
        {128, 128, 1, 1, 0.360, {0.78, 0, 0, 2.00}},
        {64, 192, 1, 1, 0.303, {1.12, 0, 0, 2.00}},
    };
    static const struct gemm16_hopper_tile dweight[] = {
        {128, 192, 1, 1, 0.441, {0, 0, 0, 0, 4.40, 7.00}},
        {128, 256, 2, 1, 0.300, {0, 0, 0, 0, 3.20, 4.20}},
        {128, 128, 2, 2, 0.327, {0, 0, 0, 0, 4.70, 6.00}},
        {128, 64, 1, 1, 0.185, {0, 0, 0, 0, 2.30, 3.10}},
        {512, 160, 4, 1, 0.385, {0, 0, 0, 0, 4.20, 6.20}},
        {384, 96, 2, 1, 0.373, {0, 0, 0, 0, 3.10, 5.00}},
        {128, 384, 8, 1, 0.173, {0, 0, 0, 0, 1.90, 3.00}},
        {256, 192, 8, 2, 0.240, {0, 0, 0, 0, 4.00, 5.00}},
        {96, 384, 2, 1, 0.373, {0, 0, 0, 0, 3.30, 5.20}},
    };
    *count = p->in_is_transposed
                 ? p->weight_is_transposed ? (int)(sizeof dweight / sizeof *dweight) : 0
             : p->weight_is_transposed ? (int)(sizeof din / sizeof *din)
                                       : (int)(sizeof forward / sizeof *forward);
    return p->in_is_transposed ? dweight : p->weight_is_transposed ? din : forward;
}

/* Whether a tile of 192 x 96 reads a tall matrix in rows of 192 (of `in`; where factors are
   exchanged, of weight), and memory is no wider than an H100's. On an H100 3072 x 768 x
   8192 takes 66 us by such tiles, 768 x 3072 x 8192 56; on an H200 54 and 54. */
static bool is_slow_tall(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p) {
    constexpr int H100 = 5120; /* bits; an H200 has 6016 */
    size_t rows = t->rows == 384 && t->columns == 96   ? p->M
                  : t->rows == 96 && t->columns == 384 ? p->N
                                                       : 0;
    return p->in_is_transposed && rows > 1024 &&
           gpu_attribute(cudaDevAttrGlobalMemoryBusWidth) <= H100;
}

/* Whether pairs of 128 x 256 gain by their tail: K is long, and there are few tiles. On an H200
   2048 cubed takes 26.7 us by them, 27.4 by 128 x 256 alone, 4096 cubed 187.7 and 189.0. */
static bool is_long_in_pairs(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
                             enum finish finish) {
    return t->rows == 256 && t->columns == 256 && p->K >= 2048 && p->N <= 4096 &&
           (finish == FINISH_PLAIN || finish == FINISH_BIAS);
}

/* Time of a product in us: a launch, and the busiest cluster's tiles. Where tiles do not divide
   among clusters the others' idle time counts only in part, as those that work are faster
   meanwhile. Split-K by the workspace also writes and reads its partial sums. Fitted
   to an H100's times of 18 forward products, plain, 16 with most epilogues, and 16 of a backward
   pass, so that the tile chosen is as near as can be to the fastest; five epilogues were then moved
   to what suits an H200 as well (tiles 5, 6, 8 and 9), and six numbers to what an H200 measured
   since descriptors are in uniform registers. A gate of tiles 3, 8 and 9 is an H200's. Set beside
   these, not measured: any other gate, the rarer activations, fp32 added to fp32 in a forward
   product, a residual of din, fp32 results of dweight, and 128 x 256 with a bias or residual. */
static double time_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
                      const struct gemm16_gpu *gpu, enum finish finish, size_t splits) {
    constexpr double START = 5.0, MEGABYTE = 1.18, WHOLE = 0.9; /* us; share of whole waves */
    constexpr double LARGE = 10.0 / 11.0; /* of an H100 are in clusters of four, or eight, blocks */
    constexpr double FAR = 1.1;    /* what L2 costs where N is wide and no cluster shares weights */
    constexpr double TALL = 1.2;   /* is_slow_tall() */
    constexpr double PAIRS = 0.95; /* is_long_in_pairs() */
    if (finish == FINISH_ANY || t->epilogue[finish] == 0.0 ||
        divide_up(p->K, 64) < 4 * (size_t)t->split) {
        return INFINITY;
    }
    double count = (double)(divide_up(p->M, t->rows) * divide_up(p->N, t->columns) * splits);
    double fit = gpu->multiprocessors * (t->blocks > 2 ? LARGE : 1.0) / t->blocks;
    double waves = count / fmax(floor(fit), 1.0);
    double each = WHOLE * ceil(waves) + (1.0 - WHOLE) * fmax(waves, 1.0);
    each *= is_long_in_pairs(t, p, finish) ? PAIRS : 1.0;
    bool far =
        t->blocks == 1 && t->rows <= 128 && t->columns == 192 && p->N > 1024 && !is_transposed(p);
    double step = t->step * (far ? FAR : is_slow_tall(t, p) ? TALL : 1.0);
    double steps = (double)divide_up(divide_up(p->K, 64), splits * (size_t)t->split);
    double sums = splits > 1 ? (double)(splits * p->M * p->N) * sizeof(float) * 1e-6 : 0.0;
    return START + each * (steps * step + t->epilogue[finish]) + sums * MEGABYTE;
}

/* `splits`, or fewer if the workspace has no room for their partial sums; at least 1. Rows of N
   that are no whole 16-byte pieces the TMA does not store. */
static size_t within_room(const struct gemm16_problem *p, size_t splits) {
    constexpr size_t MOST_ROWS =
        256; /* of a cluster's tiles: partial sums are those of whole ones */
    size_t rows = divide_up(p->M, MOST_ROWS) * MOST_ROWS;
    size_t room = GEMM16_WORKSPACE_BYTES / sizeof(float) / rows / p->N;
    splits = splits < room ? splits : room;
    return splits < 1 || p->N % 8 != 0 || is_transposed(p) ? 1 : splits;
}

/* The most splits to try, none with less than 4 steps. */
static size_t max_splits(const struct gemm16_problem *p) {
    constexpr size_t MOST = 16;
    size_t most = divide_up(p->K, 64) / 4;
    return within_room(p, most < MOST ? most : MOST);
}

struct plan {
    int tile;      /* -1: the one for everything else */
    size_t splits; /* of K, by the workspace */
};

/* The fastest of those that are compiled for this epilogue; `only` -1: of all tiles; splits 0: of
   all numbers of them. */
static struct plan choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int only,
                          size_t splits) {
    int count;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(p, &count);
    int first = only < 0 ? 0 : only, end = only < 0 || only >= count ? count : only + 1;
    size_t least_splits = splits == 0 ? 1 : within_room(p, splits);
    size_t most_splits = splits == 0 ? max_splits(p) : least_splits;
    struct plan best = {-1, 1};
    double least = INFINITY;
    for (int tile = first; tile < end; tile++) {
        for (size_t n = least_splits; n <= most_splits; n++) {
            double time =
                time_of(&tiles[tile], p, gpu, n > 1 ? FINISH_FLOAT : gemm16_finish_of(p), n);
            if (time < least) {
                least = time;
                best = {tile, n};
            }
        }
    }
    return best;
}

int gemm16_hopper_choice(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    return choose(p, gpu, -1, 0).tile;
}

bool gemm16_hopper_can(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    return gpu->major == 9 && gemm16_hopper_code() && gemm16_has_whole_pieces(p) && p->K > 0;
}

bool gemm16_hopper_is_faster(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    size_t count = divide_up(p->M, 64) * divide_up(p->N, 128) * divide_up(p->K, 512);
    return p->M > 64 && count >= (size_t)gpu->multiprocessors / 2;
}

/* Tiles of M that run side by side: what blocks that run at the same time share, they get from L2
   at about the same time. Measured where blocks are alone and N is wide: with 16 tiles of M all of
   them are best (2048 x 2560 x 2048: 33 us, by eight 37); where there are many and K is short, none
   (8192 x 3072 x 768: 56 us, by eight 65). Where N is narrow and M is not: 2048 x 768 x 3072 by 128
   x 96 takes 20.0 us by 16, 21.8 by eight (H200, with a bias). */
static unsigned band_of(const struct gemm16_problem *p, int tile) {
    int count;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(p, &count);
    bool alone = tile >= 0 && tiles[tile].blocks == 1;
    if (!alone || p->in_is_transposed) {
        return 8;
    }
    if (p->N <= 1024) {
        return p->M <= 2048 ? 16 : 8;
    }
    return p->M > 2048 && p->K <= 1024 ? 1 : 16;
}

enum status gemm16_hopper(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int tile,
                          size_t splits, void *workspace, device_stream stream,
                          struct error *error) {
    struct plan plan = choose(p, gpu, tile, splits);
    unsigned band = band_of(p, plan.tile);
    if (!is_transposed(p)) {
        return gemm16_hopper_plain(p, gpu, plan.tile, plan.splits, band, workspace, stream, error);
    }
    return gemm16_hopper_transposed(p, gpu, plan.tile, plan.splits, band, workspace, stream, error);
}
