/**
 * @file rows_attention.cu
 * @brief Attention of several texts, with keys and values of 8 bits: each has a context of its own.
 *
 * A block has the queries of one or two heads that share a key head, of one text, and a split of
 * its context; a second kernel merges the splits. The arithmetic is d8's.
 */
#define ONE_FORM 4, 1, 2048, 2048 /* four warps; no pipeline */
#define ONE_KEYS_HAVE_SCALES 1
#include "solutions/10_llama2_decoder/steps/d8_attention.cuh"
#include "solutions/13_low_bit/rows/rows_kernels.h"

struct attention_call {
    const float *qkv;
    const float2 *angles;
    const int32_t *positions;
    struct rows_cache cache; /* of the layer's first token, of the first text */
    size_t of_text;          /* tokens' keys from a text to the next one: L * T */
    float *partials;
    struct one_arguments p; /* NH, KVH, HS, rope_halves */
};

/* Shared memory of a block. */
template <int GROUP> struct attention_shared {
    float q[GROUP][ONE_MAX_HS];
    int8_t key[ONE_MAX_HS], value[ONE_MAX_HS];
    float2 scale;
    float partials[ONE_WARPS][GROUP][ONE_MAX_HS + 2];
};

/* A block's text and split. */
struct text_split {
    unsigned row, team, head;
    unsigned first, end; /* keys of earlier tokens */
    bool has_newest;
};

template <int GROUP>
static __device__ __forceinline__ struct text_split split_of(const struct attention_call &c) {
    struct text_split s;
    s.row = blockIdx.z;
    s.team = blockIdx.y;
    s.head = s.team * GROUP / (c.p.NH / c.p.KVH);
    unsigned position = (unsigned)c.positions[s.row], keys = position + 1;
    unsigned size = (keys + gridDim.x - 1) / gridDim.x;
    s.first = smaller(blockIdx.x * size, keys);
    s.end = smaller(s.first + size, position);
    s.has_newest = s.first <= position && s.first + size > position;
    return s;
}

template <int GROUP>
static __device__ __forceinline__ void
rotate_team(struct attention_shared<GROUP> *shared, const struct attention_call &c,
            const struct text_split &s, const float *qkv, const float2 *angles) {
    float scale = 1.44269504f * rsqrtf((float)c.p.HS);
    unsigned half = c.p.HS / 2;
    for (unsigned i = threadIdx.x; i < GROUP * half; i += ONE_THREADS) {
        unsigned g = i / half;
        uint2 at = one_channels(i % half, c.p);
        const float *q = qkv + (s.team * GROUP + g) * c.p.HS;
        float2 y = rotated(make_float2(q[at.x], q[at.y]), angles[i % half]);
        shared->q[g][at.x] = y.x * scale;
        shared->q[g][at.y] = y.y * scale;
    }
}

/* Where a token's key and value are in the cache, in tokens times key heads. */
static __device__ __forceinline__ size_t cache_row(const struct attention_call &c,
                                                   const struct text_split &s, unsigned position) {
    return (s.row * c.of_text + position) * c.p.KVH + s.head;
}

/* The last warp rounds the token's key and value; teams that share them write the same. */
template <int GROUP>
static __device__ __forceinline__ void
append_newest(struct attention_shared<GROUP> *shared, const struct attention_call &c,
              const struct text_split &s, const float *qkv, const float2 *angles) {
    enum { PAIRS = ONE_MAX_HS / 2 / 32 };
    const float *key = qkv + (c.p.NH + s.head) * c.p.HS, *value = key + c.p.KVH * c.p.HS;
    size_t row = cache_row(c, s, (unsigned)c.positions[s.row]);
    unsigned lane = threadIdx.x % 32;
    float2 k[PAIRS] = {}, v[PAIRS] = {};
    float key_max = 0.0f, value_max = 0.0f;
    if (threadIdx.x / 32 != ONE_WARPS - 1) {
        return;
    }
#pragma unroll
    for (unsigned j = 0; j < PAIRS; j++) {
        unsigned i = lane + j * 32;
        if (i < c.p.HS / 2) {
            uint2 at = one_channels(i, c.p);
            k[j] = rotated(make_float2(key[at.x], key[at.y]), angles[i]);
            v[j] = make_float2(value[at.x], value[at.y]);
            key_max = fmaxf(key_max, fmaxf(fabsf(k[j].x), fabsf(k[j].y)));
            value_max = fmaxf(value_max, fmaxf(fabsf(v[j].x), fabsf(v[j].y)));
        }
    }
    float2 scale = make_float2(scale_of_key(key_max), scale_of_key(value_max));
    const float2 per_scale = make_float2(1.0f / scale.x, 1.0f / scale.y);
    if (lane == 0) {
        shared->scale = c.cache.scales[row] = scale;
    }
    int8_t *k_to = c.cache.k + row * c.p.HS, *v_to = c.cache.v + row * c.p.HS;
#pragma unroll
    for (unsigned j = 0; j < PAIRS; j++) {
        unsigned i = lane + j * 32;
        if (i < c.p.HS / 2) {
            uint2 at = one_channels(i, c.p);
            shared->key[at.x] = k_to[at.x] = key8_of(k[j].x, scale.x, per_scale.x).bits;
            shared->key[at.y] = k_to[at.y] = key8_of(k[j].y, scale.x, per_scale.x).bits;
            shared->value[at.x] = v_to[at.x] = key8_of(v[j].x, scale.y, per_scale.y).bits;
            shared->value[at.y] = v_to[at.y] = key8_of(v[j].y, scale.y, per_scale.y).bits;
        }
    }
}

/* The warps take keys of earlier tokens in turn. */
template <int GROUP>
static __device__ __forceinline__ void
attend_earlier(struct online_softmax<16> state[GROUP], const struct lane_queries<key8, GROUP> &q,
               const struct attention_call &c, const struct text_split &s, unsigned lanes) {
    enum { KEYS = 2 };
    unsigned lane = threadIdx.x % 32, at_once = 32 / lanes;
    for (unsigned first = s.first + threadIdx.x / 32 * KEYS * at_once; first < s.end;
         first += ONE_WARPS * KEYS * at_once) {
        struct lane_keys<KEYS> k;
#pragma unroll
        for (unsigned i = 0; i < KEYS; i++) {
            unsigned key = first + i * at_once + lane / lanes;
            k.valid[i] = key < s.end;
            k.key[i] = k.value[i] = make_uint4(0, 0, 0, 0);
            k.scale[i] = make_float2(0.0f, 0.0f);
            if (k.valid[i]) {
                size_t row = cache_row(c, s, key);
                k.key[i] = *(const uint4 *)(c.cache.k + row * c.p.HS + lane % lanes * 16);
                k.value[i] = *(const uint4 *)(c.cache.v + row * c.p.HS + lane % lanes * 16);
                k.scale[i] = c.cache.scales[row];
            }
        }
        attend_tile<key8, GROUP>(state, q, k, lanes);
    }
}

template <int GROUP>
static __device__ __forceinline__ void
attend_own(struct online_softmax<16> state[GROUP], const struct lane_queries<key8, GROUP> &q,
           const struct attention_shared<GROUP> *shared, unsigned lanes) {
    unsigned lane = threadIdx.x % 32, at = lane % lanes * 16;
    struct lane_keys<1> k;
    k.key[0] = *(const uint4 *)(shared->key + at);
    k.value[0] = *(const uint4 *)(shared->value + at);
    k.scale[0] = shared->scale;
    k.valid[0] = lane < lanes;
    if (!k.valid[0]) {
        k.value[0] = make_uint4(0, 0, 0, 0);
    }
    attend_tile<key8, GROUP>(state, q, k, lanes);
}

/* Grid: splits, teams, texts. */
template <int GROUP>
static __global__ void __launch_bounds__(ONE_THREADS)
    attention_kernel(const struct attention_call c) {
    __shared__ __align__(16) struct attention_shared<GROUP> shared;
    dependent_launch_begin();
    const struct text_split s = split_of<GROUP>(c);
    unsigned HS = c.p.HS, lanes = HS / 16, floats = HS + 2;
    const float *qkv = c.qkv + (size_t)s.row * (c.p.NH + 2 * c.p.KVH) * HS;
    const float2 *angles = c.angles + s.row * (HS / 2);
    rotate_team<GROUP>(&shared, c, s, qkv, angles);
    if (s.has_newest) {
        append_newest<GROUP>(&shared, c, s, qkv, angles);
    }
    __syncthreads();
    struct online_softmax<16> state[GROUP] = {};
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        state[g].max = ONE_NO_SCORE;
    }
    const struct lane_queries<key8, GROUP> q =
        lane_queries_of<key8, GROUP>(shared.q[0], lanes, ONE_MAX_HS);
    attend_earlier<GROUP>(state, q, c, s, lanes);
    if (s.has_newest && threadIdx.x / 32 == ONE_WARPS - 1) {
        attend_own<GROUP>(state, q, &shared, lanes);
    }
    float *partials = &shared.partials[0][0][0];
    store_partials<key8, GROUP>(partials + threadIdx.x / 32 * GROUP * floats, state, lanes, HS);
    __syncthreads();
    float *to =
        c.partials + ((size_t)(s.row * c.p.NH + s.team * GROUP) * gridDim.x + blockIdx.x) * floats;
    for (unsigned i = threadIdx.x; i < GROUP * HS; i += ONE_THREADS) {
        unsigned g = i / HS, channel = i % HS;
        const struct partial x =
            merge_warps(partials + g * floats, (size_t)GROUP * floats, channel, HS);
        float *of_head = to + (size_t)g * gridDim.x * floats;
        of_head[channel] = x.value;
        if (channel == 0) {
            of_head[HS] = x.max;
            of_head[HS + 1] = x.sum;
        }
    }
}

/* Four channels of a head, of all splits. */
static __device__ __forceinline__ float4 merge_head(const float *partials, unsigned splits,
                                                    unsigned channel, unsigned HS) {
    float max = ONE_NO_SCORE, sum = 0.0f;
    float4 x = make_float4(0, 0, 0, 0);
    for (unsigned s = 0; s < splits; s++, partials += HS + 2) {
        float larger = fmaxf(max, partials[HS]);
        float old = exp2f(max - larger), own = exp2f(partials[HS] - larger);
        const float2 first = *(const float2 *)(partials + channel);
        const float2 second = *(const float2 *)(partials + channel + 2);
        sum = sum * old + partials[HS + 1] * own;
        x = make_float4(x.x * old + first.x * own, x.y * old + first.y * own,
                        x.z * old + second.x * own, x.w * old + second.y * own);
        max = larger;
    }
    float inverse = 1.0f / sum;
    return make_float4(x.x * inverse, x.y * inverse, x.z * inverse, x.w * inverse);
}

/* The heads of all texts as a product's input. Grid: blocks of four warps, texts; a warp has 128
 * channels. */
static __global__ void __launch_bounds__(ONE_THREADS)
    merge_kernel(const struct rows_input in, const float *partials, unsigned splits, unsigned NH,
                 unsigned HS) {
    dependent_launch_begin();
    unsigned block = blockIdx.x * ONE_WARPS + threadIdx.x / 32, row = blockIdx.y;
    unsigned channel = block * ROWS_BLOCK + threadIdx.x % 32 * 4;
    float4 x = make_float4(0, 0, 0, 0);
    if (block * ROWS_BLOCK >= NH * HS) {
        return;
    }
    if (channel < NH * HS) {
        const float *of_head = partials + ((size_t)row * NH + channel / HS) * splits * (HS + 2);
        x = merge_head(of_head, splits, channel % HS, HS);
    }
    store_row(in, block, row, x, 0.0f);
}

template <int GROUP>
static void launch_attention(const struct attention_call &c, unsigned splits, size_t rows,
                             device_stream stream) {
    dim3 grid(splits, c.p.NH / GROUP, (unsigned)rows);
    launch_dependent<attention_kernel<GROUP>>(grid, ONE_THREADS, 0, stream, c);
}

void rows_attend(const struct rows_decoder *d, size_t l, unsigned splits, device_stream stream) {
    const struct decoder_model *m = &d->model.sizes;
    const size_t tokens = l * m->T * m->KVH;
    struct attention_call c = {
        d->qkv,
        d->angles,
        d->io.positions,
        {d->cache.k + tokens * m->HS, d->cache.v + tokens * m->HS, d->cache.scales + tokens},
        m->L * m->T,
        d->partials,
        {}};
    c.p.NH = (unsigned)m->NH, c.p.KVH = (unsigned)m->KVH, c.p.HS = (unsigned)m->HS;
    c.p.rope_halves = m->layout == NN_ROPE_HALVES;
    if (m->NH / m->KVH % 2 == 0) {
        launch_attention<2>(c, splits, d->rows, stream);
    } else {
        launch_attention<1>(c, splits, d->rows, stream);
    }
    dim3 grid((unsigned)ceil_div(m->NH * m->HS, ONE_WARPS * ROWS_BLOCK), (unsigned)d->rows);
    launch_dependent<merge_kernel>(grid, ONE_THREADS, 0, stream, d->heads, d->partials, splits,
                                   c.p.NH, c.p.HS);
}
