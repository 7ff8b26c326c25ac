/**
 * @file rows.cu
 * @brief Many tokens: embedding, norm, rotary embedding with the cache's new rows, gate.
 *
 * All of these are memory-bound. A block has a row, and threads read 16 bytes at a time if rows are
 * multiples of 16 bytes.
 */
#include "solutions/10_llama2_decoder/steps/elements.cuh"
#include "solutions/10_llama2_decoder/steps/ladder.h"

static constexpr unsigned THREADS = 256, WARPS = THREADS / 32;

/* The sum over the block, in every thread; `parts` (WARPS) is shared memory, used once. */
static __device__ __forceinline__ float block_sum(float x, float *warp_sums) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) {
        warp_sums[threadIdx.x / 32] = x;
    }
    __syncthreads();
    float sum = 0.0f;
    for (unsigned w = 0; w < WARPS; w++) {
        sum += warp_sums[w];
    }
    return sum;
}

/* ---- Embedding ---- */

/* x (rows, C) = the table's rows of the tokens. Grid: a block a row. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    rows_embed(float *x, const E *table, const int32_t *tokens, size_t C) {
    dependent_launch_begin();
    const E *from = table + (size_t)tokens[blockIdx.x] * C;
    for (size_t c = threadIdx.x; c < C; c += THREADS) {
        x[blockIdx.x * C + c] = to_float(from[c]);
    }
}

enum status decoder_rows_embed(const struct decoder *d, size_t count, struct error *error) {
    const struct decoder_model *m = d->model;
    FOR_ELEMENT_TYPE(m->dtype,
                     (launch_dependent<rows_embed<E>>((unsigned)count, THREADS, 0, d->stream,
                                                      d->rows.x, (const E *)m->embedding,
                                                      (const int32_t *)d->rows.tokens, m->C)));
    return device_launched("rows_embed", error);
}

/* x (C) = a row; *position_out = position. */
static __global__ void __launch_bounds__(THREADS)
    rows_copy(float *x, const float *row, size_t C, int32_t *position_out, int32_t position) {
    dependent_launch_begin();
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c < C) {
        x[c] = row[c];
    }
    if (c == 0) {
        *position_out = position;
    }
}

enum status decoder_rows_copy(const struct decoder *d, size_t i, size_t position,
                              struct error *error) {
    size_t C = d->model->C;
    launch_dependent<rows_copy>((unsigned)ceil_div(C, THREADS), THREADS, 0, d->stream, d->x,
                                (const float *)d->rows.x + i * C, C, d->position,
                                (int32_t)position);
    return device_launched("rows_copy", error);
}

/* ---- Norm ---- */

/* Four channels, y = x * rstd * weight. */
template <typename E>
static __device__ __forceinline__ void store_normed(E *y, float4 x, float4 weight, float rstd) {
    const float all[4] = {x.x * rstd * weight.x, x.y * rstd * weight.y, x.z * rstd * weight.z,
                          x.w * rstd * weight.w};
    E stored[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        stored[j] = from_float<E>(all[j]);
    }
    if (sizeof(E) == 2) {
        *(uint2 *)y = *(const uint2 *)stored;
    } else {
        *(uint4 *)y = *(const uint4 *)stored;
    }
}

static __device__ __forceinline__ float sum_of_squares(float4 x) {
    return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
}

/*
 * y = RMSNorm(x). Grid: a block a row of C channels, a multiple of 4 and at most 4 PIECES *
 * THREADS: they stay in registers. Bytes: 4 a number, and E.
 */
template <typename E, int PIECES>
static __global__ void __launch_bounds__(THREADS)
    rows_norm_registers(E *y, const float *x, const float *weight, unsigned C, float eps) {
    __shared__ float warp_sums[WARPS];
    float4 own[PIECES], scale[PIECES];
    float squares = 0.0f;
    dependent_launch_begin();
    x += (size_t)blockIdx.x * C;
#pragma unroll
    for (unsigned i = 0; i < PIECES; i++) {
        unsigned c = 4 * (threadIdx.x + i * THREADS);
        own[i] = c < C ? *(const float4 *)(x + c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        scale[i] = c < C ? *(const float4 *)(weight + c) : own[i];
    }
#pragma unroll
    for (unsigned i = 0; i < PIECES; i++) {
        squares += sum_of_squares(own[i]);
    }
    float rstd = 1.0f / sqrtf(block_sum(squares, warp_sums) / (float)C + eps);
#pragma unroll
    for (unsigned i = 0; i < PIECES; i++) {
        unsigned c = 4 * (threadIdx.x + i * THREADS);
        if (c < C) {
            store_normed(y + (size_t)blockIdx.x * C + c, own[i], scale[i], rstd);
        }
    }
}

/* The same of rows of any length, read twice, the second time from cache. */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    rows_norm(E *y, const float *x, const float *weight, size_t C, float eps) {
    __shared__ float warp_sums[WARPS];
    dependent_launch_begin();
    size_t row = blockIdx.x * C;
    float squares = 0.0f;
    for (size_t c = threadIdx.x; c < C; c += THREADS) {
        squares += x[row + c] * x[row + c];
    }
    float rstd = 1.0f / sqrtf(block_sum(squares, warp_sums) / (float)C + eps);
    for (size_t c = threadIdx.x; c < C; c += THREADS) {
        y[row + c] = from_float<E>(x[row + c] * rstd * weight[c]);
    }
}

template <typename E>
static void launch_norm(const struct decoder *d, const float *weight, size_t count) {
    size_t C = d->model->C;
    unsigned rows = (unsigned)count;
    E *y = (E *)d->rows.y;
    const float *x = d->rows.x;
    float eps = d->model->eps;
    if (C % 4 != 0 || C > 8 * 4 * THREADS) {
        launch_dependent<rows_norm<E>>(rows, THREADS, 0, d->stream, y, x, weight, C, eps);
    } else if (C <= 2 * 4 * THREADS) {
        launch_dependent<rows_norm_registers<E, 2>>(rows, THREADS, 0, d->stream, y, x, weight,
                                                    (unsigned)C, eps);
    } else if (C <= 4 * 4 * THREADS) {
        launch_dependent<rows_norm_registers<E, 4>>(rows, THREADS, 0, d->stream, y, x, weight,
                                                    (unsigned)C, eps);
    } else {
        launch_dependent<rows_norm_registers<E, 8>>(rows, THREADS, 0, d->stream, y, x, weight,
                                                    (unsigned)C, eps);
    }
}

enum status decoder_rows_norm(const struct decoder *d, const float *norm, size_t count,
                              struct error *error) {
    FOR_ELEMENT_TYPE(d->model->dtype, (launch_norm<E>(d, norm, count)));
    return device_launched("rows_norm", error);
}

/* ---- Rotary embedding ---- */

struct rotation {
    size_t NH, KVH, HS; /* NH: query heads before the keys in a row, 0 for none */
    size_t position;    /* of token 0 */
    enum nn_rope_layout layout;
    double log2_theta;
};

/* Where a head of a row goes: queries stay, keys go to the cache. */
template <typename E>
static __device__ __forceinline__ E *rotated_to(E *row, E *key, unsigned head,
                                                const struct rotation &t) {
    return head < t.NH ? row + head * t.HS : key + (head - t.NH) * t.HS;
}

/* COUNT pairs of a head: those of two vectors. x (2 COUNT): interleaved pairs are neighbours, else
   COUNT apart. */
template <int COUNT>
static __device__ __forceinline__ void rotate_pairs(float *x, const float2 *angles,
                                                    bool interleaved) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        float a = interleaved ? x[2 * i] : x[i], b = interleaved ? x[2 * i + 1] : x[i + COUNT];
        float first = a * angles[i].x - b * angles[i].y, second = a * angles[i].y + b * angles[i].x;
        (interleaved ? x[2 * i] : x[i]) = first;
        (interleaved ? x[2 * i + 1] : x[i + COUNT]) = second;
    }
}

/* 16 bytes at a time: a thread has the same pairs of several heads, and their angles in registers.
   HS is a multiple of two vectors, and THREADS of a head's pairs of vectors. */
template <typename E, bool INTERLEAVED>
static __device__ __forceinline__ void
rotate_vectors(E *row, E *key, E *value, const float2 *angles, const struct rotation &t) {
    constexpr unsigned COUNT = VECTOR_ELEMENTS<E>;
    unsigned each = (unsigned)t.HS / (2 * COUNT), j = threadIdx.x % each;
    unsigned first = INTERLEAVED ? j * 2 * COUNT : j * COUNT;
    unsigned second = INTERLEAVED ? first + COUNT : first + (unsigned)t.HS / 2;
    float2 own[COUNT];
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        own[i] = angles[j * COUNT + i];
    }
    for (unsigned head = threadIdx.x / each; head < t.NH + t.KVH; head += THREADS / each) {
        const E *from = row + head * t.HS;
        E *to = rotated_to(row, key, head, t);
        float x[2 * COUNT];
        unpack(*(const uint4 *)(from + first), x, E());
        unpack(*(const uint4 *)(from + second), x + COUNT, E());
        rotate_pairs<COUNT>(x, own, INTERLEAVED);
        *(uint4 *)(to + first) = pack(x, E());
        *(uint4 *)(to + second) = pack(x + COUNT, E());
    }
    const uint4 *from = (const uint4 *)(row + (t.NH + t.KVH) * t.HS);
    for (unsigned i = threadIdx.x; i < t.KVH * t.HS / COUNT; i += THREADS) {
        ((uint4 *)value)[i] = from[i];
    }
}

/* The same, one pair at a time. */
template <typename E>
static __device__ __forceinline__ void
rotate_elements(E *row, E *key, E *value, const float2 *angles, const struct rotation &t) {
    unsigned pairs = (unsigned)t.HS / 2, heads = (unsigned)(t.NH + t.KVH);
    for (unsigned p = threadIdx.x; p < heads * pairs; p += THREADS) {
        unsigned head = p / pairs, i = p % pairs;
        unsigned first = t.layout == NN_ROPE_INTERLEAVED ? 2 * i : i;
        unsigned second = t.layout == NN_ROPE_INTERLEAVED ? first + 1 : i + pairs;
        const E *from = row + head * t.HS;
        float a = to_float(from[first]), b = to_float(from[second]);
        E *to = rotated_to(row, key, head, t);
        to[first] = from_float<E>(a * angles[i].x - b * angles[i].y);
        to[second] = from_float<E>(a * angles[i].y + b * angles[i].x);
    }
    const E *from = row + (t.NH + t.KVH) * t.HS;
    for (size_t c = threadIdx.x; c < t.KVH * t.HS; c += THREADS) {
        value[c] = from[c];
    }
}

/*
 * Rotates a row's queries in place, and its keys into the cache; copies its values there.
 * Grid: a block a token. Angles are computed in double, because late positions are many rotations,
 * and before the wait for the kernel in front.
 * Bytes: queries twice, keys and values twice.
 */
template <typename E>
static __global__ void __launch_bounds__(THREADS)
    rows_rotate(E *qkv, E *keys, E *values, const struct rotation t) {
    __shared__ float2 angles[128]; /* (HS / 2), HS up to KV_MAX_HS */
    launch_dependent_grids();
    size_t position = t.position + blockIdx.x, width = t.KVH * t.HS;
    for (unsigned i = threadIdx.x; i < t.HS / 2; i += THREADS) {
        double frequency = exp2(-2.0 * i / (double)t.HS * t.log2_theta), sine, cosine;
        sincos((double)position * frequency, &sine, &cosine);
        angles[i] = make_float2((float)cosine, (float)sine);
    }
    __syncthreads();
    wait_on_dependent_grids();
    constexpr unsigned BOTH = 2 * VECTOR_ELEMENTS<E>; /* elements of two vectors */
    E *row = qkv + blockIdx.x * (t.NH * t.HS + 2 * width);
    E *key = keys + position * width, *value = values + position * width;
    if (t.HS % BOTH != 0 || THREADS % (t.HS / BOTH) != 0) {
        rotate_elements(row, key, value, angles, t);
    } else if (t.layout == NN_ROPE_INTERLEAVED) {
        rotate_vectors<E, true>(row, key, value, angles, t);
    } else {
        rotate_vectors<E, false>(row, key, value, angles, t);
    }
}

enum status decoder_rows_rotate(const struct decoder *d, size_t l, bool queries, size_t count,
                                size_t position, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct rotation t = {queries ? m->NH : 0,   m->KVH, m->HS, position, m->layout,
                               log2((double)m->theta)};
    size_t cache = l * m->T * m->KVH * m->HS;
    FOR_ELEMENT_TYPE(m->dtype, (launch_dependent<rows_rotate<E>>(
                                   (unsigned)count, THREADS, 0, d->stream, (E *)d->rows.qkv,
                                   (E *)d->k + cache, (E *)d->v + cache, t)));
    return device_launched("rows_rotate", error);
}

/* ---- Gate ---- */

/* A matrix's rows of gate, then of up, in turn: to[2 j], to[2 j + 1] = from[j], from[hidden + j].
   Grid: hidden, 2. Bytes: twice a row. */
template <typename E>
static __global__ void __launch_bounds__(THREADS) rows_pair(E *to, const E *from, size_t C) {
    size_t row = blockIdx.x, hidden = gridDim.x, second = blockIdx.y;
    to += (2 * row + second) * C;
    from += (second * hidden + row) * C;
    for (size_t c = threadIdx.x; c < C; c += THREADS) {
        to[c] = from[c];
    }
}

enum status decoder_rows_pair(const struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    dim3 grid((unsigned)m->hidden, 2);
    for (size_t l = 0; l < m->L && m->hidden > 0; l++) {
        FOR_ELEMENT_TYPE(m->dtype, (rows_pair<E><<<grid, THREADS, 0, d->stream>>>(
                                       (E *)d->rows.paired + l * 2 * m->hidden * m->C,
                                       (const E *)m->layers[l].gate_up, m->C)));
    }
    return device_launched("rows_pair", error);
}

/* gated (rows, hidden) = silu(gate) * up of gate_up (rows, 2 * hidden). Grid: rows, and blocks of
   16 bytes a thread across. VECTOR: hidden is a multiple of 16 bytes. */
template <typename E, bool VECTOR>
static __global__ void __launch_bounds__(THREADS)
    rows_gate(E *gated, const E *gate_up, size_t hidden) {
    constexpr int COUNT = VECTOR ? VECTOR_ELEMENTS<E> : 1;
    dependent_launch_begin();
    size_t c = ((size_t)blockIdx.y * THREADS + threadIdx.x) * COUNT;
    if (c >= hidden) {
        return;
    }
    const E *gate = gate_up + blockIdx.x * 2 * hidden + c, *up = gate + hidden;
    E *to = gated + blockIdx.x * hidden + c;
    if constexpr (VECTOR) {
        float a[COUNT], b[COUNT];
        unpack(*(const uint4 *)gate, a, E());
        unpack(*(const uint4 *)up, b, E());
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            a[i] = silu_of(a[i]) * b[i];
        }
        *(uint4 *)to = pack(a, E());
    } else {
        float a = to_float(*gate), b = to_float(*up);
        *to = from_float<E>(silu_of(a) * b);
    }
}

template <typename E> static void launch_gate(const struct decoder *d, size_t count) {
    size_t hidden = d->model->hidden, COUNT = VECTOR_ELEMENTS<E>;
    bool vector = hidden % COUNT == 0;
    dim3 grid((unsigned)count, (unsigned)ceil_div(hidden, THREADS * (vector ? COUNT : 1)));
    E *to = (E *)d->rows.gated;
    const E *from = (const E *)d->rows.gate_up;
    if (vector) {
        launch_dependent<rows_gate<E, true>>(grid, THREADS, 0, d->stream, to, from, hidden);
    } else {
        launch_dependent<rows_gate<E, false>>(grid, THREADS, 0, d->stream, to, from, hidden);
    }
}

enum status decoder_rows_gate(const struct decoder *d, size_t count, struct error *error) {
    FOR_ELEMENT_TYPE(d->model->dtype, (launch_gate<E>(d, count)));
    return device_launched("rows_gate", error);
}
