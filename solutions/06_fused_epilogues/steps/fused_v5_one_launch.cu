/**
 * @file fused_v5_one_launch.cu
 * @brief The last block of a band of rows computes the band's LayerNorm: one launch.
 *
 * Changes since v4: a counter for each band of tiles, in the workspace's zeros. A block
 * that has stored its tile counts up; the one that finds all others of its band there
 * sets the counter back and normalises the band's rows, a warp a row.
 *
 * Why: no second launch. Where it applies: FUSED_LINEAR_ADD_NORM without split-K, rows of
 * up to 1024 floats that are 16-byte aligned; v4 does everything else. What it costs: one
 * block normalises a band, 24 rows a warp for 96, while v4's second kernel has the whole GPU;
 * and at the end of the last wave all other blocks are idle.
 *
 * Order: a thread's stores, then __threadfence(), then the block's barrier, then the
 * counter: a block that reads the count sees the stores. Rows are read past the L1 cache,
 * which is not coherent with other multiprocessors' stores.
 *
 * Launches: 1. Bytes: as v4.
 *
 * Measured on an NVIDIA H200, 2026-11-21, 8192 x 768 x 768: 0.2788 ms after 0.2247 (v4); the lone
 * add alone 0.2121. The 0.067 ms beyond that are two waves of blocks, whose last ones do 24 rows a
 * warp: 1.4 us a row, which is about one round trip to L2. v7 needs one launch, too, and 0.2254.
 */
#include "common/cuda/warp.cuh"
#include "solutions/06_fused_epilogues/steps/gemm.cuh"

/* Lanes of a warp; times four floats a lane holds of a row. */
enum { WARP = 32, FOURS = 8, MOST_COLUMNS = WARP * FOURS * 4 };

struct banded_gemm : fused_gemm<identity, identity> {
    struct nn_norm norm;
    unsigned *counters; /* one for each band of T::BM rows, 0 before and after */
};

static __device__ __forceinline__ float square(float x) {
    return x * x;
}

/* One row in place, by a warp. */
static __device__ __forceinline__ void normalise(const banded_gemm &p, float *row, size_t first) {
    float4 x[FOURS];
    float total = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        size_t c = first + i * WARP * 4;
        x[i] = c < p.N ? __ldcg((const float4 *)(row + c)) : float4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        total += x[i].x + x[i].y + (x[i].z + x[i].w);
    }
    float mean = warp_sum(total) / (float)p.N;
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        if (first + i * WARP * 4 < p.N) {
            squares += square(x[i].x - mean) + square(x[i].y - mean) + square(x[i].z - mean) +
                       square(x[i].w - mean);
        }
    }
    float scale = 1.0f / sqrtf(warp_sum(squares) / (float)p.N + p.norm.eps);
#pragma unroll
    for (int i = 0; i < FOURS; i++) {
        size_t c = first + i * WARP * 4;
        if (c < p.N) {
            float4 w = *(const float4 *)(p.norm.weight + c);
            float4 b = *(const float4 *)(p.norm.bias + c);
            *(float4 *)(row + c) = {
                (x[i].x - mean) * scale * w.x + b.x, (x[i].y - mean) * scale * w.y + b.y,
                (x[i].z - mean) * scale * w.z + b.z, (x[i].w - mean) * scale * w.w + b.w};
        }
    }
}

/* Whether all tiles of the band are stored, and this block's was the last. */
template <class T>
static __device__ __forceinline__ bool band_is_complete(const banded_gemm &p, size_t m) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned columns = (unsigned)((p.N + T::BN - 1) / T::BN);
        unsigned *counter = p.counters + m / T::BM;
        last = atomicAdd(counter, 1) == columns - 1;
        if (last) {
            atomicExch(counter, 0);
        }
    }
    __syncthreads();
    __threadfence();
    return last;
}

/* The epilogue with bias and residual; then the last block of a band normalises its rows. */
struct banded_epilogue : fused_epilogue<identity, identity, banded_gemm> {
    template <class T>
    static __device__ __forceinline__ void tile_stored(const banded_gemm &p, size_t m) {
        if (!band_is_complete<T>(p, m)) {
            return;
        }
        size_t end = min(m + T::BM, p.M), lane = threadIdx.x % WARP;
        for (size_t row = m + threadIdx.x / WARP; row < end; row += T::THREADS / WARP) {
            normalise(p, p.C + row * p.N, lane * 4);
        }
    }
};

static void launch(const banded_gemm &p, int shape, device_stream stream) {
    switch (shape) {
    case 0:
        return launch_tile<tile_shape<V10_128x128>, true, banded_epilogue>(p, 1, stream);
    case 1:
        return launch_tile<tile_shape<V10_96x128>, true, banded_epilogue>(p, 1, stream);
    case 2:
        return launch_tile<tile_shape<V10_96x128_2>, true, banded_epilogue>(p, 1, stream);
    case 3:
        return launch_tile<tile_shape<V10_64x64_4>, true, banded_epilogue>(p, 1, stream);
    default:
        return launch_tile<tile_shape<V10_32x64_4>, true, banded_epilogue>(p, 1, stream);
    }
}

/* Bands of 32 rows at least, each with its counter; not the kernels for few rows. */
static bool is_possible(const struct fused_problem *p, struct sgemm_plan plan) {
    bool aligned = aligned16(p->in, p->K) && aligned16(p->weight, p->K) &&
                   aligned16(p->out, p->N) && aligned16(p->bias, p->N) &&
                   aligned16(p->residual, p->N) && aligned16(p->norm.weight, p->N) &&
                   aligned16(p->norm.bias, p->N);
    return aligned && plan.splits == 1 && plan.shape < sgemm_v10_shape_count() - 1 &&
           p->N <= MOST_COLUMNS && p->M / 32 + 1 <= FUSED_ZERO_BYTES / sizeof(unsigned);
}

enum status fused_one_launch(const struct fused_problem *p, struct sgemm_plan plan, void *workspace,
                             device_stream stream, struct error *error) {
    if (!is_possible(p, plan)) {
        return fused_linear_add_norm(p, plan, workspace, stream, error);
    }
    banded_gemm gemm = {};
    (fused_gemm<identity, identity> &)gemm = gemm_of<identity>(p, identity());
    gemm.bias = p->bias;
    gemm.residual = p->residual;
    gemm.aligned = true;
    gemm.norm = p->norm;
    gemm.counters = (unsigned *)workspace;
    launch(gemm, plan.shape, stream);
    return device_launched("the matmul with a LayerNorm", error);
}

enum status fused_v5_one_launch(const struct fused_problem *p, void *workspace,
                                device_stream stream, struct error *error) {
    struct sgemm_plan plan;
    if (p->op != FUSED_LINEAR_ADD_NORM) {
        return fused_v4_residual(p, workspace, stream, error);
    }
    TRY(fused_choose(p, &plan, error));
    return fused_one_launch(p, plan, workspace, stream, error);
}
