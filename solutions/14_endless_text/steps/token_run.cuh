/**
 * @file token_run.cuh
 * @brief v6's kernel: a token, layer by layer, in every block.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_RUN_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_RUN_CUH_

#include "solutions/14_endless_text/steps/token_attention.cuh"

/* A block's shared memory beside its rings. */
struct token_block {
    struct token_plan *plan;
    float *input;   /* (input_floats) */
    float *sums[2]; /* of slices; phases alternate */
    struct token_angles angles;
};

/* Where everything is, in bytes from the beginning of dynamic shared memory. */
struct token_layout {
    size_t plan, input, sums[2], near, far, bytes;
};

static __device__ __forceinline__ struct token_part part_of(unsigned N, unsigned from, unsigned to,
                                                            unsigned quarters, unsigned columns) {
    unsigned first = (unsigned)((size_t)N * blockIdx.x / gridDim.x);
    unsigned rows = (unsigned)((size_t)N * (blockIdx.x + 1) / gridDim.x) - first;
    unsigned begin = rows * from / quarters, end = rows * to / quarters;
    return {first + begin, end - begin, columns, (end - begin) * columns};
}

/* Called by all threads, which synchronise afterwards. */
template <int HS, int ROUNDS>
static __device__ __forceinline__ void make_plan(struct token_plan *plan,
                                                 const struct token_arguments &p) {
    typedef token_shape<HS, ROUNDS> shape;
    constexpr unsigned WORDS = sizeof(struct token_layer) / sizeof(uint64_t);
    for (unsigned i = threadIdx.x; i < p.L * WORDS; i += TOKEN_THREADS) {
        ((uint64_t *)plan->layers)[i] = ((const uint64_t *)p.layers)[i];
    }
    if (threadIdx.x != 0) {
        return;
    }
    unsigned of_C = p.C * 2 / shape::STAGE, of_hidden = p.hidden * 2 / shape::STAGE;
    unsigned position = (unsigned)*p.position, rows = p.sinks + p.window;
    plan->parts[TOKEN_QKV] = part_of(3 * p.C, 0, 1, 1, of_C);
    plan->parts[TOKEN_UP_FIRST] = part_of(p.hidden, 0, 2, 4, of_C);
    plan->parts[TOKEN_UP_SECOND] = part_of(p.hidden, 2, 3, 4, of_C);
    plan->parts[TOKEN_UP_THIRD] = part_of(p.hidden, 3, 4, 4, of_C);
    plan->parts[TOKEN_OUT] = part_of(p.C, 0, 1, 1, of_C);
    plan->parts[TOKEN_DOWN] = part_of(p.C, 0, 1, 1, of_hidden);
    plan->parts[TOKEN_CLASSIFIER] = part_of(p.logits != NULL ? p.V : 0, 0, 1, 1, of_C);
    plan->head = blockIdx.x / p.splits;
    plan->split = blockIdx.x % p.splits;
    plan->active = plan->head < p.NH;
    plan->seen = position < rows ? position + 1 : rows;
    plan->row = position < rows ? position : p.sinks + (position - p.sinks) % p.window;
    plan->owns = plan->active && plan->row / p.split_rows == plan->split;
    unsigned slices = p.split_rows / shape::KEYS;
    plan->parts[TOKEN_KEYS] = {plan->split * slices, 0, 1, plan->active ? slices : 0};
}

template <int HALF>
static __device__ __forceinline__ void load_angles(float2 *near, float2 *far,
                                                   const struct token_arguments &p) {
    unsigned rows = p.sinks + p.window;
    const float2 *angles = (const float2 *)p.angles;
    for (unsigned i = threadIdx.x; i < TOKEN_DISTANCES * HALF && i < rows * HALF;
         i += TOKEN_THREADS) {
        near[i] = angles[i];
    }
    for (unsigned i = threadIdx.x; i / HALF * TOKEN_DISTANCES < rows; i += TOKEN_THREADS) {
        far[i] = angles[i / HALF * TOKEN_DISTANCES * HALF + i % HALF];
    }
}

/* Prefetches the norms of a layer to L2: one block for all. */
static __device__ __forceinline__ void prefetch_norms(const struct token_layer *w, unsigned C) {
    enum { LINE = 128 / sizeof(float) };
    for (unsigned i = threadIdx.x * LINE; i < C; i += TOKEN_THREADS * LINE) {
#pragma unroll
        for (int n = 0; n < 2; n++) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(w->norms[n] + i));
            if (w->norm_biases[n] != NULL) {
                asm volatile("prefetch.global.L2 [%0];" ::"l"(w->norm_biases[n] + i));
            }
        }
    }
}

/* A layer, whose normed input b->input has but for the two norms.
   @param own the thread's element of the residual stream */
template <typename E, int HS, int ROUNDS>
static __device__ __forceinline__ void run_layer(struct token_ring *ring,
                                                 const struct token_block *b, unsigned l,
                                                 float *own, const struct token_arguments &p) {
    const struct token_layer *w = &b->plan->layers[l];
    const struct token_part *rows = &b->plan->parts[TOKEN_OUT];
    unsigned flag = token_flag(p.launch * p.L + l), of_x = token_flag(p.launch * (p.L + 1) + l);
    float *second = b->input + p.C;
    gather_norms<ROUNDS>(ring, b->input, b->plan->squares, of_x, w->norms, w->norm_biases, 2, p);
    token_publish_product<E, ROUNDS>(ring, b->sums[0], b->input, TOKEN_QKV, false, w->qkv_bias,
                                     p.qkv, flag, p);
    token_publish_product<E, ROUNDS>(ring, b->sums[1], second, TOKEN_UP_FIRST, false, w->up_bias,
                                     p.up, flag, p);
    attend<E, HS, ROUNDS>(ring, l, b->input + 2 * p.C, b->angles, flag, p);
    token_publish_product<E, ROUNDS>(ring, b->sums[0], second, TOKEN_UP_SECOND, false, w->up_bias,
                                     p.up, flag, p);
    merge_heads<HS>(b->plan, flag, p);
    if (l + 1 < p.L && blockIdx.x == gridDim.x - 1) {
        prefetch_norms(w + 1, p.C);
    }
    token_publish_product<E, ROUNDS>(ring, b->sums[1], second, TOKEN_UP_THIRD, true, w->up_bias,
                                     p.up, flag, p);
    float bias = token_bias(rows, w->out_bias) + token_bias(rows, w->down_bias);
    gather<ROUNDS>(ring, b->input, p.heads, flag, p.C, p);
    gather<ROUNDS>(ring, second, p.up, flag, p.hidden, p);
    token_issue_all<ROUNDS>(ring, p);
    __syncthreads();
    token_multiply<E, ROUNDS>(ring, b->sums[0], b->input, p.C, TOKEN_OUT, false, p);
    token_multiply<E, ROUNDS>(ring, b->sums[1], second, p.hidden, TOKEN_DOWN, true, p);
    __syncthreads();
    if (threadIdx.x < rows->rows) {
        *own += bias + row_of(b->sums[0], threadIdx.x, rows->columns) +
                row_of(b->sums[1], threadIdx.x, b->plan->parts[TOKEN_DOWN].columns);
        publish(p.residual, rows->first + threadIdx.x, *own,
                token_flag(p.launch * (p.L + 1) + l + 1));
    }
}

/* The final norm and the classifier. */
template <typename E, int ROUNDS>
static __device__ __forceinline__ void run_classifier(struct token_ring *ring,
                                                      const struct token_block *b,
                                                      const struct token_arguments &p) {
    const struct token_part *part = &b->plan->parts[TOKEN_CLASSIFIER];
    const float *norms[2] = {p.final_norm, NULL}, *biases[2] = {p.final_norm_bias, NULL};
    float *sums = b->input + p.C;
    gather_norms<ROUNDS>(ring, b->input, b->plan->squares, token_flag(p.launch * (p.L + 1) + p.L),
                         norms, biases, 1, p);
    token_multiply<E, ROUNDS>(ring, sums, b->input, p.C, TOKEN_CLASSIFIER, false, p);
    __syncthreads();
    for (unsigned r = threadIdx.x; r < part->rows; r += TOKEN_THREADS) {
        p.logits[part->first + r] = row_of(sums, r, part->columns);
    }
}

/* Grid: at most a block a multiprocessor. */
template <typename E, int HS, int ROUNDS>
static __global__ void __launch_bounds__(TOKEN_THREADS, 1)
    token_kernel(struct token_arguments p, struct token_layout layout) {
    if constexpr (TOKEN_HAS_CP_ASYNC) {
        extern __shared__ __align__(128) unsigned char shared[];
        float2 *near = (float2 *)(shared + layout.near), *far = (float2 *)(shared + layout.far);
        struct token_block b = {
            (struct token_plan *)(shared + layout.plan),
            (float *)(shared + layout.input),
            {(float *)(shared + layout.sums[0]), (float *)(shared + layout.sums[1])},
            {near, far}};
        make_plan<HS, ROUNDS>(b.plan, p);
        __syncthreads();
        struct token_ring ring = token_prologue<ROUNDS>(shared, b.plan, p);
        const struct token_part *rows = &b.plan->parts[TOKEN_OUT];
        float own = 0.0f;
        load_angles<token_shape<HS, ROUNDS>::HALF>(near, far, p);
        if (threadIdx.x < rows->rows) {
            own = p.x[rows->first + threadIdx.x];
            publish(p.residual, rows->first + threadIdx.x, own, token_flag(p.launch * (p.L + 1)));
        }
#pragma unroll 1
        for (unsigned l = 0; l < p.L; l++) {
            run_layer<E, HS, ROUNDS>(&ring, &b, l, &own, p);
        }
        run_classifier<E, ROUNDS>(&ring, &b, p);
        cp_async_wait<0>();
    }
}

#endif
