/**
 * @file fused_v7_rows_meet.cu
 * @brief One launch: the blocks of a band of rows meet, and what they share passes no kernel's end.
 *
 * Changes since v6: all blocks of the grid are on the GPU at the same time (a
 * cooperative launch) and go from tile to tile. Blocks of one band of rows then may
 * wait for one another, and do so twice:
 *
 *  - before the multiplication, where A wants GELU: each block has applied it to its
 *    share of the band, once an element, and left the result in the workspace;
 *  - after it: each warp has left mean and squares of its 64 columns of every row.
 *    All of a row's together are its LayerNorm, and the sums never leave the registers.
 *
 * Why: relieves memory and issue slots. v4's second kernel reads and writes (M, N)
 * once more; v6's GELU is executed N / 128 times an element; v5's last block works
 * alone while the others are done.
 *
 * Nobody waits for ever: the grid has no more blocks than the GPU holds, and a multiple of
 * a band's blocks, so that a band is worked on by blocks of one round.
 *
 * Where it does not apply (K split, few rows, unaligned, more than 1024 columns), v6 does it.
 *
 * Launches: 1. Bytes beside the matmul's: the residual; with GELU (M, K) read and
 * written once more.
 *
 * Measured on an NVIDIA H200, 2026-11-21, ms (v6's in brackets): FUSED_GELU_LINEAR_ADD_NORM,
 * 8192 x 768 x 3072: 0.8528 (0.9052), the plain matmul 0.7830. FUSED_LINEAR_ADD_NORM, 8192 x 768 x
 * 768: 0.2254 (0.2247), the plain matmul 0.2069; 2048 x 768 x 768: 0.0668 (0.0661). So GELU once an
 * element pays; a LayerNorm from registers in one launch is no faster than two launches that
 * overlap. Hoped for were 0.82 and 0.216: in each round all blocks come to their meetings at about
 * the same time, and nobody multiplies meanwhile.
 *
 * What did not help: asking L2 for the residuals when a tile begins (0.8590 and 0.2297, where 0.8545
 * and 0.2265 were measured without) or a few at each stage (0.8707 and 0.2283 against 0.8529 and
 * 0.2254); letting half of the blocks start later, so that some multiply while others meet: by 4 to
 * 24 thousand cycles at best 0.2% and 0.9% faster, by more slower; GELU on the way in here, too
 * (0.9248).
 */
#include "solutions/06_fused_epilogues/gemm.cuh"

/* Columns whose moments are one entry: a warp's. Entries of a row at most. */
enum { PART = 64, MOST_PARTS = 16 };

/* Fours of floats that a thread has in flight on the way through GELU. */
enum { GELU_FOURS = 8 };

struct meeting_gemm : fused_gemm<identity, identity> {
    const float *raw; /* (M, K), A before GELU; NULL: A is ready */
    float *activated; /* (M, K), A, where there is raw */
    struct nn_norm norm;
    float2 *moments;    /* (M, parts): sum, and squares of differences from the mean */
    unsigned *counters; /* one for each band, 0 before and after */
};

/* Where the blocks of a band meet. goal: arrivals until everybody is here. */
struct meeting {
    unsigned *counter, members, goal;
};

/* Returns when all members have come: what they wrote before can be read. */
static __device__ __forceinline__ void meet(struct meeting &m) {
    __threadfence();
    __syncthreads();
    m.goal += m.members;
    if (threadIdx.x == 0) {
        atomicAdd(m.counter, 1);
        while (*(volatile unsigned *)m.counter < m.goal) {
        }
    }
    __syncthreads();
    __threadfence();
}

/* After the last meeting: who leaves last sets the counter back. */
static __device__ __forceinline__ void leave(const struct meeting &m) {
    if (threadIdx.x == 0 && atomicAdd(m.counter, 1) == m.goal + m.members - 1) {
        atomicExch(m.counter, 0);
    }
}

/* GELU of this block's share of the rows of a band. Bands begin at multiples of 128 bytes: no line
   of L1 holds elements of two. */
template <class T>
static __device__ __forceinline__ void activate_share(const meeting_gemm &p, size_t m,
                                                      unsigned member, unsigned members) {
    const float4 *from = (const float4 *)(p.raw + m * p.K);
    float4 *to = (float4 *)(p.activated + m * p.K);
    size_t count = min((size_t)T::BM, p.M - m) * p.K / 4, step = (size_t)members * T::THREADS;
    for (size_t i = member * T::THREADS + threadIdx.x; i < count; i += step * GELU_FOURS) {
        float4 x[GELU_FOURS];
#pragma unroll
        for (int j = 0; j < GELU_FOURS; j++) {
            x[j] = i + j * step < count ? __ldcs(from + i + j * step) : float4{0, 0, 0, 0};
        }
#pragma unroll
        for (int j = 0; j < GELU_FOURS; j++) {
            gelu f;
            if (i + j * step < count) {
                to[i + j * step] = {f(x[j].x), f(x[j].y), f(x[j].z), f(x[j].w)};
            }
        }
    }
}

/* sum += a tile of A * B: the loop of v10's tile_kernel(), word by word. As one function that both
   call, the compiler gives v10's kernels other registers (lab 04's page says what those decide). */
template <class T>
static __device__ __forceinline__ void multiply_tile(float (&sum)[T::ROWS][8],
                                                     const meeting_gemm &p, const struct place &at,
                                                     const struct seat &s, float *shared) {
    const int FORM = SGEMM_B_TRANSPOSED;
    const bool VECTOR = true;
    const int DEPTH = V10_BK / T::SLICES;
    struct copies<T> c;
    start_copies<T, FORM, VECTOR>(c, p, at);
    float a[2][T::ROWS], b[2][8];
    int left = (int)(at.end - at.k);
    float *stage = shared, *next = shared;
#pragma unroll
    for (int i = 0; i < V10_STAGES - 1; i++) {
        fetch_a<T, VECTOR>(c, left);
#pragma unroll
        for (int j = 0; j < T::COUNT_A; j++) {
            put_a<T>(p, c, next, j);
        }
#pragma unroll
        for (int j = 0; j < T::COUNT_B; j++) {
            copy_b<T, FORM, VECTOR>(c, next + V10_CHUNKS * T::CHUNK_A, j, left, p.N - at.n);
        }
        commit_copies();
        advance<T, FORM>(c, p.N);
        left -= V10_BK;
        next += T::STAGE;
    }
    while (left > (1 - V10_STAGES) * V10_BK) {
        /* Before the barrier, so that the compiler does not put it off until the values are due. */
        fetch_a<T, VECTOR>(c, left);
        wait_copies<V10_STAGES - 2>();
        __syncthreads();
        read_stage<T, FORM>(a[0], b[0], stage, s, 0);
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (i + 1 < DEPTH) {
                read_stage<T, FORM>(a[(i + 1) % 2], b[(i + 1) % 2], stage, s, i + 1);
            }
            copy_share<T, FORM, VECTOR>(p, c, next, i * 16 / DEPTH, left, p.N - at.n);
            multiply<T>(sum, a[i % 2], b[i % 2]);
        }
        commit_copies();
        advance<T, FORM>(c, p.N);
        left -= V10_BK;
        stage = stage == shared + 2 * T::STAGE ? shared : stage + T::STAGE;
        next = next == shared + 2 * T::STAGE ? shared : next + T::STAGE;
    }
}

/* What a thread finishes: rows of its slice, and of each two times four columns. */
template <class T> struct own_rows {
    enum { COUNT = T::ROWS / T::SLICES };
    float x[COUNT][8];
    size_t first_row, first_column; /* of the tile, with the thread's seat */
    int slice;

    __device__ __forceinline__ size_t row(int i) const {
        return first_row + row_of<T>(slice * COUNT + i);
    }
    __device__ __forceinline__ size_t column(int half) const {
        return first_column + 32 * half;
    }
};

/* x = sum + bias + residual; 0 beyond the last column. */
template <class T>
static __device__ __forceinline__ void take_sums(own_rows<T> &own, const meeting_gemm &p,
                                                 const float (&sum)[T::ROWS][8]) {
#pragma unroll
    for (int i = 0; i < T::ROWS * 8; i++) {
        if (i / 8 / own.COUNT == own.slice) {
            own.x[i / 8 % own.COUNT][i % 8] = sum[i / 8][i % 8];
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        size_t column = own.column(half);
        float bias[4], old[4];
        read_four(bias, p.bias + column, true, column < p.N ? p.N - column : 0);
#pragma unroll
        for (int i = 0; i < own.COUNT; i++) {
            size_t row = own.row(i);
            read_four(old, p.residual + row * p.N + column, true,
                      row < p.M && column < p.N ? 4 : 0);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float &x = own.x[i][4 * half + j];
                x = column < p.N ? x + bias[j] + old[j] : 0.0f;
            }
        }
    }
}

/* Sum over the eight lanes of a warp that share a row (find_seat()). */
static __device__ __forceinline__ float sum_of_lanes(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    x += __shfl_xor_sync(0xffffffffu, x, 4);
    return x + __shfl_xor_sync(0xffffffffu, x, 16);
}

/* How many of the columns of a part there are. */
static __device__ __forceinline__ float columns_of(size_t part, size_t N) {
    return (float)min((size_t)PART, N - part * PART);
}

/* Leaves the moments of this warp's 64 columns. */
template <class T>
static __device__ __forceinline__ void leave_moments(const own_rows<T> &own,
                                                     const meeting_gemm &p) {
    size_t part = own.first_column / PART, parts = (p.N + PART - 1) / PART;
    if (part >= parts) {
        return; /* the whole warp */
    }
    float count = columns_of(part, p.N);
#pragma unroll
    for (int i = 0; i < own.COUNT; i++) {
        float total = 0.0f, squares = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            total += own.x[i][j];
        }
        total = sum_of_lanes(total);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float x = own.x[i][j] - total / count;
            squares += own.column(j / 4) < p.N ? x * x : 0.0f;
        }
        squares = sum_of_lanes(squares);
        if ((threadIdx.x & 21) == 0 && own.row(i) < p.M) {
            p.moments[own.row(i) * parts + part] = {total, squares};
        }
    }
}

/* Of a row: mean, and the reciprocal of its deviation. */
static __device__ __forceinline__ float2 join_moments(const meeting_gemm &p, size_t row) {
    size_t parts = (p.N + PART - 1) / PART;
    float2 of[MOST_PARTS];
    float total = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < MOST_PARTS; i++) {
        of[i] = i < parts ? __ldcg(p.moments + row * parts + i) : float2{0, 0};
    }
#pragma unroll
    for (int i = 0; i < MOST_PARTS; i++) {
        total += of[i].x;
    }
    float mean = total / (float)p.N;
#pragma unroll
    for (int i = 0; i < MOST_PARTS; i++) {
        if (i < parts) {
            float count = columns_of(i, p.N), apart = of[i].x / count - mean;
            squares += of[i].y + count * apart * apart;
        }
    }
    return {mean, 1.0f / sqrtf(squares / (float)p.N + p.norm.eps)};
}

/* rows: mean and factor of every row of the tile. */
template <class T>
static __device__ __forceinline__ void
store_normalised(const own_rows<T> &own, const meeting_gemm &p, size_t m, const float2 *rows) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        size_t column = own.column(half), left = column < p.N ? p.N - column : 0;
        float w[4], b[4], y[4];
        read_four(w, p.norm.weight + column, true, left);
        read_four(b, p.norm.bias + column, true, left);
#pragma unroll
        for (int i = 0; i < own.COUNT; i++) {
            float2 of = rows[own.row(i) - m];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                y[j] = (own.x[i][4 * half + j] - of.x) * of.y * w[j] + b[j];
            }
            write_four(p.C + own.row(i) * p.N + column, y, true, own.row(i) < p.M ? left : 0);
        }
    }
}

/* The tile's sums become rows of the LayerNorm. */
template <class T>
static __device__ __forceinline__ void
finish_tile(const meeting_gemm &p, const struct place &at, const struct seat &s,
            const float (&sum)[T::ROWS][8], float *shared, struct meeting &meeting) {
    own_rows<T> own;
    own.first_row = at.m + s.row;
    own.first_column = at.n + s.column;
    own.slice = s.slice;
    take_sums(own, p, sum);
    leave_moments(own, p);
    meet(meeting);
    float2 *rows = (float2 *)shared;
    if (threadIdx.x < T::BM && at.m + threadIdx.x < p.M) {
        rows[threadIdx.x] = join_moments(p, at.m + threadIdx.x);
    }
    __syncthreads();
    leave(meeting);
    store_normalised(own, p, at.m, rows);
    __syncthreads(); /* the next tile's copies go where the rows are */
}

template <class T>
static __global__ void __launch_bounds__(T::THREADS, 256 / T::THREADS)
    rows_meet(meeting_gemm p, unsigned tiles, unsigned members) {
    extern __shared__ __align__(16) float shared[];
    struct seat s = find_seat<T>();
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        unsigned band = tile / members, member = tile % members;
        struct place at = {(size_t)band * T::BM, (size_t)member * T::BN, 0, p.K};
        struct meeting meeting = {p.counters + band, members, 0};
        if (p.raw != NULL) {
            activate_share<T>(p, at.m, member, members);
            meet(meeting);
        }
        float sum[T::ROWS][8] = {};
        multiply_tile<T>(sum, p, at, s, shared);
        wait_copies<0>();
        if (T::SLICES > 1) {
            add_slices<T>(sum, shared, s.slice);
        }
        finish_tile<T>(p, at, s, sum, shared, meeting);
    }
}

/* The most blocks, of those that fit on the GPU together, that are whole bands. 0: not one band. */
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

/* True when it was launched; an error of the launch remains to be seen. */
template <class T> static bool launch(const meeting_gemm &p, device_stream stream) {
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

/* 128 x 128 is done as 96 x 128: with a loop over tiles around it, its registers do not suffice, and
   three times as many multiply-adds find two operands in one bank. */
static bool launch_shape(const meeting_gemm &p, int shape, device_stream stream) {
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
    return p->M * ((p->N + PART - 1) / PART);
}

static bool is_possible(const struct fused_problem *p, struct sgemm_plan plan) {
    bool aligned = aligned16(p->in, p->K) && aligned16(p->weight, p->K) &&
                   aligned16(p->out, p->N) && aligned16(p->bias, p->N) &&
                   aligned16(p->residual, p->N) && aligned16(p->norm.weight, p->N) &&
                   aligned16(p->norm.bias, p->N);
    bool gelu_in = p->op == FUSED_GELU_LINEAR_ADD_NORM;
    size_t floats = 2 * moments_count(p) + (gelu_in ? p->M * p->K : 0) + PART;
    return aligned && plan.splits == 1 && plan.shape < sgemm_v10_shape_count() - 1 &&
           p->N <= PART * MOST_PARTS &&
           floats * sizeof(float) <= FUSED_WORKSPACE_BYTES - FUSED_ZERO_BYTES;
}

static meeting_gemm meeting_of(const struct fused_problem *p, void *workspace) {
    meeting_gemm gemm = {};
    (fused_gemm<identity, identity> &)gemm = gemm_of<identity>(p, identity());
    gemm.bias = p->bias;
    gemm.residual = p->residual;
    gemm.aligned = true;
    gemm.norm = p->norm;
    gemm.counters = (unsigned *)workspace;
    gemm.moments = (float2 *)fused_scratch(workspace);
    if (p->op == FUSED_GELU_LINEAR_ADD_NORM) {
        /* 256-byte aligned, as the workspace is */
        gemm.activated = fused_scratch(workspace) + (2 * moments_count(p) + PART - 1) / PART * PART;
        gemm.raw = p->in;
        gemm.A = gemm.activated;
    }
    return gemm;
}

enum status fused_rows_meet(const struct fused_problem *p, struct sgemm_plan plan, void *workspace,
                            device_stream stream, struct error *error) {
    if (is_possible(p, plan) && launch_shape(meeting_of(p, workspace), plan.shape, stream)) {
        return device_launched("the matmul with GELU and LayerNorm", error);
    }
    return p->op == FUSED_GELU_LINEAR_ADD_NORM
               ? fused_gelu_linear_add_norm(p, plan, workspace, stream, error)
               : fused_linear_add_norm(p, plan, workspace, stream, error);
}

enum status fused_v7_rows_meet(const struct fused_problem *p, void *workspace, device_stream stream,
                               struct error *error) {
    struct sgemm_plan plan;
    if (p->op != FUSED_LINEAR_ADD_NORM && p->op != FUSED_GELU_LINEAR_ADD_NORM) {
        return fused_v6_gelu_in(p, workspace, stream, error);
    }
    TRY(fused_choose(p, &plan, error));
    return fused_rows_meet(p, plan, workspace, stream, error);
}
