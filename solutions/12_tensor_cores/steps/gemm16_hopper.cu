/**
 * @file gemm16_hopper.cu
 * @brief gemm16_hopper(): the kernels for factors that are not transposed, and the choice between
 * them.
 */
#include "solutions/12_tensor_cores/steps/gemm16_hopper.cuh"

#include <math.h>

namespace {

/* The kernels, and what decides between them. */
enum { TILES = 5 };

/* As measured on an H200: the time of a product relative to the fastest tile's, and the steps of K
   that take as long as the epilogue: plain, with residual, with activation. */
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
    return launch_sized<T>(p, gpu, gemm16_epilogue_of(p), sizes, tiles, stream, error);
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

/* Time of the busiest cluster, in products. Ping-pong: one warpgroup multiplies during the other
   one's epilogue; the longer of the two counts, and the epilogue of the last tile. */
double cost_of(const struct gemm16_hopper_tile *t, const struct gemm16_problem *p,
               const struct gemm16_gpu *gpu) {
    constexpr double START = 100.0; /* latency of a tile's first stages, in steps of K */
    size_t count = ceil_div(p->M, 2 * t->rows) * ceil_div(p->N, t->columns);
    double each = (double)ceil_div(count, (size_t)gpu->multiprocessors / 2);
    double area = (double)(t->rows * t->columns);
    double multiply = area * ((double)p->K + START) * t->slowness;
    double epilogue = area * t->epilogue[p->activate ? 2 : p->residual != NULL ? 1 : 0];
    if (!t->pingpong) {
        return each * (multiply + epilogue);
    }
    return fmax(each * multiply + epilogue, ceil(each / 2.0) * (multiply + epilogue));
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

bool is_transposed(const struct gemm16_problem *p) {
    return p->in_is_transposed || p->weight_is_transposed;
}

} // namespace

const struct gemm16_hopper_tile *gemm16_hopper_tiles(const struct gemm16_problem *p, int *count) {
    if (is_transposed(p)) {
        return gemm16_hopper_transposed_tiles(count);
    }
    *count = TILES;
    return tiles;
}

/* Whether this program has code for sm_90a: only then the kernel has barriers in shared memory. */
static bool has_code(void) {
    cudaFuncAttributes attributes;
    typedef hopper_tile<__half, 256, 1, false> any;
    cudaError_t code = cudaFuncGetAttributes(&attributes, gemm16_wgmma<any>);
    (void)cudaGetLastError();
    return code == cudaSuccess && attributes.sharedSizeBytes > 0 && tensor_map_available();
}

bool gemm16_hopper_can(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    static const bool code = gpu->major == 9 && has_code();
    bool plain = !is_transposed(p), bare = p->bias == NULL && !p->activate;
    return code && gpu->major == 9 && gemm16_has_whole_pieces(p) && p->K > 0 &&
           (plain || (bare && gemm16_epilogue_of(p).vector));
}

bool gemm16_hopper_is_faster(const struct gemm16_problem *p, const struct gemm16_gpu *gpu) {
    size_t count = ceil_div(p->M, 64) * ceil_div(p->N, 128);
    if (is_transposed(p)) { /* split-K */
        count *= ceil_div(p->K, 512);
    }
    return p->M > 64 && count >= (size_t)gpu->multiprocessors / 2;
}

enum status gemm16_hopper(const struct gemm16_problem *p, const struct gemm16_gpu *gpu, int tile,
                          size_t splits, void *workspace, device_stream stream,
                          struct error *error) {
    if (is_transposed(p)) {
        return gemm16_hopper_transposed(p, gpu, tile, splits, workspace, stream, error);
    }
    int chosen = tile < 0 ? choose(p, gpu) : tile;
    return p->dtype == NN_F16 ? launch_tile<__half>(chosen, p, gpu, stream, error)
                              : launch_tile<__nv_bfloat16>(chosen, p, gpu, stream, error);
}
