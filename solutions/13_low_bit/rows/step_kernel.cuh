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

/* Dynamic shared memory, in this order: stages, norms, sums, sums of inputs, squares, barriers,
 * layers, plans and lists of slices, the residual stream of `tiles` tiles. */
template <typename W> struct step_memory {
    static constexpr size_t STAGES = (size_t)STEP_WARPS * W::STAGES * W::BYTES;
    static constexpr size_t SUMS = 2 * W::BATCH * STEP_WARPS * STEP_WARP_SUMS; /* floats */
    static constexpr size_t INPUTS = STEP_WARPS * W::PARTS * ROWS;             /* floats */

    static_assert(TEAMS * sizeof(struct team_shared) <= SUMS * sizeof(float), "attention's");
};

enum { STEP_NORMS = STEP_WARPS * STEP_READS * 4, STEP_SQUARES = 2 * STEP_WARPS * (int)ROWS };

template <typename W> static size_t step_shared_bytes(size_t tiles, size_t L, size_t listed) {
    typedef struct step_memory<W> memory;
    size_t floats = memory::SUMS + memory::INPUTS + STEP_SQUARES + tiles * STEP_OUTPUTS;
    return memory::STAGES + STEP_NORMS * sizeof(uint4) + floats * sizeof(float) +
           STEP_WARPS * (W::STAGES * sizeof(uint64_t) + sizeof(struct slice_plan) +
                         listed * sizeof(unsigned)) +
           (L + 1) * sizeof(struct step_layer);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

/* The residual stream begins with the embeddings: each block has its tiles of channels. */
static __device__ __forceinline__ void begin_residual(const struct step_shared &s, unsigned flag,
                                                      const struct step_arguments &p) {
    const struct tile_range own = own_tiles(p.products[LOW_BIT_OUT].tiles);
    const struct output_place at = place_of_output(threadIdx.x % STEP_OUTPUTS);
    if (at.text >= p.rows || at.row % 4 >= 2) {
        return;
    }
    const __nv_bfloat16 *row = p.embedding + (size_t)p.tokens[at.text] * p.C;
    for (unsigned tile = threadIdx.x / STEP_OUTPUTS; tile < own.count;
         tile += STEP_THREADS / STEP_OUTPUTS) {
        unsigned channel = (own.first + tile) * LOW_BIT_TILE_ROWS + at.row;
        if (channel < p.C) {
            float *residual = s.residual + tile * STEP_OUTPUTS + threadIdx.x % STEP_OUTPUTS;
            float first = to_float(row[channel]), second = to_float(row[channel + 2]);
            residual[0] = first;
            residual[8] = second; /* two rows further */
            publish_pair(p.x, at.text, channel, first, second, flag);
        }
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

/* Has L2 fetch the norm after the next one while a product is under way. */
static __device__ __forceinline__ void prefetch_norm(const struct step_layer *layers,
                                                     unsigned layer, unsigned kind,
                                                     const struct step_arguments &p) {
    enum { LINE = 128 / sizeof(float) };
    unsigned channel = threadIdx.x * LINE;
    if ((kind == LOW_BIT_QKV || kind == LOW_BIT_GATE_UP) && channel < p.C) {
        const float *norm = kind == LOW_BIT_QKV ? layers[layer].ffn_norm
                            : layer + 1 < p.L   ? layers[layer + 1].attention_norm
                                                : p.final_norm;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(norm + channel));
    }
}

/* @param memory dynamic shared memory, zeros nowhere */
template <typename W>
static __device__ __forceinline__ void run_step(unsigned char *memory,
                                                const struct step_arguments &p) {
    struct step_shared s = {};
    s.norms = (uint4 *)(memory + step_memory<W>::STAGES);
    s.sums = (float *)(s.norms + STEP_NORMS);
    s.inputs = s.sums + step_memory<W>::SUMS;
    s.squares = s.inputs + step_memory<W>::INPUTS;
    uint64_t *barriers = (uint64_t *)(s.squares + STEP_SQUARES);
    struct step_layer *layers = (struct step_layer *)(barriers + STEP_WARPS * W::STAGES);
    struct slice_plan *plans = (struct slice_plan *)(layers + p.L + 1);
    s.residual = (float *)(plans + STEP_WARPS * (1 + p.listed / 4));
    copy_layers(layers, p);
    __syncthreads();
    s.layers = layers;
    struct slice_pipeline pipe = open_pipeline<W>(memory, barriers, plans, layers, p);
    wait_on_dependent_grids();
    unsigned steps = *(volatile unsigned *)p.steps;
    begin_residual(s, residual_flag(steps, 0, p), p);
#pragma unroll 1
    for (unsigned i = 0; i <= STEP_LAYER_KINDS * p.L; i++) {
        unsigned layer = i / STEP_LAYER_KINDS, kind = kind_of(i, p);
        prefetch_norm(layers, layer, kind, p);
        if (kind == LOW_BIT_CLASSIFIER) {
            launch_dependent_grids();
        }
        multiply_matrix<W>(&s, &pipe, i, steps, p);
        if (kind == LOW_BIT_QKV) {
            __syncthreads();
            attend_texts((struct team_shared *)s.sums, layer, layer_flag(steps, layer, p), p);
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
        size_t tiles = ceil_div(ceil_div(m.tiles, blocks), m.groups);
        listed += tiles * slices_of_tile<W>(m, 0);
    }
    return (unsigned)(ceil_div(listed, 4) * 4);
}

template <typename W>
static struct step_kernel_choice choose_step_kernel(struct step_arguments *p, size_t blocks) {
    void (*function)(struct step_arguments) = step_kernel<W>;
    p->listed = listed_slices<W>(*p, blocks);
    return {(const void *)function, step_shared_bytes<W>(p->residual_tiles, p->L, p->listed)};
}

#endif
