/**
 * @file ring.cuh
 * @brief The product of step v7: weights stream through shared memory, one block a multiprocessor.
 *
 * Teams of threads have a row of weights at a time; a thread has the same PIECES pieces of 16 bytes
 * of each of its team's rows, and a ring of DEPTH rows' pieces in shared memory that nobody else
 * touches: no barrier guards it. x, times the norm, stays in registers. Each warp leaves its sum of
 * each row; at the end a thread a row puts those together.
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_RING_CUH_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_RING_CUH_

#include "solutions/09_kv_cache/product.cuh"

enum {
    RING_THREADS = 512,
    RING_PIECES = 12,   /* of a thread in its ring: 96 KB a block, so that two fit */
    RING_SUMS = 4096    /* sums of warps, for so many rows at a time as that has room for */
};

/* A thread's place: its team's rows are first + team, first + team + teams, ... */
struct place {
    int thread, width; /* in the team; threads of a team, a multiple of 32 */
    int team, teams;
    int rows; /* of the block */
    int pieces;
    const uint4 *weight; /* the block's first row */
};

template <int PIECES>
static __device__ __forceinline__ void ask(uint4 *ring, const struct place &at, int slot, int row) {
    const uint4 *from = at.weight + (size_t)row * at.pieces;
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int piece = at.thread + i * at.width;
        if (row < at.rows && piece < at.pieces) {
            copy_16(ring + (slot * PIECES + i) * RING_THREADS + threadIdx.x, from + piece);
        }
    }
    close_copies();
}

/* The thread's part of x, times the norm; 0 where a row has no piece. Returns its sum of squares. */
template <typename E, int PIECES>
static __device__ __forceinline__ float load_x(float y[PIECES][wide<E>::COUNT],
                                               const struct kv_linear &l, const struct place &at) {
    constexpr int WIDE = wide<E>::COUNT;
    float squares = 0.0f, norm[WIDE];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        int piece = at.thread + i * at.width;
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            y[i][j] = 0.0f;
        }
        if (piece < at.pieces) {
            load_floats<WIDE>(y[i], l.in + (size_t)piece * WIDE);
        }
        if (piece < at.pieces && l.norm != NULL) {
            load_floats<WIDE>(norm, l.norm + (size_t)piece * WIDE);
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                squares += y[i][j] * y[i][j];
                y[i][j] *= norm[j];
            }
        }
    }
    return squares;
}

/* The thread's product with the row in a slot. */
template <typename E, int PIECES>
static __device__ __forceinline__ float product_of(const uint4 *ring, int slot,
                                                   const float y[PIECES][wide<E>::COUNT],
                                                   const struct place &at) {
    float sum = 0.0f, values[wide<E>::COUNT];
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        if (at.thread + i * at.width < at.pieces) {
            unpack(ring[(slot * PIECES + i) * RING_THREADS + threadIdx.x], values, E());
#pragma unroll
            for (int j = 0; j < wide<E>::COUNT; j++) {
                sum += values[j] * y[i][j];
            }
        }
    }
    return sum;
}

/*
 * Grid: as many blocks as multiprocessors, rows dealt out evenly, in order. blockDim.x: teams of
 * `width` threads. Dynamic shared memory: the ring. Precondition: linear_aligned(), a row has at
 * most width * PIECES pieces. Bytes: N * K * sizeof(E).
 */
template <typename E, int PIECES>
static __global__ void __launch_bounds__(RING_THREADS, 2) ring_kernel(struct product p, int width) {
    constexpr int DEPTH = RING_PIECES / PIECES;
    extern __shared__ uint4 ring[];
    __shared__ float sums[RING_SUMS], squares_of[RING_THREADS / 32];
    const struct kv_linear &l = p.l;
    size_t first = l.N * blockIdx.x / gridDim.x, end = l.N * (blockIdx.x + 1) / gridDim.x;
    struct place at = {};
    at.pieces = (int)(l.K / wide<E>::COUNT);
    at.width = width;
    at.thread = (int)threadIdx.x % width, at.team = (int)threadIdx.x / width;
    at.teams = (int)blockDim.x / width;
    at.rows = (int)(end - first);
    at.weight = (const uint4 *)l.weight + first * at.pieces;
    if (!p.late) {
        let_next_begin();
    }
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        ask<PIECES>(ring, at, i, at.team + i * at.teams);
    }
    wait_for_front();
    if (p.late) {
        let_next_begin();
    }
    float y[PIECES][wide<E>::COUNT];
    int lane = threadIdx.x % 32, warps = width / 32, pitch = warps | 1, slot = 0;
    int room = min((int)RING_SUMS / pitch, (int)blockDim.x) / at.teams * at.teams;
    float residual = 0.0f;
    if (l.residual != NULL && (int)threadIdx.x < min(room, at.rows)) {
        residual = l.residual[first + threadIdx.x]; /* on its way early */
    }
    float squares = lane_sum(load_x<E, PIECES>(y, l, at));
    if (lane == 0) {
        squares_of[threadIdx.x / 32] = squares;
    }
    for (int base = 0; base < at.rows; base += room) {
        int stop = min(base + room, at.rows);
        for (int row = base + at.team; row < stop; row += at.teams) {
            wait_copies<DEPTH - 1>();
            float sum = lane_sum(product_of<E, PIECES>(ring, slot, y, at));
            ask<PIECES>(ring, at, slot, row + DEPTH * at.teams);
            slot = slot + 1 < DEPTH ? slot + 1 : 0;
            if (lane == 0) {
                sums[(row - base) * pitch + at.thread / 32] = sum;
            }
        }
        __syncthreads();
        int row = base + (int)threadIdx.x;
        if (row < stop) {
            float sum = 0.0f, factor = 1.0f;
            for (int i = 0; i < warps; i++) {
                sum += sums[threadIdx.x * pitch + i];
            }
            if (l.norm != NULL) {
                squares = 0.0f;
                for (int i = 0; i < warps; i++) {
                    squares += squares_of[i];
                }
                factor = norm_factor(squares, l.K, l.eps);
            }
            if (base > 0 && l.residual != NULL) {
                residual = l.residual[first + row];
            }
            l.out[first + row] = residual + factor * sum;
        }
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; blockIdx.x == 0 && i < p.count; i += blockDim.x) {
        p.counters[i] = 0;
    }
}

/* ---- Launches ---- */

/* @return false where the GPU has not so much shared memory */
template <typename E, int PIECES>
static inline bool launch_ring(const struct product &p, unsigned multiprocessors, bool chained,
                               device_stream stream) {
    constexpr auto kernel = ring_kernel<E, PIECES>;
    size_t pieces = p.l.K / wide<E>::COUNT;
    size_t width = ceil_div(ceil_div(pieces, PIECES), 32) * 32;
    unsigned threads = (unsigned)(RING_THREADS / width * width);
    size_t bytes = sizeof(uint4) * RING_PIECES * RING_THREADS;
    unsigned blocks = p.l.N < multiprocessors ? (unsigned)p.l.N : multiprocessors;
    if (!allow_shared((const void *)kernel, bytes)) {
        return false;
    }
    if (chained) {
        launch_chained<kernel>(dim3(blocks), dim3(threads), bytes, stream, p, (int)width);
    } else {
        kernel<<<blocks, threads, bytes, stream>>>(p, (int)width);
    }
    return true;
}

/* Whether v7's kernel takes it: a row is one round of its threads. */
static inline bool ring_takes(const struct kv_linear *l) {
    return linear_aligned(l) && l->N > 0 && l->N <= INT_MAX &&
           l->K * nn_dtype_bytes(l->dtype) / 16 <= 4 * (size_t)RING_THREADS;
}

/* Pieces of a thread: as few as make its threads busy. */
template <typename E>
static inline bool launch_ring_for(const struct product &p, unsigned multiprocessors, bool chained,
                                   device_stream stream) {
    size_t pieces = p.l.K / wide<E>::COUNT;
    if (pieces <= 256) {
        return launch_ring<E, 1>(p, multiprocessors, chained, stream);
    }
    if (pieces <= 1024) {
        return launch_ring<E, 2>(p, multiprocessors, chained, stream);
    }
    if (pieces <= 1536) {
        return launch_ring<E, 3>(p, multiprocessors, chained, stream);
    }
    return launch_ring<E, 4>(p, multiprocessors, chained, stream);
}

#endif
