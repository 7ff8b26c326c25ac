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
    static constexpr unsigned PARTS = GROUP == 32 ? 8 : 2;
    /* of a warp's pipeline, and tiles that a warp multiplies between two barriers */
    static constexpr unsigned STAGES = GROUP == 32 ? 3 : GROUP == 128 ? 4 : 5;
    static constexpr unsigned BATCH = GROUP == 0 ? 2 : 4;
};

/* Slices of a tile that are a warp's: of all its chunks, of which the last may have fewer. */
template <typename W>
static __host__ __device__ __forceinline__ unsigned slices_of_tile(const struct step_product &m,
                                                                   unsigned first_chunk) {
    unsigned warps = warps_of_group(m), chunks = (m.chunks - first_chunk + warps - 1) / warps;
    unsigned last = m.slices - (first_chunk + (chunks - 1) * warps) * W::OF_CHUNK;
    return (chunks - 1) * W::OF_CHUNK + (last < W::OF_CHUNK ? last : W::OF_CHUNK);
}

/* Which slice of a matrix is number i of a warp: slices of a chunk, then tiles of a batch, then
 * chunks, then batches. @param of_tile what slices_of_tile() says */
template <typename W>
static __device__ __forceinline__ unsigned slice_number(const struct block_product &m,
                                                        const struct warp_part &part,
                                                        unsigned of_tile, unsigned i) {
    unsigned batch = i / (W::BATCH * of_tile) * W::BATCH, tiles = part.tiles - batch;
    tiles = tiles < W::BATCH ? tiles : W::BATCH;
    i -= batch * of_tile;
    unsigned turn = i / (tiles * W::OF_CHUNK);
    unsigned chunk = part.first_chunk + turn * warps_of_group(m.all);
    i -= turn * tiles * W::OF_CHUNK;
    unsigned slices = m.all.slices - chunk * W::OF_CHUNK;
    slices = slices < W::OF_CHUNK ? slices : W::OF_CHUNK;
    unsigned tile = m.own.first + ((batch + i / slices) << m.all.group_bits) + part.group;
    return tile * m.all.slices + chunk * W::OF_CHUNK + i % slices;
}

/* An entry of a list: where a slice begins, in units of 16 bytes, and in the upper bits whether it
 * is its layer's last one and which of the layer's matrices it is of. */
#define SLICE_OFFSET 0x1fffffffu
#define SLICE_ENDS_LAYER 0x20000000u
#define SLICE_STREAM_SHIFT 30
#define SLICE_NONE 0xffffffffu /* behind the list */

/* Lists a warp's slices of a matrix. @return how many */
template <typename W>
static __device__ __forceinline__ unsigned list_slices(unsigned *to, const struct block_product &m,
                                                       unsigned stream) {
    const struct warp_part part = part_of(m);
    if (part.tiles == 0) {
        return 0;
    }
    unsigned of_tile = slices_of_tile<W>(m.all, part.first_chunk), count = part.tiles * of_tile;
    for (unsigned i = threadIdx.x % 32; i < count; i += 32) {
        to[i] =
            stream << SLICE_STREAM_SHIFT | slice_number<W>(m, part, of_tile, i) * (W::BYTES / 16);
    }
    return count;
}

/* What a warp asks for: shared memory, because registers are few; lane 0 of the warp alone uses it.
 * A list of slices follows: of a layer, then of the classifier. */
struct __align__(16) slice_plan {
    unsigned next;        /* address of the entry to ask for */
    unsigned layer;       /* address of its struct step_layer */
    unsigned first, last; /* addresses of the list and of the last layer */
};

/* A warp's ring of stages. */
struct slice_pipeline {
    unsigned stages, barriers; /* addresses of the warp's first ones in shared memory */
    unsigned oldest, phase;    /* the stage to read, and its barrier's parity */
    unsigned plan;             /* address */
};

static __device__ __forceinline__ unsigned read_word_at(unsigned address) {
    unsigned x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
    return x;
}

/* Two words; the first one is the lower half. */
static __device__ __forceinline__ unsigned long long read_long_at(unsigned address) {
    unsigned long long x;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(x) : "r"(address) : "memory");
    return x;
}

static __device__ __forceinline__ uint2 read_pair_at(unsigned address) {
    unsigned long long x = read_long_at(address);
    return make_uint2((unsigned)x, (unsigned)(x >> 32));
}

static __device__ __forceinline__ void write_pair_at(unsigned address, uint2 x) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(x.x), "r"(x.y) : "memory");
}

/* bulk_load() of bytes that a step reads once: L2 gives them up first, not what blocks exchange. */
static __device__ __forceinline__ void load_weights(unsigned to, const void *from, unsigned bytes,
                                                    unsigned barrier) {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "l"(policy)
                 : "memory");
}

/* Asks for the next slice. @param stage an empty one */
template <typename W>
static __device__ __forceinline__ void ask_for_slice(const struct slice_pipeline *pipe,
                                                     unsigned stage) {
    if (threadIdx.x % 32 != 0) {
        return;
    }
    uint2 next = read_pair_at(pipe->plan);
    unsigned slice = read_word_at(next.x);
    if (slice != SLICE_NONE) {
        unsigned long long from = read_long_at(next.y + (slice >> SLICE_STREAM_SHIFT) * 8);
        unsigned barrier = pipe->barriers + stage * 8;
        mbarrier_arrive_expect_tx(barrier, W::BYTES);
        load_weights(pipe->stages + stage * W::BYTES,
                     (const unsigned char *)from + (size_t)(slice & SLICE_OFFSET) * 16, W::BYTES,
                     barrier);
        next.x += 4;
        if ((slice & SLICE_ENDS_LAYER) != 0) {
            const uint2 ends = read_pair_at(pipe->plan + 8);
            next = make_uint2(next.y == ends.y ? next.x : ends.x,
                              next.y + (unsigned)sizeof(struct step_layer));
        }
        write_pair_at(pipe->plan, next);
    }
}

/* @return the address of the slice behind `behind` others, which has arrived */
template <typename W>
static __device__ __forceinline__ unsigned wait_for_slice(const struct slice_pipeline *pipe,
                                                          unsigned behind = 0) {
    unsigned stage = pipe->oldest + behind, phase = pipe->phase;
    if (behind > 0 && stage >= W::STAGES) {
        stage -= W::STAGES, phase ^= 1;
    }
    mbarrier_wait(pipe->barriers + stage * 8, phase);
    return pipe->stages + stage * W::BYTES;
}

/* Gives back the oldest slice, which all lanes have read, and asks for another one. */
template <typename W>
static __device__ __forceinline__ void release_slice(struct slice_pipeline *pipe) {
    __syncwarp();
    ask_for_slice<W>(pipe, pipe->oldest);
    pipe->oldest++;
    if (pipe->oldest == W::STAGES) {
        pipe->oldest = 0;
        pipe->phase ^= 1;
    }
}

/* Asks for a warp's first slices, from stage `first` to `end` - 1. */
template <typename W>
static __device__ __forceinline__ void fill_stages(const struct slice_pipeline *pipe,
                                                   unsigned first, unsigned end) {
    __syncwarp();
#pragma unroll 1
    for (unsigned i = first; i < end; i++) {
        ask_for_slice<W>(pipe, i);
    }
}

/* The warp's slices of QKV, which come first, are on the way before the others are listed; but not
 * the last one of them: whether it ends its layer is not known yet. */
struct plan_begin {
    unsigned listed, asked;
};

/* The warp's pipeline. @param stages, barriers, plans, layers, products shared memory, the first
 * three of all warps @param begin for finish_pipeline() */
template <typename W>
static __device__ __forceinline__ struct slice_pipeline
begin_pipeline(const unsigned char *stages, const uint64_t *barriers, struct slice_plan *plans,
               const struct step_layer *layers, const struct block_product *products,
               struct plan_begin *begin, const struct step_arguments &p) {
    struct slice_pipeline pipe = {};
    unsigned warp = threadIdx.x / 32;
    struct slice_plan *plan = plans + warp * (1 + p.listed / 4);
    pipe.stages = shared_address(stages) + warp * (W::STAGES * W::BYTES);
    pipe.barriers = shared_address(barriers) + warp * (W::STAGES * 8);
    pipe.plan = shared_address(plan);
    if (threadIdx.x % 32 < W::STAGES) {
        mbarrier_init(pipe.barriers + threadIdx.x % 32 * 8, 1);
        mbarrier_init_fence();
    }
    begin->listed = list_slices<W>((unsigned *)(plan + 1), products[LOW_BIT_QKV], LOW_BIT_QKV);
    begin->asked = p.L > 0 && begin->listed > 0 ? begin->listed - 1 : 0;
    begin->asked = begin->asked < W::STAGES ? begin->asked : W::STAGES;
    if (threadIdx.x % 32 == 0) {
        unsigned first = shared_address(plan + 1), layer = shared_address(layers);
        *plan = {first, layer, first, layer + (p.L - 1) * (unsigned)sizeof(struct step_layer)};
    }
    fill_stages<W>(&pipe, 0, begin->asked);
    return pipe;
}

/* Lists the warp's other slices, and fills the pipeline. @param plans as above */
template <typename W>
static __device__ __forceinline__ void
finish_pipeline(const struct slice_pipeline *pipe, struct slice_plan *plans,
                const struct block_product *products, const struct plan_begin &begin,
                const struct step_arguments &p) {
    struct slice_plan *plan = plans + threadIdx.x / 32 * (1 + p.listed / 4);
    unsigned *list = (unsigned *)(plan + 1), of_layer = begin.listed;
    for (unsigned kind = LOW_BIT_QKV + 1; kind < STEP_LAYER_KINDS; kind++) {
        of_layer += list_slices<W>(list + of_layer, products[kind], kind);
    }
    unsigned all = of_layer + list_slices<W>(list + of_layer, products[LOW_BIT_CLASSIFIER], 0);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        list[all] = SLICE_NONE;
        if (of_layer > 0 && p.L > 0) {
            list[of_layer - 1] |= SLICE_ENDS_LAYER;
        } else { /* the classifier's are all there are */
            plan->next = plan->first + of_layer * 4;
            plan->layer = plan->last + (unsigned)sizeof(struct step_layer);
        }
    }
    fill_stages<W>(pipe, begin.asked, W::STAGES);
}

#endif
