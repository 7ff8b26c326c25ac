/**
 * @file v6_long.cuh
 * @brief v6, rows too long for registers: in shared memory, or split between blocks.
 *
 * Here the online forms pay: blocks that share a row read it once for its
 * statistics, and threads that share a row in shared memory have the statistics of
 * their own vectors before they exchange them, so that one barrier is enough.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_LONG_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_LONG_CUH_

#include "common/cuda/async_copy.cuh"
#include "solutions/05_layernorm_softmax/steps/online.cuh"
#include "solutions/05_layernorm_softmax/steps/v6_registers.cuh"

/* Statistics of one vector, by two passes over its registers. */
template <int OP, typename T>
static __device__ __forceinline__ struct row_stats vector_stats(const row_view<T> &view, int i,
                                                                uint4 bits) {
    int first = i * VECTOR_ELEMENTS<T> - view.shift, count = VECTOR_ELEMENTS<T>;
    if (!is_whole<T, false>(view, first)) {
        int begin = first < 0 ? 0 : first, end = first + VECTOR_ELEMENTS<T>;
        end = end < view.C ? end : view.C;
        count = end > begin ? end - begin : 0;
    }
    float mean_or_max = 0.0f,
          all = HAS_MEAN_OR_MAX<OP> ? vector_add_or_max<OP, T>(bits, add_or_max_identity<OP>()) : 0;
    if (HAS_MEAN_OR_MAX<OP> && count > 0) {
        mean_or_max =
            OP == ROWS_SOFTMAX ? mean_or_max_of<OP>(all, 1) : __fdividef(all, (float)count);
    }
    float sum = vector_squares_or_exps<OP, T, false>(view, i, bits, mean_or_max);
    return {(float)count, OP == ROWS_SOFTMAX ? all * LOG2_E : mean_or_max, sum};
}

/* Over the block, in every thread, with one barrier. */
template <int OP>
static __device__ struct row_stats block_merge(struct row_stats own, struct row_stats *exchange) {
    int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    own = lanes_merge<OP, WARP>(own);
    if (lane == 0) {
        exchange[threadIdx.x / WARP] = own;
    }
    __syncthreads();
    return lanes_merge<OP, WARP>(lane < warps ? exchange[lane] : empty_stats<OP>());
}

/*
 * A row of any alignment: its whole vectors, and the few elements before and behind them, one each
 * for the first threads of the block.
 */
template <typename T> struct row_span {
    row_view<T> view; /* from column `head` on, as if aligned */
    int head, count;  /* elements before the vectors; vectors */
    int edge;         /* this thread's element outside of them: its column, or -1 */
};

template <int OP, typename T>
static __device__ __forceinline__ row_span<T> span_row(const struct rows_problem &p, size_t row) {
    row_span<T> span = {view_row<OP, T, true>(p, row), 0, 0, -1};
    int before = (int)((uintptr_t)span.view.x % 16 / sizeof(T)), t = (int)threadIdx.x;
    int head = (VECTOR_ELEMENTS<T> - before) % VECTOR_ELEMENTS<T>;
    span.head = head < span.view.C ? head : span.view.C;
    span.count = (span.view.C - span.head) / VECTOR_ELEMENTS<T>;
    int tail = span.head + span.count * VECTOR_ELEMENTS<T>;
    if (t < span.head) {
        span.edge = t;
    } else if (t >= VECTOR_ELEMENTS<T> && t < 2 * VECTOR_ELEMENTS<T> &&
               tail + t - VECTOR_ELEMENTS<T> < span.view.C) {
        span.edge = tail + t - VECTOR_ELEMENTS<T>;
    }
    return span;
}

/* Starts the copy of vector i into its slot. */
template <typename T>
static __device__ __forceinline__ void fetch(const row_span<T> &span, int i, uint4 *slots) {
    cp_async_16(shared_address(&slots[i]), span.view.x + span.head + i * VECTOR_ELEMENTS<T>);
}

/* The element outside the vectors; a thread without one gets one that changes nothing. */
template <int OP, typename T>
static __device__ __forceinline__ float load_edge(const row_span<T> &span) {
    return span.edge < 0 ? add_or_max_identity<OP>()
                         : element<OP>(span.view.x, span.view.mask, (size_t)span.edge);
}

/* Weights of a vector; they are aligned in every fourth or eighth row only. */
template <typename T>
static __device__ __forceinline__ void weights_at(const T *weights, int first,
                                                  float (&w)[VECTOR_ELEMENTS<T>]) {
    if ((uintptr_t)(weights + first) % 16 == 0) {
        unpack(__ldg((const uint4 *)(weights + first)), w, T());
    } else {
#pragma unroll
        for (int e = 0; e < VECTOR_ELEMENTS<T>; e++) {
            w[e] = to_float(weights[first + e]);
        }
    }
}

/* Normalises and stores a vector, without its neighbours. */
template <int OP, typename T>
static __device__ __forceinline__ void normalise_slot(const struct rows_problem &p,
                                                      const row_span<T> &span, int i, uint4 bits,
                                                      float mean_or_max, float rstd_or_rcp) {
    int first = span.head + i * VECTOR_ELEMENTS<T>;
    float weight[VECTOR_ELEMENTS<T>] = {}, bias[VECTOR_ELEMENTS<T>] = {};
    if (OP != ROWS_SOFTMAX) {
        weights_at((const T *)p.weight, first, weight);
    }
    if (OP == ROWS_LAYERNORM) {
        weights_at((const T *)p.bias, first, bias);
    }
    bits = normalise_elements<OP, T>(bits, mean_or_max, rstd_or_rcp, weight, bias);
    if ((uintptr_t)(span.view.y + first) % 16 == 0) {
        *(uint4 *)(span.view.y + first) = bits;
    } else {
        store_elements(span.view, first, bits);
    }
}

/* Statistics of a thread's slots, in two passes. Masked elements become -inf there, for the third
 * pass too. */
template <int OP, typename T>
static __device__ __forceinline__ struct row_stats slot_stats(const row_span<T> &span, float edge,
                                                              uint4 *slots) {
    int begin = (int)threadIdx.x, step = (int)blockDim.x;
    float sum_or_max = edge, mean_or_max = 0.0f;
    float count =
        (float)((span.count - begin + step - 1) / step * VECTOR_ELEMENTS<T> + (span.edge >= 0));
    if (OP == ROWS_SOFTMAX && span.view.mask != NULL) {
        for (int i = begin; i < span.count; i += step) {
            slots[i] =
                apply_mask<T, false>(span.view, span.head + i * VECTOR_ELEMENTS<T>, slots[i]);
        }
    }
    if (HAS_MEAN_OR_MAX<OP>) {
#pragma unroll 4
        for (int i = begin; i < span.count; i += step) {
            sum_or_max = vector_add_or_max<OP, T>(slots[i], sum_or_max);
        }
        mean_or_max = OP == ROWS_SOFTMAX ? mean_or_max_of<OP>(sum_or_max, 1)
                                         : __fdividef(sum_or_max, fmaxf(count, 1));
    }
    float sum = span.edge < 0 ? 0.0f : square_or_exp<OP>(edge, mean_or_max);
#pragma unroll 4
    for (int i = begin; i < span.count; i += step) {
        sum += vector_squares_or_exps<OP, T, true>(span.view, i, slots[i], mean_or_max);
    }
    return {count, OP == ROWS_SOFTMAX ? sum_or_max * LOG2_E : mean_or_max, sum};
}

/*
 * A block a row, the row in shared memory. A thread's slots are its own: it fetches, reads and
 * refills them, so that they need no barrier, and the next row arrives while this one is stored.
 * Launch: as many blocks as the GPU holds at once; 16 bytes of shared memory for each vector.
 */
template <int OP, typename T>
static __global__ void __launch_bounds__(1024) rows_in_shared(struct rows_problem p) {
    extern __shared__ uint4 slots[];
    __shared__ struct row_stats exchange[2][MOST_WARPS];
    int begin = (int)threadIdx.x, step = (int)blockDim.x, buffer = 0;
    row_span<T> span = span_row<OP, T>(p, blockIdx.x);
    float edge = load_edge<OP>(span);
    for (int i = begin; i < span.count; i += step) {
        fetch(span, i, slots);
    }
    for (size_t row = blockIdx.x; row < p.rows; row += gridDim.x, buffer ^= 1) {
        cp_async_wait_all();
        /* Two buffers in turn: other threads may still read the last row's. */
        struct row_stats stats =
            block_merge<OP>(slot_stats<OP, T>(span, edge, slots), exchange[buffer]);
        float mean_or_max = stats_mean_or_max<OP>(stats),
              rstd_or_rcp = stats_rstd_or_rcp<OP>(stats, p);
        if (span.edge >= 0) {
            store_rounded(span.view.y + span.edge, normalise_at<OP, T>(p, (size_t)span.edge, edge,
                                                                       mean_or_max, rstd_or_rcp));
        }
        size_t next = row + gridDim.x;
        row_span<T> after = span_row<OP, T>(p, next < p.rows ? next : row);
        int arriving = next < p.rows ? after.count : 0;
        int most = arriving > span.count ? arriving : span.count;
#pragma unroll 2
        for (int i = begin; i < most; i += step) {
            uint4 bits = i < span.count ? slots[i] : make_uint4(0, 0, 0, 0);
            if (i < arriving) {
                fetch(after, i, slots);
            }
            if (i < span.count) {
                normalise_slot<OP, T>(p, span, i, bits, mean_or_max, rstd_or_rcp);
            }
        }
        edge = next < p.rows ? load_edge<OP>(after) : 0.0f;
        span = after;
    }
}

/* Vectors of one block of a row that `splits` blocks share. */
static __device__ __forceinline__ int share_of(int count, int splits) {
    return (count + splits - 1) / splits;
}

/* First of two kernels: statistics of each block's share, to partial (rows, splits). */
template <int OP, typename T>
static __global__ void __launch_bounds__(512)
    split_stats(struct rows_problem p, int count, int splits, struct row_stats *partial) {
    __shared__ struct row_stats exchange[MOST_WARPS];
    row_view<T> view = view_row<OP, T, false>(p, blockIdx.x / (unsigned)splits);
    int share = share_of(count, splits), begin = (int)(blockIdx.x % (unsigned)splits) * share;
    int end = begin + share < count ? begin + share : count, step = (int)blockDim.x;
    struct row_stats stats = empty_stats<OP>();
    for (int i = begin + (int)threadIdx.x; i < end; i += 4 * step) {
        uint4 bits[4];
        load_row<OP, T, false, 4>(view, i, step, end, bits);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (i + j * step < end) {
                stats = merge<OP>(stats, vector_stats<OP, T>(view, i + j * step, bits[j]));
            }
        }
    }
    stats = block_merge<OP>(stats, exchange);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = stats;
    }
}

/* Second: every warp merges the row's statistics in the same order, then the block normalises. */
template <int OP, typename T>
static __global__ void __launch_bounds__(512)
    split_normalise(struct rows_problem p, int count, int splits, const struct row_stats *partial) {
    size_t row = blockIdx.x / (unsigned)splits;
    row_view<T> view = view_row<OP, T, false>(p, row);
    struct row_stats stats = empty_stats<OP>();
    for (int i = (int)threadIdx.x % WARP; i < splits; i += WARP) {
        stats = merge<OP>(stats, partial[row * splits + i]);
    }
    stats = lanes_merge<OP, WARP>(stats);
    float mean_or_max = stats_mean_or_max<OP>(stats), rstd_or_rcp = stats_rstd_or_rcp<OP>(stats, p);
    int share = share_of(count, splits), begin = (int)(blockIdx.x % (unsigned)splits) * share;
    int end = begin + share < count ? begin + share : count, step = (int)blockDim.x;
    for (int i = begin + (int)threadIdx.x; i < end; i += 4 * step) {
        uint4 bits[4];
        load_row<OP, T, false, 4>(view, i, step, end, bits);
        normalise_row<OP, T, false, 4>(p, view, i, step, end, bits, mean_or_max, rstd_or_rcp);
    }
}

#endif
