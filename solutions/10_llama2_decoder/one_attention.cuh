/**
 * @file one_attention.cuh
 * @brief d8's attention: each key head's context is dealt out to blocks, and in a block to warps.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_ATTENTION_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/one_kernel.cuh"

/* A part of the context has so many keys at least. */
enum { ONE_PART_KEYS = 128, ONE_MOST_HS = 256 };

static __device__ __forceinline__ unsigned smaller(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Parts that a context of `keys` is cut into for each of `teams` where there are so many blocks. */
static __host__ __device__ __forceinline__ unsigned one_parts(unsigned keys, unsigned teams,
                                                              unsigned blocks) {
    unsigned most = blocks / teams > 0 ? blocks / teams : 1;
    unsigned parts = (keys + ONE_PART_KEYS - 1) / ONE_PART_KEYS;
    return parts < most ? parts : most;
}

/* Floats of a part's result for one head: its sums, the largest score, the total of weights. */
static __host__ __device__ __forceinline__ unsigned one_result(unsigned HS) {
    return HS + 2;
}

/* (cosine, sine) of pair i's angle; whole turns are taken off in double. */
static __device__ __forceinline__ float2 one_angle(unsigned i, const struct one &p) {
    const double one_over_pi = 0.31830988618379067;
    double half_turns = p.position * exp2(-2.0 * i / p.HS * p.log2_theta) * one_over_pi;
    float2 angle;
    sincospif((float)(half_turns - 2.0 * rint(0.5 * half_turns)), &angle.y, &angle.x);
    return angle;
}

/* Pair i of a head, which begins at qkv's element `head`, turned. *a, *b: its channels */
static __device__ __forceinline__ float2 one_turn(size_t head, const float2 *angles, unsigned i,
                                                  unsigned *a, unsigned *b, unsigned tag,
                                                  const struct one &p) {
    *a = p.halves ? i : 2 * i;
    *b = p.halves ? i + p.HS / 2 : 2 * i + 1;
    float2 x = receive(p.qkv, head + *a, head + *b, tag);
    return make_float2(x.x * angles[i].x - x.y * angles[i].y,
                       x.x * angles[i].y + x.y * angles[i].x);
}

/* The team's queries, turned and scaled for powers of 2, to q (GROUP, HS) in shared memory. */
template <int GROUP>
static __device__ __forceinline__ void turn_queries(float *q, const float2 *angles, unsigned team,
                                                    unsigned tag, const struct one &p) {
    float scale = 1.44269504f * rsqrtf((float)p.HS);
    unsigned half = p.HS / 2, a, b;
    for (unsigned i = threadIdx.x; i < GROUP * half; i += ONE_THREADS) {
        unsigned g = i / half;
        float2 x = one_turn((team * GROUP + g) * p.HS, angles, i % half, &a, &b, tag, p);
        q[g * p.HS + a] = x.x * scale;
        q[g * p.HS + b] = x.y * scale;
    }
}

/* The token's key, turned, and value become their row of the cache. Teams of one key head write the
   same. The last threads do it: the first ones turn queries. */
template <typename E>
static __device__ __forceinline__ void append(E *k, E *v, const float2 *angles, unsigned head,
                                              unsigned tag, const struct one &p) {
    size_t key = (size_t)(p.NH + head) * p.HS, value = key + p.KVH * p.HS;
    size_t row = ((size_t)p.position * p.KVH + head) * p.HS;
    unsigned a, b;
    for (unsigned i = ONE_THREADS - 1 - threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        float2 x = one_turn(key, angles, i, &a, &b, tag, p);
        k[row + a] = elements<E>::narrow(x.x);
        k[row + b] = elements<E>::narrow(x.y);
        float2 y = receive(p.qkv, value + a, value + b, tag);
        v[row + a] = elements<E>::narrow(y.x);
        v[row + b] = elements<E>::narrow(y.y);
    }
}

/* A softmax that goes along: the largest score, and sums relative to it. */
template <int CHANNELS> struct going { float largest, total, values[CHANNELS]; };

/* Takes a key with this score in. */
template <int CHANNELS>
static __device__ __forceinline__ void take_key(struct going<CHANNELS> *m, float score,
                                                const float v[CHANNELS]) {
    float largest = fmaxf(m->largest, score);
    float fade = exp2f(m->largest - largest), weight = exp2f(score - largest);
    m->largest = largest;
    m->total = m->total * fade + weight;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        m->values[c] = m->values[c] * fade + weight * v[c];
    }
}

/* Adds what the lane `step` away has. */
template <int CHANNELS>
static __device__ __forceinline__ void merge(struct going<CHANNELS> *m, unsigned step) {
    float other = __shfl_xor_sync(~0u, m->largest, step), largest = fmaxf(m->largest, other);
    float fade = largest == -INFINITY ? 0.0f : exp2f(m->largest - largest);
    m->largest = largest;
    m->total *= fade;
    m->total += __shfl_xor_sync(~0u, m->total, step);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        m->values[c] *= fade;
        m->values[c] += __shfl_xor_sync(~0u, m->values[c], step);
    }
}

/* Keys and values that a lane has asked for: rows at, at + step, ... */
template <int KEYS> struct rows_ahead { uint4 key[KEYS], value[KEYS]; };

/* @param keys, values of the lane's channels; rows behind the last are the last once more */
template <int KEYS, typename E>
static __device__ __forceinline__ struct rows_ahead<KEYS>
load_rows(const E *keys, const E *values, unsigned at, unsigned step, unsigned last,
          unsigned stride) {
    struct rows_ahead<KEYS> r;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        size_t row = (size_t)smaller(at + i * step, last) * stride;
        r.key[i] = __ldcg((const uint4 *)(keys + row));
        r.value[i] = __ldcg((const uint4 *)(values + row));
    }
    return r;
}

/* The query's score of a key whose channels are dealt out to `lanes` lanes. */
template <int COUNT>
static __device__ __forceinline__ float score_of(const float q[COUNT], const float key[COUNT],
                                                 unsigned lanes) {
    float score = 0.0f;
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
        score += q[c] * key[c];
    }
    for (unsigned s = lanes / 2; s > 0; s /= 2) {
        score += __shfl_xor_sync(~0u, score, s);
    }
    return score;
}

/*
 * A warp's keys first + warp * teams, ... below end. `lanes` lanes share a key, 16 bytes a lane;
 * all lanes stay for the shuffles. The next rows are on their way while these are taken in.
 */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_keys(struct going<elements<E>::COUNT> m[GROUP], const float *queries, const E *k, const E *v,
            unsigned lanes, unsigned first, unsigned end, unsigned head, const struct one &p) {
    constexpr int COUNT = elements<E>::COUNT, KEYS = GROUP >= 4 ? 2 : 4;
    unsigned lane = threadIdx.x % 32, teams = 32 / lanes, step = ONE_WARPS * teams;
    unsigned channel = lane % lanes * COUNT, stride = p.KVH * p.HS;
    const E *keys = k + (size_t)head * p.HS + channel, *values = v + (size_t)head * p.HS + channel;
    float q[GROUP][COUNT];
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int c = 0; c < COUNT; c++) {
            q[g][c] = queries[g * p.HS + channel + c];
        }
    }
    unsigned at = first + threadIdx.x / 32 * teams, mine = at + lane / lanes;
    struct rows_ahead<KEYS> next = load_rows<KEYS>(keys, values, mine, step, end - 1, stride);
    for (; at < end; at += KEYS * step, mine += KEYS * step) {
        struct rows_ahead<KEYS> rows = next;
        next = load_rows<KEYS>(keys, values, mine + KEYS * step, step, end - 1, stride);
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float x[COUNT], y[COUNT];
            elements<E>::unpack(x, rows.key[i]);
            elements<E>::unpack(y, rows.value[i]);
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                float score = score_of<COUNT>(q[g], x, lanes);
                if (mine + i * step < end) {
                    take_key<COUNT>(&m[g], score, y);
                }
            }
        }
    }
}

/* What some of the keys come to for one channel: a sum of weighted values, to be divided by the
   total of weights, both relative to the largest score. */
struct mix {
    float value, largest, total;
};

/* The warps' of a block, for channel c. @param mixes in shared memory, `distance` floats apart */
static __device__ __forceinline__ struct mix mix_of_warps(const float *mixes, size_t distance,
                                                          unsigned c, unsigned HS) {
    struct mix all = {0.0f, -INFINITY, 0.0f};
#pragma unroll
    for (int i = 0; i < ONE_WARPS; i++) {
        all.largest = fmaxf(all.largest, mixes[i * distance + HS]);
    }
#pragma unroll
    for (int i = 0; i < ONE_WARPS; i++) {
        const float *one = mixes + i * distance;
        float fade = exp2f(one[HS] - all.largest);
        all.value += one[c] * fade;
        all.total += one[HS + 1] * fade;
    }
    return all;
}

/* Takes the other blocks' parts of a context in. @param first where the first one's values begin */
static __device__ __forceinline__ void add_parts(struct mix *all, struct post parts, size_t first,
                                                 unsigned count, size_t distance, unsigned c,
                                                 unsigned tag, unsigned HS) {
    for (unsigned i = 0; i < count; i++, first += distance) {
        float2 scores = receive(parts, first + HS, first + HS + 1, tag);
        float value = receive(parts, first + c, first + c, tag).x;
        float largest = fmaxf(all->largest, scores.x);
        float fade = exp2f(all->largest - largest), more_fade = exp2f(scores.x - largest);
        all->value = all->value * fade + value * more_fade;
        all->total = all->total * fade + scores.y * more_fade;
        all->largest = largest;
    }
}

/* A warp's keys of all lanes together, to shared memory: GROUP of all channels. */
template <typename E, int GROUP>
static __device__ __forceinline__ void put_mixes(float *to, struct going<elements<E>::COUNT> *m,
                                                 unsigned lanes, unsigned HS) {
    constexpr int COUNT = elements<E>::COUNT;
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int g = 0; g < GROUP; g++, to += one_result(HS)) {
        for (unsigned step = lanes; step < 32; step *= 2) {
            merge<COUNT>(&m[g], step);
        }
#pragma unroll
        for (int c = 0; c < COUNT; c++) {
            if (lane < lanes) {
                to[lane * COUNT + c] = m[g].values[c];
            }
        }
        if (lane == 0) {
            to[HS] = m[g].largest;
            to[HS + 1] = m[g].total;
        }
    }
}

/* A block's work: a team's queries over a part of the context. */
struct item {
    unsigned team, part, parts;
    unsigned first, end; /* keys */
};

/* Sends a block's mixes; the block with the first part puts all of them together. */
template <int GROUP>
static __device__ __forceinline__ void send_mixes(const struct item *item, const float *mixes,
                                                  unsigned tag, const struct one &p) {
    unsigned floats = one_result(p.HS);
    for (unsigned i = threadIdx.x; i < GROUP * p.HS; i += ONE_THREADS) {
        unsigned g = i / p.HS, c = i % p.HS;
        size_t first = ((size_t)item->team * item->parts * GROUP + g) * floats;
        struct mix x = mix_of_warps(mixes + g * floats, (size_t)GROUP * floats, c, p.HS);
        if (item->part > 0) {
            size_t to = first + (size_t)item->part * GROUP * floats;
            send(p.partial, to + c, x.value, tag + ONE_PARTIAL_PART);
            if (c == 0) {
                send(p.partial, to + p.HS, x.largest, tag + ONE_PARTIAL_PART);
                send(p.partial, to + p.HS + 1, x.total, tag + ONE_PARTIAL_PART);
            }
            continue;
        }
        add_parts(&x, p.partial, first + GROUP * floats, item->parts - 1, GROUP * floats, c,
                  tag + ONE_PARTIAL_PART, p.HS);
        send(p.heads, (size_t)item->team * GROUP * p.HS + i, x.value / x.total,
             tag + ONE_HEADS_PART);
    }
}

/* The block's i-th item at this position. */
template <int GROUP>
static __device__ __forceinline__ bool item_of(struct item *item, unsigned i, const struct one &p) {
    unsigned keys = (unsigned)p.position + 1, teams = p.NH / GROUP;
    unsigned parts = one_parts(keys, teams, gridDim.x), size = (keys + parts - 1) / parts;
    parts = (keys + size - 1) / size; /* none is empty */
    i = blockIdx.x + i * gridDim.x;
    item->team = i / parts;
    item->part = i % parts;
    item->parts = parts;
    item->first = item->part * size;
    item->end = smaller(item->first + size, keys);
    return item->team < teams;
}

/* Brings the first keys and values that the block will read in layer l to L2. */
template <typename E, int GROUP>
static __device__ __forceinline__ void ask_l2_for_keys(unsigned l, const struct one &p) {
    enum { KEYS = 64, LINE = 128 };
    struct item item;
    if (item_of<GROUP>(&item, 0, p)) {
        unsigned head = item.team * GROUP / (p.NH / p.KVH), lines = p.HS * sizeof(E) / LINE;
        size_t first = (((size_t)l * p.T + item.first) * p.KVH + head) * p.HS;
        lines += lines == 0;
        for (unsigned i = threadIdx.x; i < KEYS * lines; i += ONE_THREADS) {
            size_t at = first + (size_t)(i / lines) * p.KVH * p.HS + i % lines * (LINE / sizeof(E));
            if (item.first + i / lines < item.end) {
                asm volatile("prefetch.global.L2 [%0];" ::"l"((const E *)p.k + at));
                asm volatile("prefetch.global.L2 [%0];" ::"l"((const E *)p.v + at));
            }
        }
    }
}

/* @param room as attend()'s */
template <typename E, int GROUP>
static __device__ __forceinline__ void attend_item(const struct item *item, unsigned l, float *room,
                                                   const float2 *angles, unsigned tag,
                                                   const struct one &p) {
    unsigned head = item->team * GROUP / (p.NH / p.KVH), lanes = p.HS / elements<E>::COUNT;
    E *k = (E *)p.k + (size_t)l * p.T * p.KVH * p.HS, *v = (E *)p.v + (k - (E *)p.k);
    float *mixes = room + GROUP * p.HS;
    struct going<elements<E>::COUNT> m[GROUP] = {};
    turn_queries<GROUP>(room, angles, item->team, tag + ONE_QKV_PART, p);
    if (item->end == (unsigned)p.position + 1) {
        append<E>(k, v, angles, head, tag + ONE_QKV_PART, p);
    }
    __syncthreads();
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        m[g].largest = -INFINITY;
    }
    attend_keys<E, GROUP>(m, room, k, v, lanes, item->first, item->end, head, p);
    put_mixes<E, GROUP>(mixes + threadIdx.x / 32 * GROUP * one_result(p.HS), m, lanes, p.HS);
    __syncthreads();
    send_mixes<GROUP>(item, mixes, tag, p);
    __syncthreads(); /* room is free */
}

/* Attention of layer l. @param room shared memory: GROUP heads and ONE_WARPS * GROUP mixes
   @param tag of the layer */
template <typename E, int GROUP>
static __device__ __forceinline__ void attend(unsigned l, float *room, const float2 *angles,
                                              unsigned tag, const struct one &p) {
    struct item item;
    for (unsigned i = 0; item_of<GROUP>(&item, i, p); i++) {
        attend_item<E, GROUP>(&item, l, room, angles, tag, p);
    }
}

#endif
