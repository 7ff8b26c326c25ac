/**
 * @file step_kernel.cuh
 * @brief The kernel: a token of each of up to eight texts, product by product, in every block.
 *
 * One block a multiprocessor, all resident. Blocks exchange values by flags in the values, five
 * times a layer; weights arrive meanwhile. A warp's inputs are in registers, so eight texts read
 * what one reads, and an input once a block.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_KERNEL_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_KERNEL_CUH_

#define ONE_FORM 8, 1, 2048, 2048 /* teams of attention: eight warps; no pipeline of d8 */
#define ONE_KEYS_HAVE_SCALES 1
#include "solutions/13_low_bit/rows/step_attention.cuh"
#include "solutions/13_low_bit/rows/step_kernels.h"
#include "solutions/13_low_bit/rows/step_product.cuh"

/* Dynamic shared memory, in this order: stages, sums, norms, squares, barriers, cursors, the
 * residual stream of `tiles` tiles. */
template <typename W> struct step_memory {
    static constexpr size_t STAGES = (size_t)STEP_WARPS * W::STAGES * W::BYTES;
};

enum {
    STEP_SUMS = 2 * STEP_BATCH * STEP_WARPS * STEP_OUTPUTS,
    STEP_NORMS = STEP_WARPS * STEP_CHUNK,
    STEP_SQUARES = 2 * STEP_WARPS * (int)ROWS
};

static_assert(TEAMS * sizeof(struct team_shared) <= STEP_SUMS * sizeof(float),
              "attention's memory");

template <typename W> static size_t step_shared_bytes(size_t tiles) {
    size_t floats = STEP_SUMS + STEP_NORMS + STEP_SQUARES + tiles * STEP_OUTPUTS;
    return step_memory<W>::STAGES + floats * sizeof(float) +
           STEP_WARPS * (W::STAGES * sizeof(uint64_t) + sizeof(struct slice_cursor));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

/* The residual stream begins with the embeddings: each block has its tiles of channels. */
static __device__ __forceinline__ void begin_residual(const struct step_shared &s, unsigned flag,
                                                      const struct step_arguments &p) {
    const struct tile_range own = own_tiles(p.products[LOW_BIT_OUT].tiles);
    const struct output_place at = place_of_output(threadIdx.x % STEP_OUTPUTS);
    if (at.text >= p.rows) {
        return;
    }
    const __nv_bfloat16 *row = p.embedding + (size_t)p.tokens[at.text] * p.C;
    for (unsigned tile = threadIdx.x / STEP_OUTPUTS; tile < own.count;
         tile += STEP_THREADS / STEP_OUTPUTS) {
        unsigned channel = (own.first + tile) * LOW_BIT_TILE_ROWS + at.row;
        if (channel < p.C) {
            float x = to_float(row[channel]);
            s.residual[tile * STEP_OUTPUTS + threadIdx.x % STEP_OUTPUTS] = x;
            publish(p.x, input_place(at.text, channel), x, flag);
        }
    }
}

/* Product number `i` of the step: four a layer, then the classifier. */
template <typename W>
static __device__ __forceinline__ struct step_call call_of(unsigned i, unsigned steps,
                                                           const struct step_arguments &p) {
    struct step_call c = {};
    c.layer = i / STEP_LAYER_KINDS;
    c.kind = c.layer == p.L ? (unsigned)LOW_BIT_CLASSIFIER : i % STEP_LAYER_KINDS;
    const struct step_product &m = p.products[c.kind];
    const struct step_layer *layer = p.layers + c.layer;
    unsigned of_layer = layer_flag(steps, c.layer, p), sublayers = 2 * c.layer;
    const unsigned char *matrix =
        c.kind == LOW_BIT_CLASSIFIER ? p.classifier : layer->streams[c.kind];
    c.rows = matrix + (size_t)m.tiles * m.slices * W::BYTES;
    if (c.kind == LOW_BIT_OUT || c.kind == LOW_BIT_DOWN) {
        c.in = c.kind == LOW_BIT_OUT ? p.heads : p.hidden;
        c.out = p.x;
        c.in_flag = of_layer;
        c.out_flag = residual_flag(steps, sublayers + (c.kind == LOW_BIT_OUT ? 1 : 2), p);
    } else {
        c.in = p.x;
        c.out = c.kind == LOW_BIT_QKV ? p.qkv : p.hidden;
        c.in_flag = residual_flag(steps, sublayers + (c.kind == LOW_BIT_GATE_UP ? 1 : 0), p);
        c.out_flag = of_layer;
        c.norm = c.kind == LOW_BIT_QKV       ? layer->attention_norm
                 : c.kind == LOW_BIT_GATE_UP ? layer->ffn_norm
                                             : p.final_norm;
    }
    return c;
}

/* @param memory dynamic shared memory, zeros nowhere */
template <typename W>
static __device__ __forceinline__ void run_step(unsigned char *memory,
                                                const struct step_arguments &p) {
    struct step_shared s = {};
    s.sums = (float *)(memory + step_memory<W>::STAGES);
    s.norms = s.sums + STEP_SUMS;
    s.squares = s.norms + STEP_NORMS;
    uint64_t *barriers = (uint64_t *)(s.squares + STEP_SQUARES);
    struct slice_cursor *cursors = (struct slice_cursor *)(barriers + STEP_WARPS * W::STAGES);
    s.residual = (float *)(cursors + STEP_WARPS);
    struct slice_pipeline pipe = open_pipeline<W>(memory, barriers, cursors, p);
    wait_on_dependent_grids();
    unsigned steps = *(volatile unsigned *)p.steps;
    begin_residual(s, residual_flag(steps, 0, p), p);
#pragma unroll 1
    for (unsigned i = 0; i <= STEP_LAYER_KINDS * p.L; i++) {
        const struct step_call c = call_of<W>(i, steps, p);
        if (c.kind == LOW_BIT_CLASSIFIER) {
            launch_dependent_grids();
        }
        multiply_matrix<W>(&s, &pipe, c, p);
        if (c.kind == LOW_BIT_QKV) {
            __syncthreads();
            attend_texts((struct team_shared *)s.sums, c.layer, layer_flag(steps, c.layer, p), p);
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

template <typename W> static struct step_kernel_choice choose_step_kernel(size_t tiles) {
    void (*function)(struct step_arguments) = step_kernel<W>;
    return {(const void *)function, step_shared_bytes<W>(tiles), W::OF_CHUNK, W::STAGES};
}

#endif
