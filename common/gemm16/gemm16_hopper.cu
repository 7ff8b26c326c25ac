/**
 * @file gemm16_hopper.cu
 * @brief gemm16_hopper(): its kernels, for factors as a linear layer has them, and which one a
 * problem gets.
 */
#include "common/gemm16/gemm16_hopper.cuh"

#include <math.h>

namespace {

/* The kernels, and what decides between them. */
enum { TILES = 5 };

/* As measured on an H200: how long a product takes relative to the fastest tile's, and how deep a
   tile one could multiply while its results are finished: stored; residual added; activated. */
const struct gemm16_hopper_tile tiles[TILES] = {
    {128, 256, false, 1.06, {100.0, 380.0, 950.0}}, {128, 128, true, 1.15, {500.0, 1200.0, 2875.0}},
    {128, 192, true, 1.0, {750.0, 2300.0, 3750.0}}, {64, 192, true, 1.27, {500.0, 1200.0, 2666.0}},
    {64, 128, true, 1.46, {400.0, 1000.0, 2400.0}},
};

template <typename T>
enum status launch(const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                   device_stream stream, struct error *error) {
    struct hopper_sizes<true> sizes;
    sizes.steps = (unsigned)ceil_div(p->K, BK);
    sizes.pairs_m = (unsigned)ceil_div(p->M, 2 * T::BM);
    sizes.tiles_n = (unsigned)ceil_div(p->N, T::BN);
    size_t tiles = (size_t)sizes.pairs_m * sizes.tiles_n;
    return launch_sized<T>(p, gpu, gemm16_finish_of(p), sizes, tiles, stream, error);
}

template <typename E>
enum status launch_tile(int tile, const struct gemm16_problem *p, const struct gemm16_gpu *gpu,
                        device_stream stream, struct error *error) {
    switch (tile) {
    case 0:
        return launch<hopper_tile<E, 256, 1, false>>(p, gpu, stream, error);
    case 1:
        return launch<hopper_tile<E, 128, 2, true>>(p, gpu, stream, error);
    case 2:
        return launch<hopper_tile<E, 192, 2, true>>(p, gpu, stream, error);
    case 3:
        return launch<hopper_tile<E, 192, 1, true>>(p, gpu, stream, error);
    default:
        return launch<hopper_tile<E, 128, 1, true>>(p, gpu, stream, error);
    }
}

/* Time of the busiest cluster, in products. In turns, one group multiplies while the other one
   finishes: whichever takes longer counts, and the last tile's end. */
double cost_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
               const struct gemm16_gpu *gpu) {
    constexpr double START = 100.0; /* a tile's first stages come so much later, in steps of K */
    size_t count = ceil_div(p->M, 2 * t->rows) * ceil_div(p->N, t->columns);
    double each = (double)ceil_div(count, (size_t)gpu->multiprocessors / 2);
    double area = (double)(t->rows * t->columns);
    double multiply = area * ((double)p->K + START) * t->slowness;
    double finish = area * t->finish[p->activate ? 2 : p->residual != NULL ? 1 : 0];
    if (!t->turns) {
        return each * (multiply + finish);
    }
    return fmax(each * multiply + finish, ceil(each / 2.0) * (multiply + finish));
}

int choose(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    int best = 0;
    for (int i = 1; i < TILES; i++) {
        if (cost_of(&tiles[i], p, gpu) < cost_of(&tiles[best], p, gpu)) {
            best = i;
        }
    }
    return best;
}

bool is_turned(const struct gemm16_problem *p) {
    return p->in_is_transposed || p->weight_is_transposed;
}

} // namespace

const struct gemm16_hopper_tile *gemm16_hopper_tiles(const struct gemm16_problem *p, int *count) {
    if (is_turned(p)) {
        return gemm16_hopper_turned_tiles(count);
    }
    *count = TILES;
    return tiles;
}

/* Whether this program has code for the GPU's own instructions: only then barriers are there. */
static bool has_code(void) {
    cudaFuncAttributes attributes;
    typedef hopper_tile<__half, 256, 1, false> any;
    cudaError_t code = cudaFuncGetAttributes(&attributes, gemm16_wgmma<any>);
    (void)cudaGetLastError();
    return code == cudaSuccess && attributes.sharedSizeBytes > 0 && find_encode() != NULL;
}

bool gemm16_hopper_can(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    static const bool code = gpu->major == 9 && has_code();
    bool plain = !is_turned(p), sums = p->bias == NULL && !p->activate;
    return code && gpu->major == 9 && gemm16_has_whole_pieces(p) && p->K > 0 &&
           (plain || (sums && gemm16_finish_of(p).vector));
}

bool gemm16_hopper_is_faster(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    size_t count = ceil_div(p->M, 64) * ceil_div(p->N, 128);
    if (is_turned(p)) { /* K may be cut */
        count *= ceil_div(p->K, 512);
    }
    return p->M > 64 && count >= (size_t)gpu->multiprocessors / 2;
}

enum status gemm16_hopper(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int tile,
                          size_t parts, void *workspace, device_stream stream,
                          struct error *error) {
    if (is_turned(p)) {
        return gemm16_hopper_turned(p, gpu, tile, parts, workspace, stream, error);
    }
    int chosen = tile < 0 ? choose(p, gpu) : tile;
    return p->dtype == NN_F16 ? launch_tile<__half>(chosen, p, gpu, stream, error)
                              : launch_tile<__nv_bfloat16>(chosen, p, gpu, stream, error);
}
