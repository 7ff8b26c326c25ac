/**
 * @file step_kernel.cuh
 * @brief The kernel: a token of each of up to eight texts, product by product, in every block.
 *
 * One block a multiprocessor, all resident. Blocks exchange values by flags in the values, five
 * times a layer, and weights arrive meanwhile. A warp's chunk of the input is in its registers, so
 * that eight texts read what one reads, and a block reads an input once.
 *
 * Bytes of a layer: its weights, and from L2, for each block, two bytes a text and channel of each
 * product's input: 49 MB at 7B. FLOPs: 16 a weight. What was measured and tried: ../README.md.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_KERNEL_CUH_

#define ONE_FORM 8, 1, 2048, 2048 /* teams of attention: eight warps; no pipeline of d8 */
#define ONE_KEYS_HAVE_SCALES 1
#include "solutions/13_low_bit/rows/step_attention.cuh"
#include "solutions/13_low_bit/rows/step_kernels.h"
#include "solutions/13_low_bit/rows/step_product.cuh"

/* Dynamic shared memory, in this order: stages, sums, sums of inputs, squares, products, teams'
 * first items, barriers, layers, plans and lists of slices, norms and the residual stream of
 * `tiles` tiles. */
template <typename W> struct step_memory {
    static constexpr size_t STAGES = (size_t)STEP_WARPS * W::STAGES * W::BYTES;
    static constexpr size_t SUMS = 2 * W::BATCH * STEP_WARPS * STEP_OUTPUTS; /* floats */
    static constexpr size_t INPUTS = W::PARTS == 2 ? 0 : STEP_WARPS * W::PARTS * ROWS;

    static_assert(TEAMS * sizeof(struct team_shared) <= SUMS * sizeof(float), "attention's");
};

enum { STEP_SQUARES = 2 * STEP_WARPS * (int)ROWS };
static_assert((int)STEP_SQUARES <= (int)STEP_THREADS, "cleared at once");

/* The residual stream and the norms behind it. */
static size_t step_residual_bytes(size_t tiles) {
    return tiles * (STEP_OUTPUTS + 2 * LOW_BIT_TILE_ROWS) * sizeof(float);
}

template <typename W> static size_t step_residual_place(size_t L, size_t listed) {
    typedef struct step_memory<W> memory;
    size_t floats = memory::SUMS + memory::INPUTS + STEP_SQUARES;
    return memory::STAGES + floats * sizeof(float) +
           LOW_BIT_PRODUCTS * sizeof(struct block_product) + TEAMS * sizeof(struct team_first) +
           STEP_WARPS * (W::STAGES * sizeof(uint64_t) + sizeof(struct slice_plan) +
                         listed * sizeof(unsigned)) +
           (L + 1) * sizeof(struct step_layer);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

/* A text's embedding; 0 where there is none. */
static __device__ __forceinline__ float embedding_of(unsigned text, unsigned channel,
                                                     const struct step_arguments &p) {
    return text < p.rows && channel < p.C
               ? to_float(p.embedding[(size_t)p.tokens[text] * p.C + channel])
               : 0.0f;
}

/* The residual stream begins with the embeddings: each block has its tiles of channels. */
static __device__ __forceinline__ void begin_residual(const struct step_shared &s, unsigned flag,
                                                      const struct step_arguments &p) {
    const struct tile_range own = product_of(s, LOW_BIT_OUT).own;
    const float *norm = p.L > 0 ? s.layers[0].attention_norm : p.final_norm;
    for (unsigned tile = threadIdx.x / 32; tile < own.count; tile += STEP_WARPS) {
        unsigned channel = (own.first + tile) * LOW_BIT_TILE_ROWS + lane_row();
        float2 weights = make_float2(0.0f, 0.0f);
        float x[4];
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            x[i] = embedding_of(lane_text() + i % 2, channel + i / 2 * 8, p);
        }
        weights.x = channel < p.C ? __ldg(norm + channel) : 0.0f;
        weights.y = channel + 8 < p.C ? __ldg(norm + channel + 8) : 0.0f;
        ((float4 *)(s.residual + tile * STEP_OUTPUTS))[threadIdx.x % 32] =
            make_float4(x[0], x[1], x[2], x[3]);
        publish_residual(own.first + tile, x, weights, flag, p);
    }
}

/* Copies the table of layers, for which memory would be asked anew in each of them. */
static __device__ __forceinline__ void copy_layers(struct step_layer *to,
                                                   const struct step_arguments &p) {
    enum { WORDS = sizeof(struct step_layer) / sizeof(uint64_t) };
    for (unsigned i = threadIdx.x; i < (p.L + 1) * WORDS; i += STEP_THREADS) {
        ((uint64_t *)to)[i] = ((const uint64_t *)p.layers)[i];
    }
}

/* How the block has its matrices. */
static __device__ __forceinline__ void share_products(struct block_product *to,
                                                      const struct step_arguments &p) {
    if (threadIdx.x < LOW_BIT_PRODUCTS) {
        const struct step_product m = p.products[threadIdx.x];
        to[threadIdx.x] = {m, own_tiles(m.tiles)};
    }
}

/* @param memory dynamic shared memory, zeros nowhere */
template <typename W>
static __device__ __forceinline__ void run_step(unsigned char *memory,
                                                const struct step_arguments &p) {
    struct step_shared s = {};
    s.sums = (float *)(memory + step_memory<W>::STAGES);
    s.inputs = s.sums + step_memory<W>::SUMS;
    s.squares = s.inputs + step_memory<W>::INPUTS;
    struct block_product *products = (struct block_product *)(s.squares + STEP_SQUARES);
    struct team_first *items = (struct team_first *)(products + LOW_BIT_PRODUCTS);
    uint64_t *barriers = (uint64_t *)(items + TEAMS);
    struct step_layer *layers = (struct step_layer *)(barriers + STEP_WARPS * W::STAGES);
    struct slice_plan *plans = (struct slice_plan *)(layers + p.L + 1);
    s.residual = (float *)(memory + p.residual_at);
    s.norms = s.residual + p.residual_tiles * STEP_OUTPUTS;
    s.layers = layers;
    s.products = shared_address(products);
    copy_layers(layers, p);
    share_products(products, p);
    if (threadIdx.x < STEP_SQUARES) {
        s.squares[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    struct plan_begin begin;
    struct slice_pipeline pipe =
        begin_pipeline<W>(memory, barriers, plans, layers, products, &begin, p);
    wait_on_dependent_grids();
    unsigned steps = *(volatile unsigned *)p.steps;
    begin_residual(s, residual_flag(steps, 0, p), p);
    finish_pipeline<W>(&pipe, plans, products, begin, p);
    share_items(items, p);
#pragma unroll 1
    for (unsigned i = 0; i <= STEP_LAYER_KINDS * p.L; i++) {
        unsigned layer = i / STEP_LAYER_KINDS, kind = kind_of(i, p);
        if (kind == LOW_BIT_CLASSIFIER) {
            launch_dependent_grids();
        }
        multiply_matrix<W>(&s, &pipe, i, steps, p);
        if (kind == LOW_BIT_QKV) {
            __syncthreads();
            attend_texts((struct team_shared *)s.sums, items, layer, layer_flag(steps, layer, p),
                         p);
            __syncthreads();
        }
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *p.steps = steps + 1; /* each block has published something, so each has read it */
    }
}

#endif

template <typename W>
static __global__ void __launch_bounds__(STEP_THREADS, 1)
    step_kernel(const struct step_arguments p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char memory[];
    run_step<W>(memory, p);
#endif
}

/* Slices of a layer and the classifier that a warp has at most. */
template <typename W> static unsigned listed_slices(const struct step_arguments &p, size_t blocks) {
    size_t listed = 0;
    for (const struct step_product &m : p.products) {
        size_t tiles = ceil_div(ceil_div(m.tiles, blocks), (size_t)1 << m.group_bits);
        listed += tiles * slices_of_tile<W>(m, 0);
    }
    return (unsigned)(ceil_div(listed + 1, 4) * 4); /* and an end */
}

template <typename W>
static struct step_kernel_choice choose_step_kernel(struct step_arguments *p, size_t blocks) {
    void (*function)(struct step_arguments) = step_kernel<W>;
    p->listed = listed_slices<W>(*p, blocks);
    p->residual_at = (unsigned)step_residual_place<W>(p->L, p->listed);
    return {(const void *)function, p->residual_at + step_residual_bytes(p->residual_tiles)};
}

#endif
