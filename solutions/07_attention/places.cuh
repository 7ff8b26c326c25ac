/**
 * @file places.cuh
 * @brief Which queries a block of steps v3 to v5 has, and how many blocks there are.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_PLACES_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_PLACES_CUH_

#include <stdlib.h>

#include "solutions/07_attention/ladder.h"
#include "solutions/07_attention/parts.cuh"

/* Packed sequences, longest first: blocks of long ones that begin last would end alone. */
enum { MOST_ORDERED = 1024 };

struct order {
    unsigned count; /* 0: as they lie */
    uint16_t sequence[MOST_ORDERED];
};

static __device__ __forceinline__ int ordered(const struct order &order, int i) {
    return order.count > 0 ? order.sequence[i] : i;
}

/*
 * Blocks are (tile of queries, h) in blockIdx.x, h innermost, tiles only where there are queries. A
 * warp adds up the tiles of 32 sequences at a time until it comes to the block's.
 */
template <typename E>
static __device__ __forceinline__ struct sequence<E>
packed_sequence(const struct attention_problem &p, const struct order &order, int rows) {
    int tile = (int)(blockIdx.x / (unsigned)p.NH), B = (int)p.B, lane = threadIdx.x % 32;
    for (int base = 0; base < B; base += 32) {
        int b = base + lane < B ? ordered(order, base + lane) : 0;
        int length = base + lane < B ? p.starts[b + 1] - p.starts[b] : 0;
        int tiles = (length + rows - 1) / rows, until = tiles;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            int before = __shfl_up_sync(~0u, until, step);
            until += lane >= step ? before : 0;
        }
        unsigned beyond = __ballot_sync(~0u, until > tile);
        if (beyond != 0) {
            int owner = __ffs((int)beyond) - 1;
            int first = tile - __shfl_sync(~0u, until - tiles, owner);
            b = __shfl_sync(~0u, b, owner);
            struct sequence<E> s = sequence_of<E>(p, (size_t)b, blockIdx.x % (unsigned)p.NH);
            s.first = first * rows;
            return s;
        }
        tile -= __shfl_sync(~0u, until, 31);
    }
    struct sequence<E> nothing = {};
    return nothing;
}

/* LENGTHS: step v5's way with packed sequences; otherwise a block for every tile of the longest. */
template <typename E, bool LENGTHS>
static __device__ __forceinline__ struct sequence<E> place(const struct attention_problem &p,
                                                           const struct order &order, int rows) {
    if (LENGTHS && p.starts != NULL) {
        return packed_sequence<E>(p, order, rows);
    }
    return padded_sequence<E>(p, (unsigned)rows);
}

/* Longer sequences first, of equal ones the earlier. */
static inline int
compare_lengths(const void *a, const void *b, void *starts) {
    const int32_t *s = (const int32_t *)starts;
    int x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    int32_t difference = (s[y + 1] - s[y]) - (s[x + 1] - s[x]);
    return difference != 0 ? (difference > 0 ? 1 : -1) : x - y;
}

/* Counts the blocks, and with LENGTHS and packed sequences puts them in order. */
template <bool LENGTHS>
static enum status plan_blocks(const struct attention_problem *p, size_t rows, struct order *order,
                               unsigned *blocks, struct error *error) {
    order->count = 0;
    if (!LENGTHS || p->starts == NULL) {
        return count_blocks(p, rows, blocks, error);
    }
    size_t tiles = 0;
    for (size_t b = 0; b < p->B; b++) {
        size_t length = (size_t)(p->host_starts[b + 1] - p->host_starts[b]);
        tiles += (length + rows - 1) / rows;
    }
    if (p->B <= MOST_ORDERED) {
        for (size_t b = 0; b < p->B; b++) {
            order->sequence[b] = (uint16_t)b;
        }
        order->count = (unsigned)p->B;
        qsort_r(order->sequence, p->B, sizeof *order->sequence, compare_lengths,
                (void *)p->host_starts);
    }
    if (tiles * p->NH > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "attention: NH = %zu, and %zu tiles of queries, need more than %d blocks",
                         p->NH, tiles, INT_MAX);
    }
    *blocks = (unsigned)(p->HS == 0 ? 0 : tiles * p->NH);
    return STATUS_OK;
}

/* What decides between tiles. */
struct gpu_limits {
    int multiprocessors, major;
    size_t shared_bytes; /* of a block */
};

static inline int gpu_attribute(cudaDeviceAttr attribute) {
    int device = 0, value = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
        return 0; /* the launch reports it */
    }
    return value;
}

static inline struct gpu_limits gpu_limits() {
    struct gpu_limits gpu;
    gpu.multiprocessors = gpu_attribute(cudaDevAttrMultiProcessorCount);
    gpu.major = gpu_attribute(cudaDevAttrComputeCapabilityMajor);
    gpu.shared_bytes = (size_t)gpu_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return gpu;
}

/* Whether blocks of so many queries give every multiprocessor one. */
static inline bool fills(const struct attention_problem *p, size_t rows,
                         const struct gpu_limits &gpu) {
    size_t queries = p->starts != NULL ? (size_t)p->host_starts[p->B] : p->B * p->T;
    return queries / rows * p->NH >= (size_t)gpu.multiprocessors;
}

/* Whether every token's every head begins 16-byte aligned in out. */
static inline bool out_aligned(const struct attention_problem *p) {
    size_t bytes = (p->HS | p->out_stride) * nn_dtype_bytes(p->dtype);
    return (((uintptr_t)p->out | bytes) & 15u) == 0;
}

#endif
