/**
 * @file attention_backward_tile.cuh
 * @brief v5's kernel: all five products on tensor cores, p and ds in registers.
 *
 * A block of four warps owns 64 * M_TILES rows, a warp 16 * M_TILES of them, and loops over tiles
 * of OTHER other rows; the next tile is copied while this one is used. The accumulators of x . x'
 * become p; rounded to bf16 they are, in the same thread, the A operand of the product with y'. So
 * are those of y . y', as ds. Other rows are processed SLICE at a time, so that the accumulators of
 * both fit into registers beside the sums.
 *
 * A tile of other rows is read from shared memory twice: by rows for x . x' and y . y', and by
 * transposing ldmatrix where it is multiplied by p and ds.
 *
 * Banks: rows are HS + 8 elements apart, an odd number of 16-byte vectors, so the eight rows of an
 * ldmatrix lie in different banks.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_ATTENTION_BACKWARD_TILE_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_ATTENTION_BACKWARD_TILE_CUH_

#include <math.h>

#include "solutions/11_training/steps/tile_coordinates.cuh"

typedef __nv_bfloat16 bf16;

/* Sizes of the kernel for heads up to HS_ channels, in elements. BLOCKS_ share a multiprocessor, as
   far as registers go. */
template <int HS_, int M_TILES_, int SLICE_, int BLOCKS_, int OTHER_ = 64> struct backward_tile {
    static constexpr int HS = HS_, M_TILES = M_TILES_, SLICE = SLICE_, BLOCKS = BLOCKS_;
    static constexpr int WARPS = 4, THREADS = 32 * WARPS, WARP_ROWS = 16 * M_TILES;
    static constexpr int OWN = WARPS * WARP_ROWS, OTHER = OTHER_;
    static constexpr int PITCH = HS + 8, DEPTH = HS / 16; /* of the first products, in mmas */
    static constexpr int OTHER_TILES = SLICE / 8, CHANNEL_TILES = HS / 8;
    static constexpr int OPERAND = OTHER * PITCH; /* x' of a stage; y' follows */
    static constexpr size_t BYTES =
        (2 * OWN * PITCH + 4 * OPERAND) * sizeof(bf16) + 4 * OTHER * sizeof(float);
};

/* A block's shared memory. */
template <typename TILE> struct backward_shared {
    bf16 *own_x, *own_y; /* (OWN, PITCH) */
    bf16 *stages;        /* two of x' and y', (OTHER, PITCH) each */
    float *stats;        /* two of lse and delta, (OTHER) each, where the other rows are queries */
};

template <typename TILE>
static __device__ __forceinline__ struct backward_shared<TILE>
partition_shared(unsigned char *bytes) {
    struct backward_shared<TILE> m;
    m.own_x = (bf16 *)bytes;
    m.own_y = m.own_x + TILE::OWN * TILE::PITCH;
    m.stages = m.own_y + TILE::OWN * TILE::PITCH;
    m.stats = (float *)(m.stages + 4 * TILE::OPERAND);
    return m;
}

/* Starts copying rows first .. of a head; rows and channels beyond the end become 0. A thread
   copies the same channels of every PASS-th row. */
template <int ROWS, typename TILE>
static __device__ __forceinline__ void copy_rows_async(bf16 *to, const bf16 *from, size_t stride,
                                                       int first, int T, int channels) {
    constexpr int VECTORS = TILE::HS / 8, PASS = TILE::THREADS / VECTORS;
    static_assert(TILE::THREADS % VECTORS == 0 && ROWS % PASS == 0, "every thread copies as often");
    int channel = (int)threadIdx.x % VECTORS * 8, row = (int)threadIdx.x / VECTORS;
    int rows = channel < channels ? T - first - row : 0; /* from the thread's first on */
    const bf16 *piece = from + (size_t)(first + row) * stride + channel;
    bf16 *slot = to + row * TILE::PITCH + channel;
#pragma unroll
    for (int i = 0; i < ROWS / PASS; i++) {
        cp_async<16>(slot + i * PASS * TILE::PITCH, i * PASS < rows ? piece : from,
                     i * PASS < rows);
        piece += PASS * stride;
    }
}

/* Starts copying one tile of other rows, and their statistics if they are queries; commits the
   group. */
template <typename TILE, bool KEYS_OWN>
static __device__ __forceinline__ void
copy_tile_async(const struct backward_shared<TILE> &m, int stage,
                const struct attention_backward_problem &p, const struct query_stats &stats,
                const struct tile_coordinates &s, unsigned head, int tile) {
    const struct operands<bf16> others = other_operands<KEYS_OWN, bf16>(p, s, head);
    bf16 *x = m.stages + stage * 2 * TILE::OPERAND;
    int first = tile * TILE::OTHER, HS = (int)p.HS;
    copy_rows_async<TILE::OTHER, TILE>(x, others.x, others.x_stride, first, s.T, HS);
    copy_rows_async<TILE::OTHER, TILE>(x + TILE::OPERAND, others.y, others.y_stride, first, s.T,
                                       HS);
    if (KEYS_OWN && threadIdx.x < 2 * TILE::OTHER) { /* an element a thread: lse, then delta */
        int row = (int)threadIdx.x % TILE::OTHER;
        const float *from = (int)threadIdx.x < TILE::OTHER ? stats.lse : stats.delta;
        bool there = first + row < s.T;
        static_assert(TILE::THREADS >= 2 * TILE::OTHER, "an element a thread");
        cp_async<4>(m.stats + stage * 2 * TILE::OTHER + threadIdx.x,
                    there ? from + head * p.rows + s.start + first + row : from, there);
    }
    cp_async_commit();
}

/* sums[m][n] = 16 own rows . 8 other rows */
template <typename TILE>
static __device__ __forceinline__ void dot_rows(struct accumulator (*sums)[TILE::OTHER_TILES],
                                                const bf16 *own, const bf16 *other) {
    int lane = threadIdx.x % 32;
    const bf16 *a_row = own + lane % 16 * TILE::PITCH + lane / 16 * 8;
    const bf16 *b_row = other + (lane / 16 * 8 + lane % 8) * TILE::PITCH + lane / 8 % 2 * 8;
#pragma unroll
    for (int i = 0; i < TILE::M_TILES * TILE::OTHER_TILES; i++) {
        sums[i / TILE::OTHER_TILES][i % TILE::OTHER_TILES] = {};
    }
#pragma unroll
    for (int depth = 0; depth < TILE::DEPTH; depth++) {
        struct fragment a[TILE::M_TILES];
#pragma unroll
        for (int m = 0; m < TILE::M_TILES; m++) {
            a[m] = ldmatrix_x4<false>(a_row + m * 16 * TILE::PITCH + depth * 16);
        }
#pragma unroll
        for (int n = 0; n < TILE::OTHER_TILES; n += 2) {
            struct fragment b = ldmatrix_x4<false>(b_row + n * 8 * TILE::PITCH + depth * 16);
#pragma unroll
            for (int m = 0; m < TILE::M_TILES; m++) {
                mma_m16n8k16(sums[m][n].x, a[m], b.x[0], b.x[1], bf16());
                mma_m16n8k16(sums[m][n + 1].x, a[m], b.x[2], b.x[3], bf16());
            }
        }
    }
}

/* sums[m][n] += weights (16 own rows, SLICE other rows) * rows (SLICE other rows, 8 channels) */
template <typename TILE>
static __device__ __forceinline__ void
add_products(struct accumulator (*sums)[TILE::CHANNEL_TILES],
             const struct accumulator (*weights)[TILE::OTHER_TILES], const bf16 *rows) {
    int lane = threadIdx.x % 32;
    const bf16 *row = rows + lane % 16 * TILE::PITCH + lane / 16 * 8;
#pragma unroll
    for (int depth = 0; depth < TILE::SLICE / 16; depth++) {
        struct fragment a[TILE::M_TILES];
#pragma unroll
        for (int m = 0; m < TILE::M_TILES; m++) {
            const struct accumulator &low = weights[m][2 * depth];
            const struct accumulator &high = weights[m][2 * depth + 1];
            a[m].x[0] = pack(low.x[0], low.x[1], bf16());
            a[m].x[1] = pack(low.x[2], low.x[3], bf16());
            a[m].x[2] = pack(high.x[0], high.x[1], bf16());
            a[m].x[3] = pack(high.x[2], high.x[3], bf16());
        }
#pragma unroll
        for (int n = 0; n < TILE::CHANNEL_TILES; n += 2) {
            struct fragment b = ldmatrix_x4<true>(row + depth * 16 * TILE::PITCH + n * 8);
#pragma unroll
            for (int m = 0; m < TILE::M_TILES; m++) {
                mma_m16n8k16(sums[m][n].x, a[m], b.x[0], b.x[1], bf16());
                mma_m16n8k16(sums[m][n + 1].x, a[m], b.x[2], b.x[3], bf16());
            }
        }
    }
}

/* lse and delta in registers: of the thread's own rows, or of the slice's pairs of columns. */
template <typename TILE, bool KEYS_OWN> struct tile_stats {
    static constexpr int COUNT = KEYS_OWN ? TILE::OTHER_TILES : TILE::M_TILES;
    float lse[COUNT][2], delta[COUNT][2];
};

/* Of the own rows, from the warp's first one, `own`; loaded once. */
template <typename TILE>
static __device__ __forceinline__ struct tile_stats<TILE, false>
own_stats(const struct attention_backward_problem &p, const struct query_stats &stats,
          const struct tile_coordinates &s, int own) {
    struct tile_stats<TILE, false> q;
    size_t first = s.head * p.rows + s.start;
#pragma unroll
    for (int i = 0; i < 2 * TILE::M_TILES; i++) {
        int row = own + i / 2 * 16 + i % 2 * 8 + (int)threadIdx.x % 32 / 4;
        q.lse[i / 2][i % 2] = row < s.T ? stats.lse[first + row] : 0.0f;
        q.delta[i / 2][i % 2] = row < s.T ? stats.delta[first + row] : 0.0f;
    }
    return q;
}

/* Of a slice of the other rows. stats: the slice's first lse in a stage */
template <typename TILE>
static __device__ __forceinline__ struct tile_stats<TILE, true> other_stats(const float *stats) {
    struct tile_stats<TILE, true> q;
#pragma unroll
    for (int n = 0; n < TILE::OTHER_TILES; n++) {
        const float *from = stats + 8 * n + threadIdx.x % 4 * 2;
        float2 lse = *(const float2 *)from, delta = *(const float2 *)(from + TILE::OTHER);
        q.lse[n][0] = lse.x;
        q.lse[n][1] = lse.y;
        q.delta[n][0] = delta.x;
        q.delta[n][1] = delta.y;
    }
    return q;
}

/* Scores of keys that a query does not see become -infinity, and their p becomes 0. */
template <typename TILE, bool KEYS_OWN>
static __device__ __forceinline__ void apply_mask(struct accumulator (*scores)[TILE::OTHER_TILES],
                                                  int own, int other, int T, bool causal) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int n = 0; n < TILE::OTHER_TILES; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int row = own + m * 16 + i / 2 * 8 + lane / 4;
                int column = other + n * 8 + lane % 4 * 2 + i % 2;
                if (!is_visible<KEYS_OWN>(row, column, T, causal)) {
                    scores[m][n].x[i] = -INFINITY;
                }
            }
        }
    }
}

/* scores become p, and dp becomes ds; factor: scale * log2 e. */
template <typename TILE, bool KEYS_OWN>
static __device__ __forceinline__ void compute_p_ds(struct accumulator (*scores)[TILE::OTHER_TILES],
                                                    struct accumulator (*dp)[TILE::OTHER_TILES],
                                                    const struct tile_stats<TILE, KEYS_OWN> &q,
                                                    float factor) {
#pragma unroll
    for (int m = 0; m < TILE::M_TILES; m++) {
#pragma unroll
        for (int n = 0; n < TILE::OTHER_TILES; n++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int index = KEYS_OWN ? n : m, which = KEYS_OWN ? i % 2 : i / 2;
                float p = exp2_approx(scores[m][n].x[i] * factor - q.lse[index][which]);
                scores[m][n].x[i] = p;
                dp[m][n].x[i] = p * (dp[m][n].x[i] - q.delta[index][which]);
            }
        }
    }
}

/* Adds one tile of other rows to the sums. */
template <typename TILE, bool KEYS_OWN>
static __device__ __forceinline__ void
process_tile(struct accumulator (*first)[TILE::CHANNEL_TILES],
             struct accumulator (*second)[TILE::CHANNEL_TILES],
             const struct backward_shared<TILE> &m, int stage,
             const struct tile_stats<TILE, false> &of_own, float factor, int warp_row,
             const struct tile_coordinates &s, int tile, bool causal) {
    const bf16 *x = m.stages + stage * 2 * TILE::OPERAND, *y = x + TILE::OPERAND;
    const bf16 *own_x = m.own_x + warp_row * TILE::PITCH, *own_y = m.own_y + warp_row * TILE::PITCH;
    int own = s.first + warp_row;
#pragma unroll 1
    for (int slice = 0; slice < TILE::OTHER; slice += TILE::SLICE) {
        int other = tile * TILE::OTHER + slice;
        if (none_visible<KEYS_OWN>(own, TILE::WARP_ROWS, other, TILE::SLICE, s.T, causal)) {
            continue;
        }
        struct accumulator scores[TILE::M_TILES][TILE::OTHER_TILES];
        struct accumulator dp[TILE::M_TILES][TILE::OTHER_TILES];
        dot_rows<TILE>(scores, own_x, x + slice * TILE::PITCH);
        dot_rows<TILE>(dp, own_y, y + slice * TILE::PITCH);
        if (!all_visible<KEYS_OWN>(own, TILE::WARP_ROWS, other, TILE::SLICE, s.T, causal)) {
            apply_mask<TILE, KEYS_OWN>(scores, own, other, s.T, causal);
        }
        if constexpr (KEYS_OWN) {
            const float *stats = m.stats + stage * 2 * TILE::OTHER + slice;
            compute_p_ds<TILE, true>(scores, dp, other_stats<TILE>(stats), factor);
            add_products<TILE>(second, scores, y + slice * TILE::PITCH);
        } else {
            compute_p_ds<TILE, false>(scores, dp, of_own, factor);
        }
        add_products<TILE>(first, dp, x + slice * TILE::PITCH);
    }
}

/* Stores the warp's rows of a gradient. Its own rows' shared memory, no longer needed, is the
   staging buffer, so that neighbouring lanes store 16 bytes each of the same row. to: the warp's
   first row; only `rows` of them exist. */
template <typename TILE>
static __device__ __forceinline__ void
store_rows(bf16 *to, size_t stride, bf16 *staging,
           const struct accumulator (*sums)[TILE::CHANNEL_TILES], float factor, int rows,
           int channels) {
    int lane = threadIdx.x % 32;
    __syncwarp(); /* all lanes have read the own rows */
#pragma unroll
    for (int i = 0; i < 2 * TILE::M_TILES; i++) {
        int row = i / 2 * 16 + i % 2 * 8 + lane / 4;
#pragma unroll
        for (int n = 0; n < TILE::CHANNEL_TILES; n++) {
            const float *pair = sums[i / 2][n].x + i % 2 * 2;
            *(unsigned *)(staging + row * TILE::PITCH + 8 * n + lane % 4 * 2) =
                pack(pair[0] * factor, pair[1] * factor, bf16());
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TILE::WARP_ROWS * TILE::HS / 8 / 32; i++) {
        int piece = i * 32 + lane, row = piece / (TILE::HS / 8);
        int channel = piece % (TILE::HS / 8) * 8;
        if (row < rows && channel < channels) {
            *(uint4 *)(to + row * stride + channel) =
                *(const uint4 *)(staging + row * TILE::PITCH + channel);
        }
    }
}

template <typename TILE, bool KEYS_OWN>
static __global__ void __launch_bounds__(TILE::THREADS, TILE::BLOCKS)
    tensor_backward(const struct attention_backward_problem p, const struct query_stats stats) {
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    const struct backward_shared<TILE> m = partition_shared<TILE>(shared_bytes);
    const struct tile_coordinates s = locate_tile<KEYS_OWN, TILE::OWN, TILE::OTHER>(p);
    if (s.first >= s.T) {
        return;
    }
    int HS = (int)p.HS, warp_row = (int)threadIdx.x / 32 * TILE::WARP_ROWS;
    const struct operands<bf16> own = own_operands<KEYS_OWN, bf16>(p, s);
    copy_rows_async<TILE::OWN, TILE>(m.own_x, own.x, own.x_stride, s.first, s.T, HS);
    copy_rows_async<TILE::OWN, TILE>(m.own_y, own.y, own.y_stride, s.first, s.T, HS);
    copy_tile_async<TILE, KEYS_OWN>(m, 0, p, stats, s, s.other, s.tile);
    struct tile_stats<TILE, false> of_own = {};
    if (!KEYS_OWN) {
        of_own = own_stats<TILE>(p, stats, s, s.first + warp_row);
    }
    constexpr int SECOND = KEYS_OWN ? TILE::M_TILES : 1;
    struct accumulator first[TILE::M_TILES][TILE::CHANNEL_TILES] = {};
    struct accumulator second[SECOND][TILE::CHANNEL_TILES] = {};
    unsigned head = s.other;
    int tile = s.tile;
    for (int stage = 0; head < s.other_end; stage ^= 1) {
        int now = tile++;
        if (tile == s.tile_end) {
            tile = s.tile;
            head++;
        }
        cp_async_wait<0>();
        __syncthreads(); /* the tile has arrived, and the one before has been read */
        if (head < s.other_end) {
            copy_tile_async<TILE, KEYS_OWN>(m, stage ^ 1, p, stats, s, head, tile);
        }
        process_tile<TILE, KEYS_OWN>(first, second, m, stage, of_own, p.scale * LOG2_E, warp_row, s,
                                     now, p.causal);
    }
    size_t stride = KEYS_OWN ? p.kv_stride : p.q_stride;
    size_t from = (s.start + s.first + warp_row) * stride + s.head * p.HS;
    int rows = s.T - s.first - warp_row;
    store_rows<TILE>((bf16 *)(KEYS_OWN ? p.dk : p.dq) + from, stride,
                     m.own_x + warp_row * TILE::PITCH, first, p.scale, rows, HS);
    if constexpr (KEYS_OWN) {
        store_rows<TILE>((bf16 *)p.dv + from, stride, m.own_y + warp_row * TILE::PITCH, second,
                         1.0f, rows, HS);
    }
}

#endif
