/**
 * @file gemm16_hopper_transposed.cu
 * @brief gemm16_hopper(): the kernels where a factor is transposed, and the choice between them.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"

#include <math.h>

namespace {

constexpr size_t MAX_SPLITS = 16;

struct plan {
    int tile;
    size_t splits; /* of K */
};

enum { TILES = 3 };

/* Fitted to times of an H200 for the gradients of BERT-base's layers, with and without split-K, to
   4% on average. The epilogue: plain; added to the existing dW, in fp32. */
const struct gemm16_hopper_tile tiles[TILES] = {
    {128, 256, false, 1.0, {220.0, 920.0, 0.0}},
    {128, 128, true, 1.157, {350.0, 1425.0, 0.0}},
    {128, 192, false, 1.0, {300.0, 1300.0, 0.0}},
};

/* Time of the busiest cluster, in products, as cost_of() of gemm16_hopper.cu; and of split-K: BYTE
   for each byte of partial sums, written and read, LAUNCH for the second kernel. */
double cost_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
               const struct gemm16_gpu *gpu, size_t splits) {
    constexpr double START = 100.0, BYTE = 415.0, LAUNCH = 9.4e6;
    size_t count = ceil_div(p->M, 2 * t->rows) * ceil_div(p->N, t->columns) * splits;
    double each = (double)ceil_div(count, (size_t)gpu->multiprocessors / 2);
    double area = (double)(t->rows * t->columns);
    double depth = (double)(ceil_div(ceil_div(p->K, BK), splits) * BK);
    double sums = splits > 1 ? (double)(splits * p->M * p->N) * sizeof(float) : 0.0;
    double multiply = area * (depth + START) * t->slowness;
    double epilogue = area * t->epilogue[p->residual != NULL && splits == 1 ? 1 : 0];
    double products =
        t->pingpong ? fmax(each * multiply + epilogue, ceil(each / 2.0) * (multiply + epilogue))
                    : each * (multiply + epilogue);
    return products + (splits > 1 ? sums * BYTE / gpu->multiprocessors + LAUNCH : 0.0);
}

/* `splits`, or fewer if the workspace has no room for their partial sums; at least 1. */
size_t within_room(const struct gemm16_problem *p, size_t splits) {
    size_t room = GEMM16_WORKSPACE_BYTES / (p->M * p->N * sizeof(float));
    splits = splits < room ? splits : room;
    return splits < 1 ? 1 : splits;
}

/* The most splits to try, none with less than 4 steps. */
size_t max_splits(const struct gemm16_problem *p) {
    size_t most = ceil_div(p->K, BK) / 4;
    return within_room(p, most < MAX_SPLITS ? most : MAX_SPLITS);
}

/* The cheapest; `only` -1: of all tiles. */
struct plan choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int only) {
    int first = only < 0 ? 0 : only, end = only < 0 ? TILES : only + 1;
    struct plan best = {first, 1};
    for (int tile = first; tile < end; tile++) {
        for (size_t splits = 1; splits <= max_splits(p); splits++) {
            if (cost_of(&tiles[tile], p, gpu, splits) <
                cost_of(&tiles[best.tile], p, gpu, best.splits)) {
                best = {tile, splits};
            }
        }
    }
    return best;
}

/* The epilogue of split-K's first kernel: partial sums go to the workspace. */
struct gemm16_epilogue partial_of(const struct gemm16_problem *p, void *workspace) {
    struct gemm16_epilogue f = {};
    f.out = workspace;
    f.M = p->M;
    f.N = p->N;
    f.activation = -1;
    f.out_is_float = true;
    f.vector = p->N % 8 == 0;
    return f;
}

template <typename T>
enum status launch(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, size_t splits,
                   void *workspace, device_stream stream, struct error *error) {
    struct hopper_sizes<false> sizes;
    sizes.steps = (unsigned)ceil_div(p->K, BK);
    sizes.pairs_m = (unsigned)ceil_div(p->M, 2 * T::BM);
    sizes.tiles_n = (unsigned)ceil_div(p->N, T::BN);
    sizes.split_steps = (unsigned)ceil_div(sizes.steps, splits);
    sizes.splits = (unsigned)ceil_div(sizes.steps, sizes.split_steps); /* none is empty */
    size_t tiles = (size_t)sizes.pairs_m * sizes.tiles_n * sizes.splits;
    const struct gemm16_epilogue f =
        sizes.splits > 1 ? partial_of(p, workspace) : gemm16_epilogue_of(p);
    enum status status = launch_sized<T>(p, gpu, f, sizes, tiles, stream, error);
    if (status == STATUS_OK && sizes.splits > 1) {
        status = gemm16_split_k_reduce(p, (const float *)workspace, sizes.splits, stream, error);
    }
    return status;
}

template <typename E, bool IN_TRANSPOSED, bool WEIGHT_TRANSPOSED>
enum status launch_tile(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                        struct plan plan, void *workspace, device_stream stream,
                        struct error *error) {
    typedef hopper_tile<E, 256, 1, false, IN_TRANSPOSED, WEIGHT_TRANSPOSED> cooperative;
    typedef hopper_tile<E, 128, 2, true, IN_TRANSPOSED, WEIGHT_TRANSPOSED> pingpong;
    typedef hopper_tile<E, 192, 1, false, IN_TRANSPOSED, WEIGHT_TRANSPOSED> narrow;
    switch (plan.tile) {
    case 0:
        return launch<cooperative>(p, gpu, plan.splits, workspace, stream, error);
    case 1:
        return launch<pingpong>(p, gpu, plan.splits, workspace, stream, error);
    default:
        return launch<narrow>(p, gpu, plan.splits, workspace, stream, error);
    }
}

template <typename E>
enum status launch_form(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                        struct plan plan, void *workspace, device_stream stream,
                        struct error *error) {
    if (!p->in_is_transposed) {
        return launch_tile<E, false, true>(p, gpu, plan, workspace, stream, error);
    }
    return p->weight_is_transposed
               ? launch_tile<E, true, true>(p, gpu, plan, workspace, stream, error)
               : launch_tile<E, true, false>(p, gpu, plan, workspace, stream, error);
}

} // namespace

const struct gemm16_hopper_tile *gemm16_hopper_transposed_tiles(int *count) {
    *count = TILES;
    return tiles;
}

enum status gemm16_hopper_transposed(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                     int tile, size_t splits, void *workspace, device_stream stream,
                                     struct error *error) {
    struct plan plan = choose(p, gpu, tile);
    plan.splits = splits == 0 ? plan.splits : within_room(p, splits);
    return p->dtype == NN_F16 ? launch_form<__half>(p, gpu, plan, workspace, stream, error)
                              : launch_form<__nv_bfloat16>(p, gpu, plan, workspace, stream, error);
}
