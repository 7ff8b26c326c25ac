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

enum finish gemm16_finish_of(const struct gemm16_problem *p) {
    const struct gemm16_epilogue f = gemm16_epilogue_of(p);
    bool residual = f.residual != NULL;
    if (!f.vector || (residual && f.residual_is_float != f.out_is_float) ||
        (f.out_is_float && p->activate)) {
        return FINISH_ANY;
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

/* Which products a table of times is for. */
enum form { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT };

static enum form form_of(const struct gemm16_problem *p) {
    return p->in_is_transposed       ? WEIGHT_GRADIENT
           : p->weight_is_transposed ? INPUT_GRADIENT
                                     : FORWARD;
}

const struct gemm16_hopper_tile *gemm16_hopper_tiles(const struct gemm16_problem *p, int *count) {
    static const struct gemm16_hopper_tile forward[] = {
        {256, 256, 2, false, 0.767, {0.31, 0.68, 4.54, 3.06, 1.86, 2.92, 1.72, 2.15}},
        {256, 192, 2, true, 0.560, {0.30, 0.63, 4.53, 2.80, 1.65, 2.45, 1.37, 2.37}},
        {128, 128, 1, true, 0.387, {0.82, 0.91, 2.95, 2.03, 1.28, 1.82, 1.38, 1.82}},
        {128, 192, 1, false, 0.555, {0.98, 1.08, 4.01, 2.83, 1.90, 2.70, 2.12, 2.27}},
        {64, 192, 1, true, 0.331, {0.68, 0.79, 2.67, 1.94, 1.30, 1.70, 1.23, 1.52}},
    };
    static const struct gemm16_hopper_tile input_gradient[] = {
        {256, 192, 2, true, 0.545, {0.57, 0.57, 0.57, 1.77, 1.37, 2.17, 0.57, 0.57}},
        {128, 192, 1, false, 0.527, {1.06, 1.06, 1.06, 2.26, 1.86, 2.66, 1.06, 1.06}},
        {128, 128, 1, false, 0.361, {1.05, 1.05, 1.05, 1.85, 1.58, 2.12, 1.05, 1.05}},
        {64, 192, 1, true, 0.303, {0.65, 0.65, 0.65, 1.25, 1.05, 1.45, 0.65, 0.65}},
    };
    static const struct gemm16_hopper_tile weight_gradient[] = {
        {256, 192, 2, true, 0.574, {0.55, 0.55, 0.55, 1.75, 0.55, 1.99, 0.55, 0.55}},
        {128, 192, 1, false, 0.530, {0.90, 0.90, 0.90, 2.10, 0.90, 2.22, 0.90, 0.90}},
        {128, 128, 1, false, 0.373, {1.41, 1.41, 1.41, 2.21, 1.41, 1.51, 1.41, 1.41}},
        {64, 192, 1, true, 0.344, {1.29, 1.29, 1.29, 1.89, 1.29, 1.59, 1.29, 1.29}},
    };
    static const struct gemm16_hopper_tile *const tiles[] = {forward, input_gradient,
                                                             weight_gradient};
    static const int counts[] = {(int)(sizeof forward / sizeof *forward),
                                 (int)(sizeof input_gradient / sizeof *input_gradient),
                                 (int)(sizeof weight_gradient / sizeof *weight_gradient)};
    *count = counts[form_of(p)];
    return tiles[form_of(p)];
}

/* The time of a launch, us: from the first block's start to its first products, and of the last
 * epilogue. */
static double start_of(enum form form, const struct gemm16_hopper_tile *t, enum finish finish) {
    static const double start[3][2][8] = {
        {{4.88, 5.11, 6.04, 5.54, 5.29, 5.69, 5.51, 5.38},
         {4.85, 5.17, 6.43, 5.93, 5.31, 5.71, 5.88, 5.77}},
        {{4.95, 4.95, 4.95, 5.45, 5.35, 5.75, 4.95, 4.95},
         {4.98, 4.98, 4.98, 5.48, 5.38, 5.78, 4.98, 4.98}},
        {{5.00, 5.00, 5.00, 5.50, 5.39, 5.56, 5.00, 5.00},
         {5.00, 5.00, 5.00, 5.50, 5.25, 5.39, 5.00, 5.00}},
    };
    return start[form][t->pingpong][finish];
}

/* Time of a product in us: a launch, and the busiest cluster's tiles. Where tiles do not divide
   among clusters the others' idle time counts only in part, as those that work are faster
   meanwhile. Split-K also writes and reads its partial sums. Fitted to times of an H100, for 18
   forward products, plain, and 8 with each epilogue, and 16 of a backward pass. */
static double time_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
                      const struct gemm16_gpu *gpu, enum finish finish, size_t splits) {
    constexpr double MEGABYTE = 1.18, WHOLE = 0.9; /* us; share of whole waves */
    double count = (double)(divide_up(p->M, t->rows) * divide_up(p->N, t->columns) * splits);
    double waves = count / fmax((double)(gpu->multiprocessors / t->blocks), 1.0);
    double each = WHOLE * ceil(waves) + (1.0 - WHOLE) * fmax(waves, 1.0);
    double steps = (double)divide_up(divide_up(p->K, 64), splits);
    double sums = splits > 1 ? (double)(splits * p->M * p->N) * sizeof(float) * 1e-6 : 0.0;
    return start_of(form_of(p), t, finish) + each * (steps * t->step + t->epilogue[finish]) +
           sums * MEGABYTE;
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

/* The fastest; `only` -1: of all tiles. A kernel that is not compiled for this epilogue has no
 * time. */
static struct plan choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int only) {
    int count;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(p, &count);
    int first = only < 0 ? 0 : only, end = only < 0 ? count : only + 1;
    struct plan best = {first, 1};
    double least = INFINITY;
    for (int tile = first; tile < end; tile++) {
        for (size_t splits = 1; splits <= max_splits(p); splits++) {
            enum finish finish = splits > 1 ? FINISH_FLOAT : gemm16_finish_of(p);
            double time =
                time_of(&tiles[tile], p, gpu, finish == FINISH_ANY ? FINISH_PLAIN : finish, splits);
            if (time < least) {
                least = time;
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
