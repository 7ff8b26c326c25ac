/**
 * @file decoder_d8_one_kernel.cu
 * @brief d8: one kernel for a whole token, whose weights never stop streaming.
 *
 * Changes since d7: the five kernels of a layer are five parts of one kernel, with a block for each
 * multiprocessor. What the next part needs of other blocks they send each other (one_kernel.cuh);
 * each warp asks for its next weights, and for the keys and values of earlier tokens, through a
 * ring in shared memory (one_ring.cuh), by cp.async, across parts and layers.
 *
 * Why: between two dependent kernels memory stands still for the time from the last byte of one
 * product to the first of the next, some 4 microseconds, 160 times a token in a model of 7B. That
 * time is needed here too, by sums, by sending, by waiting for the slowest block; but the rings
 * hold 168 KiB a multiprocessor, 22 MB in all, which is what memory delivers in 4.8 microseconds.
 * README.md has what that gains, and where the time goes.
 *
 * Launch: cooperative, as all blocks must be there; at most a block a multiprocessor and one a row
 * of each matrix, 12 warps each. Takes at most as many teams of queries as blocks, heads of a power
 * of two of 16-byte pieces, groups of 1, 2 or a multiple of 4 queries a key head, rows of a
 * multiple of 16 bytes, compute capability 8.0 and 172 KiB of shared memory or more, which 9.0
 * and 10.0 have; others go d7's way. Bytes: each weight once, each key and value once (of grouped
 * queries, once for 4 queries). FLOPs: 2 a weight.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>

#include "solutions/10_llama2_decoder/steps/ladder.h"
#include "solutions/10_llama2_decoder/steps/one_attention.cuh"
#include "solutions/10_llama2_decoder/steps/one_product.cuh"

/* ---- The kernel ---- */

/* What a block keeps beside its input. */
struct corner {
    float2 angles[ONE_MOST_HS / 2];
    float squares[ONE_WARPS];
};

/*
 * A half of a layer, whose input is there: attention, or the feed-forward network. Either is a
 * product of the residual stream, something with its result, and a product that is added to the
 * stream. One code serves both, as a multiprocessor keeps 128 KiB of instructions at hand.
 * @param row the token's row of the embedding in the first half of all; else NULL
 * @param tag the layer's first
 */
template <typename E, int GROUP>
static __device__ __forceinline__ void run_half(struct ring *ring, struct work *b,
                                                struct corner *corner, unsigned l, bool second,
                                                const E *row, unsigned tag, const struct one &p) {
    const struct one_layer *layer = &ring->plan->layers[l];
    multiply_all<E>(ring, b, second ? ONE_GATE : ONE_QKV, second ? ONE_UP : ONE_QKV,
                    second ? ONE_OWED : owed_before_attention(ring->plan->item), p);
    if (second) {
        show_gated(ring, b, bit_of(tag), p);
        ask_l2(l + 1 < p.L ? layer[1].attention_norm : p.final_norm, p.C);
    } else {
        send_qkv(ring, b, tag + ONE_QKV_PART, p);
        ask_l2(layer->ffn_norm, p.C);
        attend<E, GROUP>(ring, l, (float *)b->x, corner->angles, tag, p);
    }
    take_input<E, false>(ring, b, second ? p.gated : p.heads, bit_of(tag), NULL,
                         second ? p.hidden : p.NH * p.HS, p);
    add_product<E>(ring, b, second ? ONE_DOWN : ONE_OUT, row,
                   second ? ONE_BEHIND_DOWN : ONE_BEHIND_OUT, p);
}

/* All halves of layers. Behind them the classifier's input is there. */
template <typename E, int GROUP>
static __device__ __forceinline__ void run_layers(struct ring *ring, struct work *b,
                                                  struct corner *corner, unsigned tag,
                                                  const struct one &p) {
    const E *row = (const E *)p.embedding + (size_t)*p.token * p.C;
    take_embedding<E>(b, row, norm_of(ring->plan, 0, p), p);
#pragma unroll 1
    for (unsigned half = 0; half < 2 * p.L; half++) {
        bool second = half % 2 == 1;
        run_half<E, GROUP>(ring, b, corner, half / 2, second, half == 0 ? row : NULL,
                           tag + half / 2 * ONE_PARTS, p);
        take_input<E, true>(ring, b, p.stream, second ? ONE_BEHIND_DOWN : ONE_BEHIND_OUT,
                            norm_of(ring->plan, half + 1, p), p.C, p);
    }
}

/* A token. @param shared the rings' bytes, then the plan, the input, sums of slices */
template <typename E, int GROUP>
static __device__ __forceinline__ void run(unsigned char *shared, struct corner *corner,
                                           const struct one &p) {
    struct plan *plan = (struct plan *)(shared + ONE_RING_BYTES);
    float *rest = (float *)(shared + ONE_RING_BYTES + plan_bytes(p.L));
    struct work b = {(float4 *)rest, rest + p.room, corner->squares, 1.0f};
    make_plan<E, GROUP>(plan, p);
    __syncthreads();
    struct ring ring = ring_begin(shared, plan, p);
    unsigned tag = *(volatile unsigned *)p.tag, next = tag + p.L * ONE_PARTS;
    for (unsigned i = threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        corner->angles[i] = one_angle(i, p);
    }
    run_layers<E, GROUP>(&ring, &b, corner, tag, p);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        *p.tag = next; /* each block has sent something, so each has read the old one */
    }
    multiply_all<E>(&ring, &b, ONE_CLASSIFIER, ONE_CLASSIFIER, 0, p);
    put_logits(&ring, &b, p);
}

template <typename E, int GROUP>
static __global__ void __launch_bounds__(ONE_THREADS, 1) one_kernel(struct one p) {
    if constexpr (ONE_CODE) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ struct corner corner;
        run<E, GROUP>(shared, &corner, p);
    }
}

/* ---- Which kernel ---- */

typedef void one_function(struct one);

template <typename E> static one_function *kernel_for_team(size_t queries) {
    return queries == 1   ? one_kernel<E, 1>
           : queries == 2 ? one_kernel<E, 2>
           : queries == 4 ? one_kernel<E, 4>
                          : NULL;
}

/* Queries that a team has, which share a key head; 0 where no team does. */
static size_t team_of(const struct decoder_model *m) {
    size_t group = m->NH / m->KVH;
    return group % 4 == 0 ? 4 : group <= 2 ? group : 0;
}

static one_function *kernel_of(const struct decoder *d) {
    size_t queries = team_of(d->model);
    FOR_ELEMENTS(d->model->dtype, return (kernel_for_team<E>(queries)));
}

/* Floats of shared memory for a product's input, or for attention's results. */
static size_t room_of(const struct decoder_model *m) {
    size_t K = m->C > m->hidden ? m->C : m->hidden, heads = m->NH * m->HS, group = team_of(m);
    K = K > heads ? K : heads;
    size_t attention = one_attention_room(group, m->HS);
    return ((K > attention ? K : attention) + 31) / 32 * 32;
}

/* Sums of slices that a block has of N rows of K. */
static size_t sums_of(const struct decoder *d, size_t N, size_t K) {
    size_t row_bytes = K * nn_dtype_bytes(d->model->dtype);
    return ceil_div(N, d->one.blocks) * ceil_div(row_bytes, ONE_SLOT_BYTES);
}

/* The most of all products. Gate and up are there together. */
static size_t most_sums(const struct decoder *d) {
    const struct decoder_model *m = d->model;
    size_t heads = m->NH * m->HS;
    const size_t sums[] = {sums_of(d, heads + 2 * m->KVH * m->HS, m->C), sums_of(d, m->C, heads),
                           2 * sums_of(d, m->hidden, m->C), sums_of(d, m->C, m->hidden),
                           sums_of(d, m->V, m->C)};
    size_t most = 0;
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        most = sums[i] > most ? sums[i] : most;
    }
    return most;
}

/* Whether rows and heads are as the kernel takes them. */
static bool sizes_fit(const struct decoder_model *m) {
    size_t count = 16 / nn_dtype_bytes(m->dtype), lanes = m->HS / count;
    bool rows = m->C % count == 0 && m->hidden % count == 0 && m->HS % count == 0;
    bool heads = rows && lanes > 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0;
    size_t most = UINT32_MAX / 8;
    return heads && m->C < most && m->hidden < most && m->V < most && m->T < most &&
           m->NH * m->HS < most;
}

/* One a multiprocessor, or as many as have a row of each matrix: a block that sends nothing could
   fall behind until what it waits for is overwritten. */
static size_t blocks_for(const struct decoder *d) {
    const struct decoder_model *m = d->model;
    size_t blocks = d->multiprocessors;
    blocks = blocks < m->C ? blocks : m->C;
    return blocks < m->hidden ? blocks : m->hidden;
}

/* ---- Memory ---- */

/* Of a token's keys in a layer. */
static size_t key_bytes(const struct decoder_model *m) {
    return m->KVH * m->HS * nn_dtype_bytes(m->dtype);
}

static enum status upload_layers(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct one_layer *layers = (struct one_layer *)calloc(m->L + 1, sizeof *layers);
    if (layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: out of memory");
    }
    for (size_t l = 0; l < m->L; l++) {
        const struct decoder_layer *w = &m->layers[l];
        const char *up = (const char *)w->gate_up + m->hidden * m->C * nn_dtype_bytes(m->dtype);
        const char *keys = (const char *)d->k + l * m->T * key_bytes(m);
        layers[l] = {
            {w->qkv, keys, w->out, w->gate_up, up, w->down}, w->attention_norm, w->ffn_norm};
    }
    enum status status =
        device_write(d->one.layers, layers, (m->L + 1) * sizeof *layers, d->stream, error);
    free(layers);
    return status;
}

enum status decoder_one_create(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct decoder_one *one = &d->one;

    one->blocks = blocks_for(d);
    one->room = ONE_RING_BYTES + plan_bytes(m->L) + (room_of(m) + most_sums(d)) * sizeof(float);
    one->possible = sizes_fit(m) && kernel_of(d) != NULL && d->major >= 8 &&
                    m->NH / team_of(m) <= one->blocks &&
                    one->room + sizeof(struct corner) <= d->shared_bytes;
    if (!one->possible) {
        return STATUS_OK;
    }
    size_t teams = m->NH / team_of(m);
    size_t parts = one_parts((unsigned)m->T, (unsigned)teams, (unsigned)one->blocks);
    TRY(device_alloc(&one->layers, (m->L + 1) * sizeof(struct one_layer), error));
    const size_t counts[ONE_POSTS] = {(m->NH + 2 * m->KVH) * m->HS,
                                      m->NH * parts * one_result((unsigned)m->HS), m->C,
                                      m->NH * m->HS, m->hidden};
    for (size_t i = 0; i < ONE_POSTS; i++) {
        size_t bytes = (counts[i] + 1) * sizeof(uint64_t);
        TRY(device_alloc(&one->posts[i], bytes, error));
        TRY(device_set(one->posts[i], 0, bytes, d->stream, error));
    }
    const unsigned first_tag = ONE_PARTS; /* so the first bit is not what is there */
    TRY(device_alloc((void **)&one->tag, sizeof *one->tag, error));
    TRY(device_write(one->tag, &first_tag, sizeof first_tag, d->stream, error));
    TRY(upload_layers(d, error));
    cudaError_t code = cudaFuncSetAttribute(
        (const void *)kernel_of(d), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)one->room);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "decoder: one kernel: %s",
                                           cudaGetErrorString(code));
}

void decoder_one_free(struct decoder *d) {
    const struct decoder_one *one = &d->one;
    device_free(one->layers);
    device_free(one->tag);
    for (size_t i = 0; i < ONE_POSTS; i++) {
        device_free(one->posts[i]);
    }
}

/* ---- A step ---- */

static struct one arguments_of(const struct decoder *d, size_t position) {
    const struct decoder_model *m = d->model;
    struct one p = {};
    p.layers = (const struct one_layer *)d->one.layers;
    p.embedding = m->embedding, p.classifier = m->classifier, p.final_norm = m->final_norm;
    p.C = (unsigned)m->C, p.hidden = (unsigned)m->hidden, p.L = (unsigned)m->L;
    p.NH = (unsigned)m->NH, p.KVH = (unsigned)m->KVH, p.HS = (unsigned)m->HS;
    p.V = (unsigned)m->V, p.T = (unsigned)m->T;
    p.eps = m->eps;
    p.log2_theta = log2((double)m->theta);
    p.halves = m->layout == NN_ROPE_HALVES;
    p.token = d->io.token;
    p.position = (int32_t)position;
    p.room = (unsigned)room_of(m);
    p.x = d->x;
    p.logits = d->io.logits;
    p.k = d->k, p.v = d->v;
    p.key_bytes = key_bytes(m);
    p.key_to_value = (const char *)d->v - (const char *)d->k;
    p.qkv.values = (uint64_t *)d->one.posts[0];
    p.partial.values = (uint64_t *)d->one.posts[1];
    p.stream.values = (unsigned *)d->one.posts[2];
    p.heads.values = (unsigned *)d->one.posts[3];
    p.gated.values = (unsigned *)d->one.posts[4];
    p.tag = d->one.tag;
    return p;
}

static enum status launch_one(const struct decoder *d, size_t position, struct error *error) {
    struct one p = arguments_of(d, position);
    void *arguments[] = {&p};
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)d->one.blocks);
    config.blockDim = dim3(ONE_THREADS);
    config.dynamicSmemBytes = d->one.room;
    config.stream = d->stream;
    config.attrs = &together;
    config.numAttrs = 1;
    (void)cudaLaunchKernelExC(&config, (const void *)kernel_of(d), arguments);
    return device_launched("one_kernel", error);
}

enum status decoder_d8_step(struct decoder *d, size_t position, struct error *error) {
    if (!d->one.possible) {
        return decoder_d7_step(d, position, error);
    }
    TRY(sample_token(d->io.sampling, d->io.logits, d->model->V, d->io.token, d->draw_workspace,
                     d->stream, error));
    return launch_one(d, position, error);
}
