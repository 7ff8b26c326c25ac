/**
 * @file step_pipeline.cuh
 * @brief A warp's weights: a multistage pipeline of slices, which the TMA fills.
 *
 * The slices of a whole step are one sequence, from the first layer's to the classifier's, so that
 * memory does not idle while blocks exchange values. A slice with its scales is one copy.
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
    /* of a warp's pipeline, and tiles that a warp multiplies between two barriers */
    static constexpr unsigned STAGES = GROUP == 32 ? 3 : GROUP == 128 ? 4 : 5;
    static constexpr unsigned BATCH = GROUP == 0 ? 2 : 4;
};

/* The next slice to ask for: shared memory, because registers are few; lane 0 of the warp alone
 * uses it. Tiles count in a warp's own ones. */
struct slice_cursor {
    const unsigned char *matrix; /* the block's first tile */
    unsigned layer, kind;
    unsigned tiles, group, groups, slices, chunks, warps;
    unsigned batch, tile, chunk, slice; /* slice of the chunk */
    unsigned stage;                     /* to fill */
    unsigned unused;
};

/* @return false behind the classifier */
static __device__ __forceinline__ bool has_kind(const struct slice_cursor &c,
                                                const struct step_arguments &p) {
    return c.layer < p.L || (c.layer == p.L && c.kind == 0);
}

/* The first slice of the cursor's matrix, or of the next one of which the warp has a part. */
template <typename W>
static __device__ __forceinline__ void enter_matrix(struct slice_cursor *c,
                                                    const struct step_layer *layers,
                                                    const struct step_arguments &p) {
    c->tiles = 0;
    while (has_kind(*c, p)) {
        const struct step_product &m =
            p.products[c->layer == p.L ? (unsigned)LOW_BIT_CLASSIFIER : c->kind];
        const struct warp_part part = part_of(m);
        if (part.tiles > 0) {
            const unsigned char *from =
                c->layer == p.L ? p.classifier : layers[c->layer].streams[c->kind];
            c->matrix = from + (size_t)own_tiles(m.tiles).first * m.slices * W::BYTES;
            c->tiles = part.tiles, c->group = part.group, c->groups = m.groups;
            c->slices = m.slices, c->chunks = m.chunks, c->warps = m.warps;
            c->batch = c->tile = c->slice = 0;
            c->chunk = part.first_chunk;
            return;
        }
        c->kind = c->kind + 1 == STEP_LAYER_KINDS ? 0 : c->kind + 1;
        c->layer += c->kind == 0 ? 1 : 0;
    }
}

/* Slices of a chunk, then tiles of a batch, then chunks, then batches. */
template <typename W>
static __device__ __forceinline__ void
advance(struct slice_cursor *c, const struct step_layer *layers, const struct step_arguments &p) {
    c->slice++;
    if (c->slice < W::OF_CHUNK && c->chunk * W::OF_CHUNK + c->slice < c->slices) {
        return;
    }
    c->slice = 0;
    c->tile++;
    if (c->tile < c->tiles && c->tile < c->batch + W::BATCH) {
        return;
    }
    c->tile = c->batch;
    c->chunk += c->warps;
    if (c->chunk < c->chunks) {
        return;
    }
    c->batch = c->tile = c->batch + W::BATCH;
    c->chunk = threadIdx.x / 32 % c->warps;
    if (c->batch < c->tiles) {
        return;
    }
    c->kind = c->kind + 1 == STEP_LAYER_KINDS ? 0 : c->kind + 1;
    c->layer += c->kind == 0 ? 1 : 0;
    enter_matrix<W>(c, layers, p);
}

/* A warp's ring of stages. */
struct slice_pipeline {
    unsigned stages, barriers; /* addresses of the warp's first ones in shared memory */
    unsigned oldest, phase;    /* the stage to read, and its barrier's parity */
    struct slice_cursor *next;
    const struct step_layer *layers; /* shared memory */
};

/* Asks for the next slice. */
template <typename W>
static __device__ __forceinline__ void ask_for_slice(const struct slice_pipeline *pipe,
                                                     const struct step_arguments &p) {
    if (threadIdx.x % 32 == 0) {
        struct slice_cursor c = *pipe->next;
        if (c.tiles > 0) {
            unsigned tile = c.tile * c.groups + c.group;
            unsigned slice = c.chunk * W::OF_CHUNK + c.slice;
            const unsigned char *from = c.matrix + (size_t)(tile * c.slices + slice) * W::BYTES;
            unsigned barrier = pipe->barriers + c.stage * 8;
            mbarrier_arrive_expect_tx(barrier, W::BYTES);
            bulk_load(pipe->stages + c.stage * W::BYTES, from, W::BYTES, barrier);
            c.stage = c.stage + 1 == W::STAGES ? 0 : c.stage + 1;
            advance<W>(&c, pipe->layers, p);
            *pipe->next = c;
        }
    }
    __syncwarp();
}

/* @return the address of the oldest slice, which has arrived */
template <typename W>
static __device__ __forceinline__ unsigned wait_for_slice(const struct slice_pipeline *pipe) {
    mbarrier_wait(pipe->barriers + pipe->oldest * 8, pipe->phase);
    return pipe->stages + pipe->oldest * W::BYTES;
}

/* Gives back the oldest slice, which all lanes have read, and asks for another one. */
template <typename W>
static __device__ __forceinline__ void release_slice(struct slice_pipeline *pipe,
                                                     const struct step_arguments &p) {
    __syncwarp();
    pipe->oldest++;
    if (pipe->oldest == W::STAGES) {
        pipe->oldest = 0;
        pipe->phase ^= 1;
    }
    ask_for_slice<W>(pipe, p);
}

/* The warp's pipeline, with its first slices on the way. @param stages, barriers, cursors of all
 * warps */
template <typename W>
static __device__ __forceinline__ struct slice_pipeline
open_pipeline(const unsigned char *stages, const uint64_t *barriers, struct slice_cursor *cursors,
              const struct step_layer *layers, const struct step_arguments &p) {
    struct slice_pipeline pipe = {};
    unsigned warp = threadIdx.x / 32;
    pipe.stages = shared_address(stages) + warp * (W::STAGES * W::BYTES);
    pipe.barriers = shared_address(barriers) + warp * (W::STAGES * 8);
    pipe.next = cursors + warp;
    pipe.layers = layers;
    if (threadIdx.x % 32 == 0) {
        for (unsigned i = 0; i < W::STAGES; i++) {
            mbarrier_init(pipe.barriers + i * 8, 1);
        }
        mbarrier_init_fence();
        struct slice_cursor c = {};
        enter_matrix<W>(&c, layers, p);
        *pipe.next = c;
    }
    __syncwarp();
#pragma unroll 1
    for (unsigned i = 0; i < W::STAGES; i++) {
        ask_for_slice<W>(&pipe, p);
    }
    return pipe;
}

#endif
