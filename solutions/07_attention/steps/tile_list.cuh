/**
 * @file tile_list.cuh
 * @brief The queries of each block in steps v3 to v7, and the number of blocks.
 */
#ifndef WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_TILE_LIST_CUH_
#define WARPBOOK_SOLUTIONS_07_ATTENTION_STEPS_TILE_LIST_CUH_

#include <stdlib.h>

#include "common/cuda/gpu_limits.cuh"
#include "solutions/07_attention/steps/ladder.h"
#include "solutions/07_attention/steps/tile_loads.cuh"

/* For padded launches, and v3 and v4: all sequences have the same number of blocks. */
struct no_list {};

/* For a launch on packed sequences: its tiles of queries, a kernel parameter by value. */
enum { MOST_TILES = 448 };

struct tile_list {
    unsigned count;
    struct {
        uint32_t sequence, tile;
    } tiles[MOST_TILES];
};

template <typename E>
static __device__ __forceinline__ struct sequence<E>
sequence_of_block(const struct attention_problem &p, const struct no_list &, int rows) {
    return padded_sequence<E>(p, (unsigned)rows);
}

/* Blocks are (tile of the list, h) in blockIdx.x, h innermost. */
template <typename E>
static __device__ __forceinline__ struct sequence<E>
sequence_of_block(const struct attention_problem &p, const struct tile_list &list, int rows) {
    unsigned i = blockIdx.x / (unsigned)p.NH;
    struct sequence<E> s = sequence_of<E>(p, list.tiles[i].sequence, blockIdx.x % (unsigned)p.NH);
    s.first = (int)list.tiles[i].tile * rows;
    return s;
}

/* Longer sequences first, of equal ones the earlier. */
static inline int
compare_lengths(const void *a, const void *b, void *starts) {
    const int32_t *s = (const int32_t *)starts;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int32_t difference = (s[y + 1] - s[y]) - (s[x + 1] - s[x]);
    return difference != 0 ? (difference > 0 ? 1 : -1) : x < y ? -1 : 1;
}

/* Sequences, longest first: blocks of long ones that begin last would end alone. malloc()ed. */
static inline uint32_t *order_sequences(const struct attention_problem *p) {
    uint32_t *order = (uint32_t *)malloc((p->B + 1) * sizeof *order);
    for (size_t b = 0; b < p->B && order != NULL; b++) {
        order[b] = (uint32_t)b;
    }
    if (order != NULL) {
        qsort_r(order, p->B, sizeof *order, compare_lengths, (void *)p->host_starts);
    }
    return order;
}

/* launch_lists() for sequences in this order. */
template <typename LAUNCH>
static enum status launch_in_order(const struct attention_problem *p, size_t rows,
                                   const uint32_t *order, LAUNCH launch) {
    struct tile_list list;
    list.count = 0;
    for (size_t i = 0; i < p->B; i++) {
        size_t b = order[i], length = (size_t)(p->host_starts[b + 1] - p->host_starts[b]);
        size_t tiles = (length + rows - 1) / rows;
        for (size_t tile = 0; tile < tiles; tile++) {
            list.tiles[list.count].sequence = (uint32_t)b;
            list.tiles[list.count++].tile = (uint32_t)(p->causal ? tiles - 1 - tile : tile);
            if (list.count == MOST_TILES) {
                TRY(launch(list));
                list.count = 0;
            }
        }
    }
    return list.count > 0 ? launch(list) : STATUS_OK;
}

/* Calls launch(list) with the tiles of `rows` queries of all packed sequences, MOST_TILES at a
   time; of causal sequences the last tile first, which has the most keys. */
template <typename LAUNCH>
static enum status launch_lists(const struct attention_problem *p, size_t rows, LAUNCH launch,
                                struct error *error) {
    if (p->NH > INT_MAX / MOST_TILES) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "attention: NH = %zu is above %d", p->NH,
                         INT_MAX / MOST_TILES);
    }
    uint32_t *order = order_sequences(p);
    if (order == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "attention: out of memory on the host");
    }
    enum status status = launch_in_order(p, rows, order, launch);
    free(order);
    return status;
}

/* Whether blocks of `rows` queries give every multiprocessor `each`. */
static inline bool fills(const struct attention_problem *p, size_t rows,
                         const struct gpu_limits &gpu, size_t each) {
    size_t queries = p->starts != NULL ? (size_t)p->host_starts[p->B] : p->B * p->T;
    return queries / rows * p->NH >= each * (size_t)gpu.multiprocessors;
}

/* Whether every token's every head begins 16-byte aligned in out. */
static inline bool out_aligned(const struct attention_problem *p) {
    size_t bytes = (p->HS | p->out_stride) * nn_dtype_bytes(p->dtype);
    return (((uintptr_t)p->out | bytes) & 15u) == 0;
}

#endif
