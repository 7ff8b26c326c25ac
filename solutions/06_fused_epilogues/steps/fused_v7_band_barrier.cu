/**
 * @file fused_v7_band_barrier.cu
 * @brief One launch: the blocks of a band of rows synchronise, once for GELU and once for
 * LayerNorm.
 *
 * Changes since v6: a persistent kernel. All blocks of the grid are on the GPU at the same time (a
 * cooperative launch) and go from tile to tile, so blocks of one band of rows may wait for one
 * another. They have a barrier (v7_band_barrier.cuh), which they use twice:
 *
 *  - before the multiplication, where A needs GELU: each block applies it to its share of the
 *    band, once to each element, and stores the result in the workspace;
 *  - after it: each warp stores mean and squares of its 64 columns of every row. From those of
 *    a whole row each block computes mean and rstd, and the sums never leave the registers.
 *
 * Why: relieves memory and issue slots. v4's second kernel reads and writes (M, N)
 * once more; v6 computes GELU N / 128 times for each element; in v5 one block normalises a band
 * while the others are done.
 *
 * No deadlock: the grid has no more blocks than the GPU holds, and a multiple of a band's blocks,
 * so all tiles of a band are computed at the same time.
 *
 * Where it does not apply (split-K, few rows, unaligned, more than 1024 columns), v6 is called.
 *
 * Launches: 1. Bytes beside the matmul's: the residual; with GELU (M, K) read and
 * written once more.
 *
 * Measured on an NVIDIA H200, 2026-11-21, ms (v6's in brackets): FUSED_GELU_LINEAR_ADD_NORM,
 * 8192 x 768 x 3072: 0.8528 (0.9052), the plain matmul 0.7830. FUSED_LINEAR_ADD_NORM, 8192 x 768 x
 * 768: 0.2254 (0.2247), the plain matmul 0.2069; 2048 x 768 x 768: 0.0668 (0.0661). So one GELU for
 * each element pays; a LayerNorm from registers in one launch is no faster than two launches that
 * overlap. Expected were 0.82 and 0.216: in each round all blocks reach their barriers at about
 * the same time, and no block multiplies meanwhile.
 *
 * What did not help: prefetching the residuals to L2 when a tile begins (0.8590 and 0.2297, where
 * 0.8545 and 0.2265 were measured without) or a few at each stage (0.8707 and 0.2283 against 0.8529
 * and 0.2254); starting half of the blocks later, so that some multiply while others wait (at
 * best 0.3% and 0.9% faster, by 48 and 8 thousand cycles; by more it is slower); GELU in the
 * prologue of A, as in v6 (0.9248).
 */
#include "solutions/06_fused_epilogues/steps/v7_moments.cuh"

/* The epilogue: LayerNorm of the tile's rows, with one wait for the band. */
template <class T>
static __device__ __forceinline__ void
layernorm_epilogue(const band_gemm &p, const struct place &at, const struct thread_tile &s,
                   const float (&sum)[T::ROWS][8], float *shared, struct band_barrier &barrier) {
    own_rows<T> own;
    own.first_row = at.m + s.row;
    own.first_column = at.n + s.column;
    own.slice = s.slice;
    add_bias_and_residual(own, p, sum);
    store_moments(own, p);
    wait_for_band(barrier);
    float2 *rows = (float2 *)shared;
    if (threadIdx.x < T::BM && at.m + threadIdx.x < p.M) {
        rows[threadIdx.x] = combine_moments(p, at.m + threadIdx.x);
    }
    __syncthreads();
    leave_barrier(barrier);
    store_normalised(own, p, at.m, rows);
    __syncthreads(); /* the next tile's copies overwrite `rows` */
}

template <class T>
static __global__ void __launch_bounds__(T::THREADS, 256 / T::THREADS)
    rows_meet(band_gemm p, unsigned tiles, unsigned members) {
    extern __shared__ __align__(16) float shared[];
    struct thread_tile s = find_thread_tile<T>();
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        unsigned band = tile / members, member = tile % members;
        struct place at = {(size_t)band * T::BM, (size_t)member * T::BN, 0, p.K};
        struct band_barrier barrier = {p.counters + band, members, 0};
        if (p.raw != NULL) {
            activate_share<T>(p, at.m, member, members);
            wait_for_band(barrier);
        }
        float sum[T::ROWS][8] = {};
        multiply_tile<T>(sum, p, at, s, shared);
        cp_async_wait<0>();
        if (T::SLICES > 1) {
            add_slices<T>(sum, shared, s.slice);
        }
        layernorm_epilogue<T>(p, at, s, sum, shared, barrier);
    }
}

/* Blocks of as many whole bands as fit on the GPU at the same time; 0: not one band fits. */
template <class T> static unsigned blocks_together(unsigned members) {
    int device = 0, multiprocessors = 0, fitting = 0;
    const size_t BYTES = T::FLOATS * sizeof(float);
    bool known = cudaGetDevice(&device) == cudaSuccess &&
                 cudaFuncSetAttribute(rows_meet<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      (int)BYTES) == cudaSuccess &&
                 cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) ==
                     cudaSuccess &&
                 cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fitting, rows_meet<T>, T::THREADS,
                                                               BYTES) == cudaSuccess;
    return known ? (unsigned)(fitting * multiprocessors) / members * members : 0;
}

/* @return whether it was launched; the caller asks for the launch's error */
template <class T> static bool launch(const band_gemm &p, device_stream stream) {
    unsigned members = (unsigned)((p.N + T::BN - 1) / T::BN);
    size_t bands = (p.M + T::BM - 1) / T::BM, tiles = bands * members;
    unsigned together = blocks_together<T>(members);
    if (together == 0 || bands > FUSED_ZERO_BYTES / sizeof(unsigned)) {
        return false;
    }
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = tiles < together ? (unsigned)tiles : together;
    config.blockDim = T::THREADS;
    config.dynamicSmemBytes = T::FLOATS * sizeof(float);
    config.stream = stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, rows_meet<T>, p, (unsigned)tiles, members);
    return true;
}

/* 96 x 128 replaces 128 x 128, whose registers do not suffice with a loop over tiles around the
   mainloop: three times as many multiply-adds find two operands in one register bank. */
static bool launch_shape(const band_gemm &p, int shape, device_stream stream) {
    switch (shape) {
    case 0:
    case 1:
        return launch<tile_shape<V10_96x128>>(p, stream);
    case 2:
        return launch<tile_shape<V10_96x128_2>>(p, stream);
    case 3:
        return launch<tile_shape<V10_64x64_4>>(p, stream);
    default:
        return launch<tile_shape<V10_32x64_4>>(p, stream);
    }
}

static size_t moments_count(const struct fused_problem *p) {
    return p->M * ((p->N + GROUP - 1) / GROUP);
}

static bool is_possible(const struct fused_problem *p, struct sgemm_plan plan) {
    bool aligned = aligned16(p->in, p->K) && aligned16(p->weight, p->K) &&
                   aligned16(p->out, p->N) && aligned16(p->bias, p->N) &&
                   aligned16(p->residual, p->N) && aligned16(p->norm.weight, p->N) &&
                   aligned16(p->norm.bias, p->N);
    bool gelu_in = p->op == FUSED_GELU_LINEAR_ADD_NORM;
    size_t floats = 2 * moments_count(p) + (gelu_in ? p->M * p->K : 0) + GROUP;
    return aligned && plan.splits == 1 && plan.shape < sgemm_v10_shape_count() - 1 &&
           p->N <= GROUP * MOST_GROUPS &&
           floats * sizeof(float) <= FUSED_WORKSPACE_BYTES - FUSED_ZERO_BYTES;
}

static band_gemm band_gemm_of(const struct fused_problem *p, void *workspace) {
    band_gemm gemm = {};
    (fused_gemm<identity, identity> &)gemm = gemm_of<identity>(p, identity());
    gemm.bias = p->bias;
    gemm.residual = p->residual;
    gemm.aligned = true;
    gemm.norm = p->norm;
    gemm.counters = (unsigned *)workspace;
    gemm.moments = (float2 *)fused_scratch(workspace);
    if (p->op == FUSED_GELU_LINEAR_ADD_NORM) {
        /* 256-byte aligned, as the workspace is */
        gemm.activated =
            fused_scratch(workspace) + (2 * moments_count(p) + GROUP - 1) / GROUP * GROUP;
        gemm.raw = p->in;
        gemm.A = gemm.activated;
    }
    return gemm;
}

enum status fused_band_barrier(const struct fused_problem *p, struct sgemm_plan plan,
                               void *workspace, device_stream stream, struct error *error) {
    if (is_possible(p, plan) && launch_shape(band_gemm_of(p, workspace), plan.shape, stream)) {
        return device_launched("the matmul with GELU and LayerNorm", error);
    }
    return p->op == FUSED_GELU_LINEAR_ADD_NORM
               ? fused_gelu_linear_add_norm(p, plan, workspace, stream, error)
               : fused_linear_add_norm(p, plan, workspace, stream, error);
}

enum status fused_v7_band_barrier(const struct fused_problem *p, void *workspace,
                                  device_stream stream, struct error *error) {
    struct sgemm_plan plan;
    if (p->op != FUSED_LINEAR_ADD_NORM && p->op != FUSED_GELU_LINEAR_ADD_NORM) {
        return fused_v6_gelu_in(p, workspace, stream, error);
    }
    TRY(fused_choose(p, &plan, error));
    return fused_band_barrier(p, plan, workspace, stream, error);
}
