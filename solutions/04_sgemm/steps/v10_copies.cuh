/**
 * @file v10_copies.cuh
 * @brief v10's tile shapes, the tile of each block, and the copies of a tile to
 * shared memory.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_COPIES_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_COPIES_CUH_

#include "common/cuda/async_copy.cuh"
#include "solutions/04_sgemm/steps/helpers.cuh"

/* Values of K in a stage, and its chunks of four; stages in flight; floats
   between two chunks, so that the 8 rows x 4 chunks that a warp writes at a
   time fill all banks. */
enum { V10_BK = 16, V10_CHUNKS = V10_BK / 4, V10_STAGES = 3, V10_SKEW = 8 };

/* A thread has ROWS_ x 8 results, a warp of 4 x 8 lanes 4 * ROWS_ x 64, a slice
   WARPS_M_ x WARPS_N_ warps. All SLICES_ slices of a block have the same
   results, each for its share of every stage. */
template <int ROWS_, int WARPS_M_, int WARPS_N_, int SLICES_> struct tile_shape {
    enum {
        ROWS = ROWS_,
        WARPS_M = WARPS_M_,
        WARPS_N = WARPS_N_,
        SLICES = SLICES_,
        BM = WARPS_M * 4 * ROWS,
        BN = WARPS_N * 64,
        SLICE = 32 * WARPS_M * WARPS_N, /* threads */
        THREADS = SLICE * SLICES,
        /* floats: a chunk of A, one of B, a stage, what slices exchange, a block's
           shared memory */
        CHUNK_A = 4 * BM + V10_SKEW,
        CHUNK_B = 4 * BN + V10_SKEW,
        STAGE = (CHUNK_A + CHUNK_B) * V10_CHUNKS,
        EXCHANGE = (SLICES - 1) * BM * BN,
        FLOATS = STAGE * V10_STAGES > EXCHANGE ? STAGE *V10_STAGES : EXCHANGE,
        /* fours of floats that a thread copies for a stage, and how far they are
           apart: in rows along K, in rows of B as (K, N) */
        COUNT_A = (BM * V10_CHUNKS + THREADS - 1) / THREADS,
        COUNT_B = BN * V10_CHUNKS / THREADS,
        STEP = THREADS / V10_CHUNKS,
        STEP_PLAIN = THREADS / (BN / 4)
    };
    static_assert(COUNT_B * THREADS == BN * V10_CHUNKS, "all threads copy as much of B");
};

/* The shapes there are, as arguments of tile_shape, in the order of
 * sgemm_plan.shape. */
#define V10_128x128 16, 2, 2, 1
#define V10_96x128 12, 2, 2, 1
#define V10_96x128_2 12, 2, 2, 2
#define V10_64x64_4 16, 1, 1, 4
#define V10_32x64_4 8, 1, 1, 4

/* A block's tile: its first row and column, and its split of K. */
struct place {
    size_t m, n, k, end;
};

/* Blocks that run at the same time should share rows of A and columns of B in
   L2: their tiles are numbered by bands of GROUP tile rows, column after column
   in each band. */
template <class T>
static __device__ __forceinline__ struct place find_block_tile(const struct sgemm_problem &p,
                                                               unsigned splits) {
    const unsigned GROUP = 16;
    unsigned rows = (unsigned)((p.M + T::BM - 1) / T::BM);
    unsigned columns = (unsigned)((p.N + T::BN - 1) / T::BN);
    unsigned split = blockIdx.x % splits, tile = blockIdx.x / splits;
    unsigned first = tile / (GROUP * columns) * GROUP, inside = tile % (GROUP * columns);
    unsigned height = min(GROUP, rows - first);
    size_t depth = ((p.K + V10_BK - 1) / V10_BK + splits - 1) / splits * V10_BK;
    struct place at;
    at.m = (size_t)(first + inside % height) * T::BM;
    at.n = (size_t)(inside / height) * T::BN;
    at.k = min(split * depth, p.K);
    at.end = min(at.k + depth, p.K);
    return at;
}

/* A form beside those of enum sgemm_form: A is (K, M), B is (K, N), as for a
   gradient of weights. Both are copied as they lie, 16 bytes at a time. */
enum { V10_A_TRANSPOSED = 2 };

/* Whether B is (K, N). */
static __host__ __device__ constexpr bool b_is_plain(int form) {
    return form != SGEMM_B_TRANSPOSED;
}

/* A thread's copies. A is copied through registers, which hold its values until
 * they are stored; but not as (K, M). */
template <class T> struct copies {
    const float *a[T::COUNT_A], *b[T::COUNT_B];
    unsigned k; /* values of K already copied; with B as (K, N), or A as (K, M), its
                   pointers advance instead */
    float4 next[T::COUNT_A];
};

/* Which of a stage's (BK, BM) the thread's i-th four of A is, as (K, M). */
template <class T> static __device__ __forceinline__ unsigned a_depth(int i) {
    return (threadIdx.x + i * T::THREADS) / (T::BM / 4);
}

template <class T> static __device__ __forceinline__ unsigned a_column(int i) {
    return (threadIdx.x + i * T::THREADS) % (T::BM / 4) * 4;
}

/* Finds this thread's first stage. Rows beyond the last one repeat it, columns
   of B as (K, N) the last four: the epilogue does not store their results. */
template <class T, int FORM, bool VECTOR>
static __device__ __forceinline__ void
start_copies(struct copies<T> &c, const struct sgemm_problem &p, const struct place &at) {
    size_t row = threadIdx.x / V10_CHUNKS, k = at.k + threadIdx.x % V10_CHUNKS * 4;
    size_t depth = at.k + threadIdx.x / (T::BN / 4), n = at.n + threadIdx.x % (T::BN / 4) * 4;
    if (VECTOR && b_is_plain(FORM)) {
        n = min(n, p.N - 4);
    }
    c.k = 0;
#pragma unroll
    for (int i = 0; i < T::COUNT_A; i++) {
        if constexpr (FORM == V10_A_TRANSPOSED) {
            size_t m = min(at.m + a_column<T>(i), p.M - 4);
            c.a[i] = p.A + (at.k + a_depth<T>(i)) * p.M + m;
        } else {
            c.a[i] = p.A + min(at.m + row + i * T::STEP, p.M - 1) * p.K + k;
        }
    }
#pragma unroll
    for (int i = 0; i < T::COUNT_B; i++) {
        c.b[i] = p.B + (!b_is_plain(FORM) ? min(at.n + row + i * T::STEP, p.N - 1) * p.K + k
                                          : (depth + i * T::STEP_PLAIN) * p.N + n);
    }
}

/* Advances to the next stage. */
template <class T, int FORM>
static __device__ __forceinline__ void advance(struct copies<T> &c, const struct sgemm_problem &p) {
    c.k += V10_BK;
    if (b_is_plain(FORM)) {
#pragma unroll
        for (int i = 0; i < T::COUNT_B; i++) {
            c.b[i] += V10_BK * p.N;
        }
    }
    if (FORM == V10_A_TRANSPOSED) {
#pragma unroll
        for (int i = 0; i < T::COUNT_A; i++) {
            c.a[i] += V10_BK * p.M;
        }
    }
}

/* Four floats, of which count exist, the others are 0. */
template <bool VECTOR>
static __device__ __forceinline__ float4 load4(const float *from, int count) {
    float4 v = {0, 0, 0, 0};
    if (VECTOR) {
        return count > 0 ? *(const float4 *)from : v;
    }
    v.x = count > 0 ? from[0] : 0;
    v.y = count > 1 ? from[1] : 0;
    v.z = count > 2 ? from[2] : 0;
    v.w = count > 3 ? from[3] : 0;
    return v;
}

/* Loads a stage of A. left: its values of K that exist, the others are 0. */
template <class T, int FORM, bool VECTOR>
static __device__ __forceinline__ void fetch_a(struct copies<T> &c, int left) {
    if constexpr (FORM == V10_A_TRANSPOSED) {
        return;
    }
    int count = left - (int)(threadIdx.x % V10_CHUNKS) * 4;
    if (left >= V10_BK) {
#pragma unroll
        for (int i = 0; i < T::COUNT_A; i++) {
            c.next[i] = load4<VECTOR>(c.a[i] + c.k, 4);
        }
    } else {
#pragma unroll
        for (int i = 0; i < T::COUNT_A; i++) {
            c.next[i] = load4<VECTOR>(c.a[i] + c.k, count);
        }
    }
}

/* Stores the i-th four of it, transposed: (BK, BM). As (K, M) it has not been
   loaded: a copy to the same place starts. */
template <class T, int FORM, class EPILOGUE>
static __device__ __forceinline__ void put_a(const typename EPILOGUE::problem &p,
                                             const struct copies<T> &c, float *stage, int i,
                                             int left) {
    if constexpr (FORM == V10_A_TRANSPOSED) {
        unsigned depth = a_depth<T>(i);
        float *to = stage + depth / 4 * T::CHUNK_A + depth % 4 * T::BM + a_column<T>(i);
        if (T::COUNT_A * T::THREADS == T::BM * V10_CHUNKS || depth < V10_BK) {
            cp_async<16>(to, c.a[i], (int)depth < left);
        }
        return;
    }
    unsigned chunk = threadIdx.x % V10_CHUNKS, row = threadIdx.x / V10_CHUNKS;
    if (T::BM % T::STEP == 0 || row + i * T::STEP < T::BM) {
        float *to = stage + chunk * T::CHUNK_A + row + i * T::STEP;
        to[0] = EPILOGUE::transform_a(p, c.next[i].x);
        to[T::BM] = EPILOGUE::transform_a(p, c.next[i].y);
        to[2 * T::BM] = EPILOGUE::transform_a(p, c.next[i].z);
        to[3 * T::BM] = EPILOGUE::transform_a(p, c.next[i].w);
    }
}

/* Copies this thread's i-th four of a stage of B: (BK, BN). The form (N, K) is
   transposed by the copy, float by float. columns: of B as (K, N) from the
   tile's first on. */
template <class T, int FORM, bool VECTOR>
static __device__ __forceinline__ void copy_b(const struct copies<T> &c, float *stage, int i,
                                              int left, size_t columns) {
    unsigned chunk = threadIdx.x % V10_CHUNKS, row = threadIdx.x / V10_CHUNKS;
    unsigned depth = threadIdx.x / (T::BN / 4) + i * T::STEP_PLAIN;
    unsigned column = threadIdx.x % (T::BN / 4) * 4;
    const float *from = b_is_plain(FORM) ? c.b[i] : c.b[i] + c.k;
    float *transposed = stage + chunk * T::CHUNK_B + row + i * T::STEP;
    if (b_is_plain(FORM) && VECTOR) {
        cp_async<16>(stage + depth * T::BN + column, from, (int)depth < left);
    } else if (b_is_plain(FORM)) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            cp_async<4>(stage + depth * T::BN + column + j, from + j,
                        (int)depth < left && column + j < columns);
        }
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            cp_async<4>(transposed + j * T::BN, from + j, (int)(4 * chunk) + j < left);
        }
    }
}

/* Issues the copies of a stage that are due at sixteenth t of another stage's
   multiplication. All at once they would fill the queue to memory, and reads
   would wait behind them; one at a time they cost more, since the compiler
   guards each group of asynchronous copies with three instructions. B comes
   first, A when its loads have arrived. Their position also changes the
   registers that the compiler gives to the sums: these positions are the
   fastest of the dozen tried for each form. */
template <class T, int FORM, bool VECTOR, class EPILOGUE>
static __device__ __forceinline__ void copy_share(const typename EPILOGUE::problem &p,
                                                  const struct copies<T> &c, float *stage, int t,
                                                  int left, size_t columns) {
    const bool TRANSPOSED = FORM == SGEMM_B_TRANSPOSED;
#pragma unroll
    for (int j = 0; j < T::COUNT_B; j++) {
        int due = TRANSPOSED ? j * 4 / T::COUNT_B * 3 : 1 + j * 2 / T::COUNT_B * 4;
        if (t == due / T::SLICES * T::SLICES) {
            copy_b<T, FORM, VECTOR>(c, stage + V10_CHUNKS * T::CHUNK_A, j, left, columns);
        }
    }
#pragma unroll
    for (int j = 0; j < T::COUNT_A; j++) {
        int due = 12 + j * 2 / T::COUNT_A * (TRANSPOSED ? 2 : 3);
        if (t == due / T::SLICES * T::SLICES) {
            put_a<T, FORM, EPILOGUE>(p, c, stage, j, left);
        }
    }
}

#endif
