/**
 * @file d8_run.cuh
 * @brief d8's kernel: a token, sublayer by sublayer, in every block.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_RUN_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_RUN_CUH_

#include "solutions/10_llama2_decoder/steps/d8_attention.cuh"
#include "solutions/10_llama2_decoder/steps/d8_gemv.cuh"
#include "solutions/10_llama2_decoder/steps/ladder.h"

/* Queries of a team, which share a key head, for the token at a position; 0 for groups that the
 * kernel does not support. */
size_t one_queries_of_team(const struct decoder *d, size_t position);

/* The kernel's arguments for the token at a position. */
struct one_arguments one_arguments_of(const struct decoder *d, size_t position);

/* Adds the product of out or down to the residual stream: all of it is this GPU's. */
struct local_residual {
    template <typename W>
    __device__ __forceinline__ void add(struct pipeline *pipe, const struct block_state *b,
                                        bool second, const typename W::embedding *row, unsigned,
                                        const struct one_arguments &p) const {
        add_to_residual<W>(pipe, b, second ? ONE_DOWN : ONE_OUT, row,
                           second ? ONE_FLAG_AFTER_DOWN : ONE_FLAG_AFTER_OUT, p);
    }
};

/* A block's static shared memory. */
struct static_shared {
    float2 angles[ONE_MAX_HS / 2];
    float squares[ONE_WARPS];
};

/*
 * A sublayer, attention or the feed-forward network, whose input b->x has. Both are a product of
 * the residual stream, an operator on its result, and a product that is added to the stream. One
 * code serves both, because a multiprocessor caches 128 KiB of instructions.
 *
 * @param row the token's embedding in the first sublayer, else NULL
 * @param tag the layer's first
 * @param residual what adds the product to the residual stream: local_residual, or another one
 */
template <typename W, int GROUP, typename RESIDUAL>
static __device__ __forceinline__ void
run_sublayer(struct pipeline *pipe, struct block_state *b, struct static_shared *fixed, unsigned l,
             bool second, const typename W::embedding *row, unsigned tag,
             const struct one_arguments &p, const RESIDUAL &residual) {
    const struct one_layer *layer = &pipe->plan->layers[l];
    const typename W::scales scales =
        W::scales_of(pipe, b, second ? ONE_GATE : ONE_QKV, threadIdx.x, p);
    multiply_all<W>(pipe, b, second ? ONE_GATE : ONE_QKV, second ? ONE_UP : ONE_QKV,
                    second ? p.held_back : held_back_before_attention(pipe->plan->item, p), p);
    if (second) {
        publish_gated<W>(pipe, b, scales, flag_of(tag), p);
        prefetch_l2(l + 1 < p.L ? layer[1].attention_norm : p.final_norm, p.C);
    } else {
        publish_qkv<W>(pipe, b, scales, tag + ONE_TAG_QKV, p);
        prefetch_l2(layer->ffn_norm, p.C);
        attend<typename W::cache, GROUP>(pipe, l, (float *)b->x, fixed->angles, tag, p);
    }
    gather_input<W, false>(pipe, b, second ? p.gated : p.heads, flag_of(tag), NULL,
                           second ? p.hidden : p.NH * p.HS, p);
    residual.template add<W>(pipe, b, second, row, tag, p);
}

/* All sublayers. Afterwards b->x has the classifier's input. */
template <typename W, int GROUP, typename RESIDUAL>
static __device__ __forceinline__ void
run_layers(struct pipeline *pipe, struct block_state *b, struct static_shared *fixed, unsigned tag,
           const struct one_arguments &p, const RESIDUAL &residual) {
    typedef typename W::embedding E;
    const E *row = (const E *)p.embedding + (size_t)*p.token * p.C;
    load_embedding<W>(b, row, norm_of(pipe->plan, 0, p), p);
#pragma unroll 1
    for (unsigned sublayer = 0; sublayer < 2 * p.L; sublayer++) {
        bool second = sublayer % 2 == 1;
        b->layer = sublayer / 2;
        run_sublayer<W, GROUP>(pipe, b, fixed, sublayer / 2, second, sublayer == 0 ? row : NULL,
                               tag + sublayer / 2 * ONE_TAGS, p, residual);
        gather_input<W, true>(pipe, b, p.residual,
                              second ? ONE_FLAG_AFTER_DOWN : ONE_FLAG_AFTER_OUT,
                              norm_of(pipe->plan, sublayer + 1, p), p.C, p);
    }
}

/* A token. @param shared the pipelines' stages, then the plan, the input, sums of slices */
template <typename W, int GROUP, typename RESIDUAL>
static __device__ __forceinline__ void run(unsigned char *shared, struct static_shared *fixed,
                                           const struct one_arguments &p,
                                           const RESIDUAL &residual) {
    struct plan *plan = (struct plan *)(shared + ONE_PIPELINE_BYTES);
    float *rest = (float *)(shared + ONE_PIPELINE_BYTES + plan_bytes(p.L));
    struct block_state b = {(float4 *)rest, rest + p.input_floats, fixed->squares, 1.0f, 0};
    make_plan<W, GROUP>(plan, p);
    __syncthreads();
    struct pipeline pipe = pipeline_prologue(shared, plan, p);
    unsigned tag = *(volatile unsigned *)p.tag, next = tag + p.L * ONE_TAGS;
    for (unsigned i = threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        fixed->angles[i] = one_angle(i, p);
    }
    run_layers<W, GROUP>(&pipe, &b, fixed, tag, p, residual);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *p.tag = next; /* each block has published something, so each has read the old tag */
    }
    launch_dependent_grids();
    const typename W::scales scales = W::scales_of(&pipe, &b, ONE_CLASSIFIER, threadIdx.x, p);
    multiply_all<W>(&pipe, &b, ONE_CLASSIFIER, ONE_CLASSIFIER, 0, p);
    store_logits<W>(&pipe, &b, scales, p);
}

#endif
