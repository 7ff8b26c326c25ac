/**
 * @file v6_long.cuh
 * @brief v6, rows too long for registers: in shared memory, or shared out among blocks.
 *
 * Both look at a row once for centre and scale, so here the online forms pay.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_V6_LONG_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_V6_LONG_CUH_

#include "solutions/05_layernorm_softmax/online.cuh"
#include "solutions/05_layernorm_softmax/v6_registers.cuh"

/* Starts a copy of 16 bytes from global to shared memory. Before compute capability 8.0: copies. */
static __device__ __forceinline__ void copy16(uint4 *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
    *to = *(const uint4 *)from;
#endif
}

static __device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* The part that one vector makes: its elements two-pass, they are in registers. */
template <int OP, typename T, bool ALIGNED>
static __device__ __forceinline__ struct part vector_part(const row_view<T> &view, int i,
                                                          uint4 bits) {
    int first = i * LANES<T> - view.shift, count = LANES<T>;
    if (!ALIGNED && !is_whole<T, ALIGNED>(view, first)) {
        int begin = first < 0 ? 0 : first, end = first + LANES<T>;
        end = end < view.C ? end : view.C;
        count = end > begin ? end - begin : 0;
    }
    float centre = 0.0f, all = HAS_CENTRE<OP> ? vector_first<OP, T>(bits, first_of_none<OP>()) : 0;
    if (HAS_CENTRE<OP> && count > 0) {
        centre = OP == ROWS_SOFTMAX ? centre_of<OP>(all, 1) : __fdividef(all, (float)count);
    }
    float spread = vector_spread<OP, T, ALIGNED>(view, i, bits, centre);
    return {(float)count, OP == ROWS_SOFTMAX ? all : centre, spread};
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

/* Starts the copy of a thread's vectors of a row into its own slots. */
template <int OP, typename T, bool ALIGNED>
static __device__ __forceinline__ void fetch(const row_view<T> &view, int i, uint4 *slot) {
    int first = i * LANES<T> - view.shift;
    if (is_whole<T, ALIGNED>(view, first)) {
        copy16(slot, view.x + first);
    } else {
        *slot = load_elements<OP>(view, first);
    }
}

/*
 * A block a row, the row in shared memory. A thread's slots are its own: it fetches, reads and
 * refills them, so that no barrier guards them, and the next row arrives while this one leaves.
 * Launch: as many blocks as the GPU holds at once; 16 bytes of shared memory for each vector.
 */
template <int OP, typename T, bool ALIGNED>
static __global__ void __launch_bounds__(1024) rows_in_shared(struct rows_problem p, int count) {
    extern __shared__ uint4 slots[];
    __shared__ struct part meet[2][MOST_WARPS];
    int begin = (int)threadIdx.x, step = (int)blockDim.x, turn = 0;
    row_view<T> view = view_row<OP, T, ALIGNED>(p, blockIdx.x);
    for (int i = begin; i < count; i += step) {
        fetch<OP, T, ALIGNED>(view, i, &slots[i]);
    }
    for (size_t row = blockIdx.x; row < p.rows; row += gridDim.x, turn ^= 1) {
        size_t next = row + gridDim.x;
        struct part part = part_of_none<OP>();
        wait_copies();
        for (int i = begin; i < count; i += step) {
            if (OP == ROWS_SOFTMAX && view.mask != NULL) {
                slots[i] = hide<T, ALIGNED>(view, i * LANES<T> - view.shift, slots[i]);
            }
            part = merge<OP>(part, vector_part<OP, T, ALIGNED>(view, i, slots[i]));
        }
        part = block_merge<OP>(part, meet[turn]); /* in turn: others may still read the last one */
        float centre = part_centre<OP>(part), scale = part_scale<OP>(part, p);
        row_view<T> after = view_row<OP, T, ALIGNED>(p, next < p.rows ? next : row);
        for (int i = begin; i < count; i += step) {
            uint4 bits = slots[i];
            if (next < p.rows) {
                fetch<OP, T, ALIGNED>(after, i, &slots[i]);
            }
            finish_vector<OP, T, ALIGNED>(p, view, i, bits, centre, scale);
        }
        view = after;
    }
}

/* Vectors of one block of a row that `splits` blocks share. */
static __device__ __forceinline__ int share_of(int count, int splits) {
    return (count + splits - 1) / splits;
}

/* First of two kernels: what is known of each block's share, to parts (rows, splits). */
template <int OP, typename T, bool ALIGNED>
static __global__ void __launch_bounds__(512)
    split_look(struct rows_problem p, int count, int splits, struct part *parts) {
    __shared__ struct part meet[MOST_WARPS];
    row_view<T> view = view_row<OP, T, ALIGNED>(p, blockIdx.x / (unsigned)splits);
    int share = share_of(count, splits), begin = (int)(blockIdx.x % (unsigned)splits) * share;
    int end = begin + share < count ? begin + share : count, step = (int)blockDim.x;
    struct part part = part_of_none<OP>();
    for (int i = begin + (int)threadIdx.x; i < end; i += 4 * step) {
        uint4 bits[4];
        load_row<OP, T, ALIGNED, 4>(view, i, step, end, bits);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (i + j * step < end) {
                part = merge<OP>(part, vector_part<OP, T, ALIGNED>(view, i + j * step, bits[j]));
            }
        }
    }
    part = block_merge<OP>(part, meet);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
    }
}

/* Second: every warp puts the row's parts together, in the same order, and the block goes on. */
template <int OP, typename T, bool ALIGNED>
static __global__ void __launch_bounds__(512)
    split_finish(struct rows_problem p, int count, int splits, const struct part *parts) {
    size_t row = blockIdx.x / (unsigned)splits;
    row_view<T> view = view_row<OP, T, ALIGNED>(p, row);
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
        load_row<OP, T, ALIGNED, 4>(view, i, step, end, bits);
        finish_row<OP, T, ALIGNED, 4>(p, view, i, step, end, bits, centre, scale);
    }
}

#endif
