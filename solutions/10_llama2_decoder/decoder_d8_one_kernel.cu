/**
 * @file decoder_d8_one_kernel.cu
 * @brief d8: one kernel for a whole token, whose weights never stop streaming.
 *
 * Changes since d7: the five kernels of a layer are five parts of one kernel, with as many blocks
 * as there are multiprocessors, which meet between the parts (a cooperative launch). Each warp asks
 * for its next weights through a ring in shared memory (one_kernel.cuh), on Hopper by bulk copies,
 * elsewhere by cp.async.
 * Why: between two dependent kernels memory stands still for the time from the last byte of one
 * product to the first of the next, some 4 microseconds, 160 times a token in a model of 7B. That
 * time is needed here too, by sums, by the meeting, by reading x anew; but the rings hold 160 KiB a
 * multiprocessor, 21 MB in all, which is what memory delivers in 4.6 microseconds.
 *
 * Blocks read what others wrote past the L1 cache. Launch: min(multiprocessors, warps that have
 * work) blocks of 8 warps, one a multiprocessor. Takes heads of a power of two of 16-byte pieces,
 * groups of 1, 2, 4 or 8 queries a key head, rows of a multiple of 16 bytes; others go d7's way.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdlib.h>

#include "solutions/10_llama2_decoder/ladder.h"
#include "solutions/10_llama2_decoder/one_attention.cuh"

/* ---- Meeting ---- */

/* All blocks have come here, and see what the others wrote. *goal: arrivals at the last meeting,
   0 before the first. */
[[maybe_unused]] static __device__ __forceinline__ void meet(unsigned long long *goal,
                                                             const struct one &p) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        unsigned long long before = atomicAdd(p.meeting, 1ull), blocks = gridDim.x;
        *goal = *goal == 0 ? before / blocks * blocks + blocks : *goal + blocks;
        while (*(volatile unsigned long long *)p.meeting < *goal) {
        }
        __threadfence();
    }
    __syncthreads();
}

/* ---- Products ---- */

/* Shared memory beside the ring, and what all threads know. */
struct bench {
    float4 *x; /* the product's input: first quads of all pieces, then second ones */
    float *sums;
    float factor; /* of a norm; 1 without */
};

[[maybe_unused]] static __device__ __forceinline__ float sum_of_lanes(float x) {
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(~0u, x, step);
    }
    return x;
}

/* Four of the input, from where other blocks wrote it, or of a row of the embedding. */
template <typename E>
static __device__ __forceinline__ float4 input_at(const float *in, const E *row, unsigned i) {
    if (row == NULL) {
        return __ldcg((const float4 *)in + i);
    }
    return make_float4(elements<E>::widen(row[4 * i]), elements<E>::widen(row[4 * i + 1]),
                       elements<E>::widen(row[4 * i + 2]), elements<E>::widen(row[4 * i + 3]));
}

/* b->x = in (K) times norm, if there is one, and b->factor what the norm multiplies with. */
template <typename E>
static __device__ __forceinline__ void take_input(struct bench *b, const float *in, const E *row,
                                                  const float *norm, unsigned K,
                                                  const struct one &p) {
    constexpr unsigned QUADS = elements<E>::COUNT / 4;
    unsigned pieces = K / elements<E>::COUNT;
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < K / 4; i += ONE_THREADS) {
        float4 x = input_at<E>(in, row, i);
        if (norm != NULL) {
            float4 n = ((const float4 *)norm)[i];
            squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
            x.x *= n.x, x.y *= n.y, x.z *= n.z, x.w *= n.w;
        }
        b->x[i % QUADS * pieces + i / QUADS] = x;
    }
    b->factor = 1.0f;
    if (norm != NULL) {
        squares = sum_of_lanes(squares);
        if (threadIdx.x % 32 == 0) {
            b->sums[threadIdx.x / 32] = squares;
        }
    }
    __syncthreads();
    if (norm != NULL) {
        squares = 0.0f;
        for (int w = 0; w < ONE_WARPS; w++) {
            squares += b->sums[w];
        }
        b->factor = 1.0f / sqrtf(squares / (float)K + p.eps);
    }
}

/* The next row of the ring times b->x, in all lanes. */
template <typename E, bool BULK>
static __device__ __forceinline__ float take_row(struct ring *r, const struct bench *b, unsigned K,
                                                 const struct one &p) {
    constexpr int COUNT = elements<E>::COUNT, PIECES = ONE_SLOT_BYTES / 16, ROUNDS = PIECES / 32;
    unsigned pieces = K / COUNT, lane = threadIdx.x % 32;
    float sums[ROUNDS] = {};
    for (unsigned first = 0; first < pieces; first += PIECES) {
        const uint4 *slot = wait<BULK>(r);
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            unsigned piece = first + lane + i * 32;
            if (piece < pieces) {
                float w[COUNT];
                elements<E>::unpack(w, slot[lane + i * 32]);
#pragma unroll
                for (int q = 0; q < COUNT / 4; q++) {
                    float4 x = b->x[q * pieces + piece];
                    sums[i] += w[4 * q] * x.x + w[4 * q + 1] * x.y + w[4 * q + 2] * x.z +
                               w[4 * q + 3] * x.w;
                }
            }
        }
        pass<E, BULK>(r, p);
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < ROUNDS; i++) {
        sum += sums[i];
    }
    return sum_of_lanes(sum) * b->factor;
}

/* out (N) = rows times b->x, plus what `row` or, with `adds`, out has. */
template <typename E, bool BULK>
static __device__ __forceinline__ void multiply(struct ring *r, const struct bench *b, float *out,
                                                unsigned N, unsigned K, bool adds, const E *row,
                                                const struct one &p) {
    for (unsigned n = first_unit(); n < N; n += gridDim.x * ONE_WARPS) {
        float before = row != NULL ? elements<E>::widen(row[n]) : adds ? __ldcg(out + n) : 0.0f;
        float sum = take_row<E, BULK>(r, b, K, p);
        if (threadIdx.x % 32 == 0) {
            out[n] = before + sum;
        }
    }
}

template <typename E, bool BULK>
static __device__ __forceinline__ void multiply_gated(struct ring *r, const struct bench *b,
                                                      const struct one &p) {
    for (unsigned n = first_unit(); n < p.hidden; n += gridDim.x * ONE_WARPS) {
        float gate = take_row<E, BULK>(r, b, p.C, p), up = take_row<E, BULK>(r, b, p.C, p);
        if (threadIdx.x % 32 == 0) {
            p.gated[n] = silu_of(gate) * up;
        }
    }
}

/* ---- The kernel ---- */

/* What a block keeps beside its input. */
struct corner {
    uint64_t barriers[ONE_WARPS * ONE_SLOTS];
    float2 angles[ONE_MOST_HS / 2];
    float sums[ONE_WARPS];
    bool last;
};

/* A layer. @param row the token's row of the embedding in the first layer, whose x it is; else NULL
 */
template <typename E, int GROUP, bool BULK>
static __device__ __forceinline__ void run_layer(struct ring *ring, struct bench *b,
                                                 struct corner *corner, unsigned l, const E *row,
                                                 unsigned long long *goal, const struct one &p) {
    const struct one_layer *layer = &p.layers[l];
    unsigned heads = p.NH * p.HS;
    take_input<E>(b, p.x, row, layer->attention_norm, p.C, p);
    multiply<E, BULK>(ring, b, p.qkv, heads + 2 * p.KVH * p.HS, p.C, false, NULL, p);
    meet(goal, p);
    attend<E, GROUP>(p, l, (float *)b->x, corner->angles, &corner->last);
    meet(goal, p);
    take_input<E>(b, p.heads, NULL, NULL, heads, p);
    multiply<E, BULK>(ring, b, p.x, p.C, heads, true, row, p);
    meet(goal, p);
    take_input<E>(b, p.x, NULL, layer->ffn_norm, p.C, p);
    multiply_gated<E, BULK>(ring, b, p);
    meet(goal, p);
    take_input<E>(b, p.gated, NULL, NULL, p.hidden, p);
    multiply<E, BULK>(ring, b, p.x, p.C, p.hidden, true, NULL, p);
    meet(goal, p);
}

/* A token. @param shared the ring's bytes, then the input's */
template <typename E, int GROUP, bool BULK>
static __device__ __forceinline__ void run(unsigned char *shared, struct corner *corner,
                                           const struct one &p) {
    /* Weights, which no kernel writes, are asked for before all else. */
    struct ring ring = ring_begin<E, BULK>(shared, corner->barriers, p);
    struct bench b = {(float4 *)(shared + ONE_RING_BYTES), corner->sums, 1.0f};
    unsigned long long goal = 0;
    const E *row = (const E *)p.embedding + (size_t)*p.token * p.C;
    for (unsigned i = threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        corner->angles[i] = one_angle(i, p);
    }
    for (unsigned l = 0; l < p.L; l++) {
        run_layer<E, GROUP, BULK>(&ring, &b, corner, l, l == 0 ? row : NULL, &goal, p);
    }
    take_input<E>(&b, p.x, p.L > 0 ? NULL : row, p.final_norm, p.C, p);
    multiply<E, BULK>(&ring, &b, p.logits, p.V, p.C, false, NULL, p);
}

template <typename E, int GROUP, bool BULK>
static __global__ void __launch_bounds__(ONE_THREADS, 1) one_kernel(struct one p) {
    if constexpr (BULK ? ONE_BULK_CODE : ONE_PIECES_CODE) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ struct corner corner;
        run<E, GROUP, BULK>(shared, &corner, p);
    }
}

/* ---- Which kernel ---- */

typedef void one_function(struct one);

template <typename E, bool BULK> static one_function *kernel_for_group(size_t group) {
    return group == 1   ? one_kernel<E, 1, BULK>
           : group == 2 ? one_kernel<E, 2, BULK>
           : group == 4 ? one_kernel<E, 4, BULK>
           : group == 8 ? one_kernel<E, 8, BULK>
                        : NULL;
}

static one_function *kernel_of(const struct decoder *d) {
    size_t group = d->model->NH / d->model->KVH;
    if (d->one.bulk) {
        FOR_ELEMENTS(d->model->dtype, return (kernel_for_group<E, true>(group)));
    }
    FOR_ELEMENTS(d->model->dtype, return (kernel_for_group<E, false>(group)));
}

/* Shared memory beside the ring: a product's input, or attention's results. */
static size_t room_of(const struct decoder_model *m) {
    size_t K = m->C > m->hidden ? m->C : m->hidden, heads = m->NH * m->HS, group = m->NH / m->KVH;
    K = K > heads ? K : heads;
    size_t attention = group * (m->HS + ONE_WARPS * one_result((unsigned)m->HS));
    return (K > attention ? K : attention) * sizeof(float);
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

/* As many blocks as have work for their warps, at most one a multiprocessor. */
static size_t blocks_for(const struct decoder *d) {
    const struct decoder_model *m = d->model;
    size_t rows = (m->NH + 2 * m->KVH) * m->HS;
    rows = rows > m->C ? rows : m->C;
    rows = rows > m->hidden ? rows : m->hidden;
    rows = rows > m->V ? rows : m->V;
    size_t blocks = ceil_div(rows, ONE_WARPS);
    return blocks < d->multiprocessors ? blocks : d->multiprocessors;
}

/* ---- Memory ---- */

static enum status upload_layers(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct one_layer *layers = (struct one_layer *)calloc(m->L + 1, sizeof *layers);
    if (layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "decoder: out of memory");
    }
    for (size_t l = 0; l < m->L; l++) {
        const struct decoder_layer *w = &m->layers[l];
        layers[l] = {{w->qkv, w->out, w->gate_up, w->down}, w->attention_norm, w->ffn_norm};
    }
    enum status status =
        device_write(d->one.layers, layers, (m->L + 1) * sizeof *layers, d->stream, error);
    free(layers);
    return status;
}

enum status decoder_one_create(struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    struct decoder_one *one = &d->one;
    size_t F = sizeof(float), parts = one_parts((unsigned)m->T, (unsigned)m->KVH, UINT32_MAX);
    one->blocks = blocks_for(d);
    one->room = ONE_RING_BYTES + room_of(m);
    one->bulk = !d->modelled;
    one->possible = sizes_fit(m) && kernel_of(d) != NULL && d->major >= 9 && d->major < 12 &&
                    one->room + sizeof(struct corner) <= d->shared_bytes;
    if (!one->possible) {
        return STATUS_OK;
    }
    parts = parts < one->blocks ? parts : one->blocks;
    TRY(device_alloc(&one->layers, (m->L + 1) * sizeof(struct one_layer), error));
    TRY(device_alloc((void **)&one->qkv, (m->NH + 2 * m->KVH) * m->HS * F, error));
    TRY(device_alloc((void **)&one->partial, m->NH * parts * one_result((unsigned)m->HS) * F,
                     error));
    TRY(device_alloc((void **)&one->done, m->KVH * sizeof *one->done, error));
    TRY(device_alloc((void **)&one->meeting, sizeof *one->meeting, error));
    TRY(device_set(one->done, 0, m->KVH * sizeof *one->done, d->stream, error));
    TRY(device_set(one->meeting, 0, sizeof *one->meeting, d->stream, error));
    TRY(upload_layers(d, error));
    cudaError_t code = cudaFuncSetAttribute(
        (const void *)kernel_of(d), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)one->room);
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "decoder: one kernel: %s",
                                           cudaGetErrorString(code));
}

void decoder_one_free(struct decoder *d) {
    const struct decoder_one *one = &d->one;
    void *const all[] = {one->layers, one->qkv, one->partial, one->done, one->meeting};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
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
    p.x = d->x, p.qkv = d->one.qkv, p.heads = d->heads, p.gated = d->gate_up;
    p.logits = d->io.logits;
    p.k = d->k, p.v = d->v;
    p.partial = d->one.partial, p.done = d->one.done, p.meeting = d->one.meeting;
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
