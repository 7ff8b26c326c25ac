/**
 * @file gemm16_hopper_turned.cu
 * @brief gemm16_hopper()'s kernels for factors that are transposed, and which one a problem gets.
 */
#include "common/gemm16/gemm16_hopper.cuh"

#include <math.h>

namespace {

constexpr size_t MOST_PARTS = 16;

struct plan {
    int tile;
    size_t parts; /* of K */
};

enum { TILES = 3 };

/* Fitted to what an H200 takes for the gradients of BERT-base's products, in one part and in
   several, to 4% on average. A tile's results: as they are; added to what is there, in fp32. */
const struct gemm16_hopper_tile tiles[TILES] = {
    {128, 256, false, 1.0, {220.0, 920.0, 0.0}},
    {128, 128, true, 1.157, {350.0, 1425.0, 0.0}},
    {128, 192, false, 1.0, {300.0, 1300.0, 0.0}},
};

/* Time of the busiest cluster, in products, as cost_of() of gemm16_hopper.cu, with K in parts:
   BYTE is what a byte of their sums takes, written and read, LAUNCH the second kernel. */
double cost_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
               const struct gemm16_gpu *gpu, size_t parts) {
    constexpr double START = 100.0, BYTE = 415.0, LAUNCH = 9.4e6;
    size_t count = ceil_div(p->M, 2 * t->rows) * ceil_div(p->N, t->columns) * parts;
    double each = (double)ceil_div(count, (size_t)gpu->multiprocessors / 2);
    double area = (double)(t->rows * t->columns);
    double depth = (double)(ceil_div(ceil_div(p->K, BK), parts) * BK);
    double sums = parts > 1 ? (double)(parts * p->M * p->N) * sizeof(float) : 0.0;
    double multiply = area * (depth + START) * t->slowness;
    double finish = area * t->finish[p->residual != NULL && parts == 1 ? 1 : 0];
    double products = t->turns
                          ? fmax(each * multiply + finish, ceil(each / 2.0) * (multiply + finish))
                          : each * (multiply + finish);
    return products + (parts > 1 ? sums * BYTE / gpu->multiprocessors + LAUNCH : 0.0);
}

/* So many parts, or as many as the workspace has room for the sums of; at least 1. */
size_t within_room(const struct gemm16_problem *p, size_t parts) {
    size_t room = GEMM16_WORKSPACE_BYTES / (p->M * p->N * sizeof(float));
    parts = parts < room ? parts : room;
    return parts < 1 ? 1 : parts;
}

/* Most parts of K that are tried, none with less than 4 steps. */
size_t most_parts(const struct gemm16_problem *p) {
    size_t most = ceil_div(p->K, BK) / 4;
    return within_room(p, most < MOST_PARTS ? most : MOST_PARTS);
}

/* The cheapest; `only` -1: of all tiles. */
struct plan choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int only) {
    int first = only < 0 ? 0 : only, end = only < 0 ? TILES : only + 1;
    struct plan best = {first, 1};
    for (int tile = first; tile < end; tile++) {
        for (size_t parts = 1; parts <= most_parts(p); parts++) {
            if (cost_of(&tiles[tile], p, gpu, parts) <
                cost_of(&tiles[best.tile], p, gpu, best.parts)) {
                best = {tile, parts};
            }
        }
    }
    return best;
}

/* What becomes of the sums of a part: they go to the workspace as they are. */
struct gemm16_finish partial_of(const struct gemm16_problem *p, void *workspace) {
    struct gemm16_finish f = {};
    f.out = workspace;
    f.M = p->M;
    f.N = p->N;
    f.activation = -1;
    f.out_is_float = true;
    f.vector = p->N % 8 == 0;
    return f;
}

template <typename T>
enum status launch(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, size_t parts,
                   void *workspace, device_stream stream, struct error *error) {
    struct hopper_sizes<false> sizes;
    sizes.steps = (unsigned)ceil_div(p->K, BK);
    sizes.pairs_m = (unsigned)ceil_div(p->M, 2 * T::BM);
    sizes.tiles_n = (unsigned)ceil_div(p->N, T::BN);
    sizes.part_steps = (unsigned)ceil_div(sizes.steps, parts);
    sizes.parts = (unsigned)ceil_div(sizes.steps, sizes.part_steps); /* none is empty */
    size_t tiles = (size_t)sizes.pairs_m * sizes.tiles_n * sizes.parts;
    const struct gemm16_finish f = sizes.parts > 1 ? partial_of(p, workspace) : gemm16_finish_of(p);
    enum status status = launch_sized<T>(p, gpu, f, sizes, tiles, stream, error);
    if (status == STATUS_OK && sizes.parts > 1) {
        status = gemm16_split_finish(p, (const float *)workspace, sizes.parts, stream, error);
    }
    return status;
}

template <typename E, bool IN_TURNED, bool WEIGHT_TURNED>
enum status launch_tile(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                        struct plan plan, void *workspace, device_stream stream,
                        struct error *error) {
    typedef hopper_tile<E, 256, 1, false, IN_TURNED, WEIGHT_TURNED> halves;
    typedef hopper_tile<E, 128, 2, true, IN_TURNED, WEIGHT_TURNED> turns;
    typedef hopper_tile<E, 192, 1, false, IN_TURNED, WEIGHT_TURNED> narrow;
    switch (plan.tile) {
    case 0:
        return launch<halves>(p, gpu, plan.parts, workspace, stream, error);
    case 1:
        return launch<turns>(p, gpu, plan.parts, workspace, stream, error);
    default:
        return launch<narrow>(p, gpu, plan.parts, workspace, stream, error);
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

const struct gemm16_hopper_tile *gemm16_hopper_turned_tiles(int *count) {
    *count = TILES;
    return tiles;
}

enum status gemm16_hopper_turned(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                                 int tile, size_t parts, void *workspace, device_stream stream,
                                 struct error *error) {
    struct plan plan = choose(p, gpu, tile);
    plan.parts = parts == 0 ? plan.parts : within_room(p, parts);
    return p->dtype == NN_F16 ? launch_form<__half>(p, gpu, plan, workspace, stream, error)
                              : launch_form<__nv_bfloat16>(p, gpu, plan, workspace, stream, error);
}
