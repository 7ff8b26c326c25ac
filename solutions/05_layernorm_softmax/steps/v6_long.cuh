/**
 * @file v6_long.cuh
 * @brief v6, rows too long for registers: in shared memory, or shared out among blocks.
 *
 * Here the online forms pay: blocks that share a row look at it once, and threads
 * that share one in shared memory know centre and scale of their own part before
 * they meet, so that one barrier is enough.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_LONG_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_LONG_CUH_

#include "common/cuda/async_copy.cuh"
#include "solutions/05_layernorm_softmax/steps/online.cuh"
#include "solutions/05_layernorm_softmax/steps/v6_registers.cuh"

/* The part that one vector makes: its elements two-pass, they are in registers. */
template <int OP, typename T>
static __device__ __forceinline__ struct part vector_part(const row_view<T> &view, int i,
                                                          uint4 bits) {
    int first = i * VECTOR_ELEMENTS<T> - view.shift, count = VECTOR_ELEMENTS<T>;
    if (!is_whole<T, false>(view, first)) {
        int begin = first < 0 ? 0 : first, end = first + VECTOR_ELEMENTS<T>;
        end = end < view.C ? end : view.C;
        count = end > begin ? end - begin : 0;
    }
    float centre = 0.0f, all = HAS_CENTRE<OP> ? vector_first<OP, T>(bits, first_of_none<OP>()) : 0;
    if (HAS_CENTRE<OP> && count > 0) {
        centre = OP == ROWS_SOFTMAX ? centre_of<OP>(all, 1) : __fdividef(all, (float)count);
    }
    float spread = vector_spread<OP, T, false>(view, i, bits, centre);
    return {(float)count, OP == ROWS_SOFTMAX ? all * LOG2_E : centre, spread};
}

/* Over the block, in every thread, with one barrier. */
template <int OP> static __device__ struct part block_merge(struct part own, struct part *meet) {
    int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    own = lanes_merge<OP, WARP>(own);
    if (lane == 0) {
        meet[threadIdx.x / WARP] = own;
    }
    __syncthreads();
    return lanes_merge<OP, WARP>(lane < warps ? meet[lane] : part_of_none<OP>());
}

/*
 * A row that begins anywhere: its whole vectors, and the few elements before and behind them, one
 * each for the first threads of the block.
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

/* The element outside the vectors; a thread that has none gets one that changes nothing. */
template <int OP, typename T>
static __device__ __forceinline__ float load_edge(const row_span<T> &span) {
    return span.edge < 0 ? first_of_none<OP>()
                         : element<OP>(span.view.x, span.view.mask, (size_t)span.edge);
}

/* Weights of a vector, of which only every fourth or eighth row has aligned ones. */
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

/* Finishes and stores a vector, and with it nothing of its neighbours. */
template <int OP, typename T>
static __device__ __forceinline__ void finish_slot(const struct rows_problem &p,
                                                   const row_span<T> &span, int i, uint4 bits,
                                                   float centre, float scale) {
    int first = span.head + i * VECTOR_ELEMENTS<T>;
    float weight[VECTOR_ELEMENTS<T>] = {}, bias[VECTOR_ELEMENTS<T>] = {};
    if (OP != ROWS_SOFTMAX) {
        weights_at((const T *)p.weight, first, weight);
    }
    if (OP == ROWS_LAYERNORM) {
        weights_at((const T *)p.bias, first, bias);
    }
    bits = finished<OP, T>(bits, centre, scale, weight, bias);
    if ((uintptr_t)(span.view.y + first) % 16 == 0) {
        *(uint4 *)(span.view.y + first) = bits;
    } else {
        store_elements(span.view, first, bits);
    }
}

/* What a thread knows of the row after two looks at its own slots. What the mask hides becomes -inf
 * there, for the third look too. */
template <int OP, typename T>
static __device__ __forceinline__ struct part look(const row_span<T> &span, float edge,
                                                   uint4 *slots) {
    int begin = (int)threadIdx.x, step = (int)blockDim.x;
    float first = edge, centre = 0.0f;
    float count =
        (float)((span.count - begin + step - 1) / step * VECTOR_ELEMENTS<T> + (span.edge >= 0));
    if (OP == ROWS_SOFTMAX && span.view.mask != NULL) {
        for (int i = begin; i < span.count; i += step) {
            slots[i] = hide<T, false>(span.view, span.head + i * VECTOR_ELEMENTS<T>, slots[i]);
        }
    }
    if (HAS_CENTRE<OP>) {
#pragma unroll 4
        for (int i = begin; i < span.count; i += step) {
            first = vector_first<OP, T>(slots[i], first);
        }
        centre = OP == ROWS_SOFTMAX ? centre_of<OP>(first, 1) : __fdividef(first, fmaxf(count, 1));
    }
    float spread = span.edge < 0 ? 0.0f : spread_of<OP>(edge, centre);
#pragma unroll 4
    for (int i = begin; i < span.count; i += step) {
        spread += vector_spread<OP, T, true>(span.view, i, slots[i], centre);
    }
    return {count, OP == ROWS_SOFTMAX ? first * LOG2_E : centre, spread};
}

/*
 * A block a row, the row in shared memory. A thread's slots are its own: it fetches, reads and
 * refills them, so that no barrier guards them, and the next row arrives while this one leaves.
 * Launch: as many blocks as the GPU holds at once; 16 bytes of shared memory for each vector.
 */
template <int OP, typename T>
static __global__ void __launch_bounds__(1024) rows_in_shared(struct rows_problem p) {
    extern __shared__ uint4 slots[];
    __shared__ struct part meet[2][MOST_WARPS];
    int begin = (int)threadIdx.x, step = (int)blockDim.x, turn = 0;
    row_span<T> span = span_row<OP, T>(p, blockIdx.x);
    float edge = load_edge<OP>(span);
    for (int i = begin; i < span.count; i += step) {
        fetch(span, i, slots);
    }
    for (size_t row = blockIdx.x; row < p.rows; row += gridDim.x, turn ^= 1) {
        cp_async_wait_all();
        /* In turn: others may still read what met for the last row. */
        struct part part = block_merge<OP>(look<OP, T>(span, edge, slots), meet[turn]);
        float centre = part_centre<OP>(part), scale = part_scale<OP>(part, p);
        if (span.edge >= 0) {
            store_rounded(span.view.y + span.edge,
                          finish_at<OP, T>(p, (size_t)span.edge, edge, centre, scale));
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
                finish_slot<OP, T>(p, span, i, bits, centre, scale);
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

/* First of two kernels: what is known of each block's share, to parts (rows, splits). */
template <int OP, typename T>
static __global__ void __launch_bounds__(512)
    split_look(struct rows_problem p, int count, int splits, struct part *parts) {
    __shared__ struct part meet[MOST_WARPS];
    row_view<T> view = view_row<OP, T, false>(p, blockIdx.x / (unsigned)splits);
    int share = share_of(count, splits), begin = (int)(blockIdx.x % (unsigned)splits) * share;
    int end = begin + share < count ? begin + share : count, step = (int)blockDim.x;
    struct part part = part_of_none<OP>();
    for (int i = begin + (int)threadIdx.x; i < end; i += 4 * step) {
        uint4 bits[4];
        load_row<OP, T, false, 4>(view, i, step, end, bits);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (i + j * step < end) {
                part = merge<OP>(part, vector_part<OP, T>(view, i + j * step, bits[j]));
            }
        }
    }
    part = block_merge<OP>(part, meet);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
    }
}

/* Second: every warp puts the row's parts together, in the same order, and the block goes on. */
template <int OP, typename T>
static __global__ void __launch_bounds__(512)
    split_finish(struct rows_problem p, int count, int splits, const struct part *parts) {
    size_t row = blockIdx.x / (unsigned)splits;
    row_view<T> view = view_row<OP, T, false>(p, row);
    struct part part = part_of_none<OP>();
    for (int i = (int)threadIdx.x % WARP; i < splits; i += WARP) {
        part = merge<OP>(part, parts[row * splits + i]);
    }
    part = lanes_merge<OP, WARP>(part);
    float centre = part_centre<OP>(part), scale = part_scale<OP>(part, p);
    int share = share_of(count, splits), begin = (int)(blockIdx.x % (unsigned)splits) * share;
    int end = begin + share < count ? begin + share : count, step = (int)blockDim.x;
    for (int i = begin + (int)threadIdx.x; i < end; i += 4 * step) {
        uint4 bits[4];
        load_row<OP, T, false, 4>(view, i, step, end, bits);
        finish_row<OP, T, false, 4>(p, view, i, step, end, bits, centre, scale);
    }
}

#endif
