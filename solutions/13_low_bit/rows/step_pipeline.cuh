/**
 * @file step_pipeline.cuh
 * @brief A warp's weights: a multistage pipeline of slices, which the TMA fills.
 *
 * The slices of a whole step are one sequence, from the first layer's to the classifier's, so that
 * memory does not idle while blocks exchange values. A slice with its scales is one copy.
 * Where a warp's slices are in the matrices of a layer is the same in all layers: a list in shared
 * memory, made once.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PIPELINE_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_PIPELINE_CUH_

#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "solutions/13_low_bit/rows/step_arguments.cuh"

/* GROUP: columns of int4 with one scale of type S; 0: int8 by row. */
template <int GROUP_, typename S> struct step_weights {
    typedef S scale;
    static constexpr int GROUP = GROUP_;
    static constexpr unsigned COLUMNS = GROUP == 0 ? 128 : 256; /* of a slice */
    static constexpr unsigned OF_CHUNK = STEP_CHUNK / COLUMNS;  /* slices */
    static constexpr unsigned ENTRIES = GROUP == 0 ? 0 : 256 / (GROUP + (GROUP == 0));
    static constexpr unsigned BYTES = LOW_BIT_SLICE_VALUES + ENTRIES * 64;
    /* of a chunk: parts whose accumulators begin with the zero point times a sum of inputs */
    static constexpr unsigned PARTS = GROUP == 0 ? OF_CHUNK : GROUP == 32 ? 8 : 4;
    /* of a warp's pipeline, and tiles that a warp multiplies between two barriers */
    static constexpr unsigned STAGES = GROUP == 32 ? 3 : GROUP == 128 ? 4 : 5;
    static constexpr unsigned BATCH = GROUP == 0 ? 2 : 4;
};

/* Slices of a tile that are a warp's: of all its chunks, of which the last may have fewer. */
template <typename W>
static __host__ __device__ __forceinline__ unsigned slices_of_tile(const struct step_product &m,
                                                                   unsigned first_chunk) {
    unsigned chunks = (m.chunks - first_chunk + m.warps - 1) / m.warps;
    unsigned last = m.slices - (first_chunk + (chunks - 1) * m.warps) * W::OF_CHUNK;
    return (chunks - 1) * W::OF_CHUNK + (last < W::OF_CHUNK ? last : W::OF_CHUNK);
}

/* Which slice of a matrix is number i of a warp: slices of a chunk, then tiles of a batch, then
 * chunks, then batches. @param of_tile what slices_of_tile() says */
template <typename W>
static __device__ __forceinline__ unsigned slice_number(const struct step_product &m,
                                                        const struct warp_part &part,
                                                        unsigned of_tile, unsigned i) {
    unsigned batch = i / (W::BATCH * of_tile) * W::BATCH, tiles = part.tiles - batch;
    tiles = tiles < W::BATCH ? tiles : W::BATCH;
    i -= batch * of_tile;
    unsigned turn = i / (tiles * W::OF_CHUNK), chunk = part.first_chunk + turn * m.warps;
    i -= turn * tiles * W::OF_CHUNK;
    unsigned slices = m.slices - chunk * W::OF_CHUNK;
    slices = slices < W::OF_CHUNK ? slices : W::OF_CHUNK;
    unsigned tile = own_tiles(m.tiles).first + (batch + i / slices) * m.groups + part.group;
    return tile * m.slices + chunk * W::OF_CHUNK + i % slices;
}

/* Lists a warp's slices of a matrix: where they begin, in units of 16 bytes, and in the upper two
 * bits which of the layer's matrices. @return how many */
template <typename W>
static __device__ __forceinline__ unsigned list_slices(unsigned *to, const struct step_product &m,
                                                       unsigned stream) {
    const struct warp_part part = part_of(m);
    if (part.tiles == 0) {
        return 0;
    }
    unsigned of_tile = slices_of_tile<W>(m, part.first_chunk), count = part.tiles * of_tile;
    for (unsigned i = threadIdx.x % 32; i < count; i += 32) {
        to[i] = stream << 30 | slice_number<W>(m, part, of_tile, i) * (W::BYTES / 16);
    }
    return count;
}

/* What a warp asks for: shared memory, because registers are few; lane 0 of the warp alone uses it.
 * A list of slices follows: of a layer, then of the classifier. */
struct slice_plan {
    unsigned of_layer, all; /* slices of the list */
    unsigned next, layer;   /* to ask for; the classifier is layer L */
};

/* A warp's ring of stages. */
struct slice_pipeline {
    unsigned stages, barriers; /* addresses of the warp's first ones in shared memory */
    unsigned oldest, phase;    /* the stage to read, and its barrier's parity */
    struct slice_plan *plan;
    const struct step_layer *layers; /* shared memory, (L + 1) */
};

/* Asks for the next slice. @param stage an empty one */
template <typename W>
static __device__ __forceinline__ void ask_for_slice(const struct slice_pipeline *pipe,
                                                     unsigned stage, unsigned L) {
    if (threadIdx.x % 32 != 0) {
        return;
    }
    const struct slice_plan plan = *pipe->plan;
    if (plan.next < plan.all) {
        unsigned slice = ((const unsigned *)(pipe->plan + 1))[plan.next], next = plan.next + 1;
        const unsigned char *from = pipe->layers[plan.layer].streams[slice >> 30];
        unsigned barrier = pipe->barriers + stage * 8;
        mbarrier_arrive_expect_tx(barrier, W::BYTES);
        bulk_load(pipe->stages + stage * W::BYTES, from + (size_t)(slice & 0x3fffffffu) * 16,
                  W::BYTES, barrier);
        bool ends = next == plan.of_layer && plan.layer < L;
        pipe->plan->next = ends && plan.layer + 1 < L ? 0 : next;
        pipe->plan->layer = plan.layer + (ends ? 1 : 0);
    }
}

/* @return the address of the oldest slice, which has arrived */
template <typename W>
static __device__ __forceinline__ unsigned wait_for_slice(const struct slice_pipeline *pipe) {
    mbarrier_wait(pipe->barriers + pipe->oldest * 8, pipe->phase);
    return pipe->stages + pipe->oldest * W::BYTES;
}

/* Gives back the oldest slice, which all lanes have read, and asks for another one. */
template <typename W>
static __device__ __forceinline__ void release_slice(struct slice_pipeline *pipe, unsigned L) {
    __syncwarp();
    ask_for_slice<W>(pipe, pipe->oldest, L);
    pipe->oldest++;
    if (pipe->oldest == W::STAGES) {
        pipe->oldest = 0;
        pipe->phase ^= 1;
    }
}

/* The warp's pipeline, with its first slices on the way. @param stages, barriers, plans, layers
 * shared memory, the first three of all warps */
template <typename W>
static __device__ __forceinline__ struct slice_pipeline
open_pipeline(const unsigned char *stages, const uint64_t *barriers, struct slice_plan *plans,
              const struct step_layer *layers, const struct step_arguments &p) {
    struct slice_pipeline pipe = {};
    unsigned warp = threadIdx.x / 32;
    pipe.stages = shared_address(stages) + warp * (W::STAGES * W::BYTES);
    pipe.barriers = shared_address(barriers) + warp * (W::STAGES * 8);
    pipe.layers = layers;
    pipe.plan = plans + warp * (1 + p.listed / 4);
    unsigned *list = (unsigned *)(pipe.plan + 1), of_layer = 0;
    for (unsigned kind = 0; kind < STEP_LAYER_KINDS; kind++) {
        of_layer += list_slices<W>(list + of_layer, p.products[kind], kind);
    }
    unsigned all = of_layer + list_slices<W>(list + of_layer, p.products[LOW_BIT_CLASSIFIER], 0);
    if (threadIdx.x % 32 == 0) {
        *pipe.plan = {of_layer, all, 0, of_layer > 0 ? 0 : p.L};
    }
    if (threadIdx.x % 32 < W::STAGES) {
        mbarrier_init(pipe.barriers + threadIdx.x % 32 * 8, 1);
        mbarrier_init_fence();
    }
    __syncwarp();
#pragma unroll 1
    for (unsigned i = 0; i < W::STAGES; i++) {
        ask_for_slice<W>(&pipe, i, p.L);
    }
    return pipe;
}

#endif
