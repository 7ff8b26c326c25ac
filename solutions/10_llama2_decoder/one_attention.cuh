/**
 * @file one_attention.cuh
 * @brief d8's attention: each key head's context is dealt out to blocks, and in a block to warps.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_ONE_ATTENTION_CUH_

#include "solutions/10_llama2_decoder/one_kernel.cuh"

/* A part of the context has so many keys at least. */
enum { ONE_PART_KEYS = 128, ONE_MOST_HS = 256 };

static __device__ __forceinline__ unsigned smaller(unsigned a, unsigned b) {
    return a < b ? a : b;
}

/* Parts that a context of `keys` is cut into where there are so many blocks. */
static __host__ __device__ __forceinline__ unsigned one_parts(unsigned keys, unsigned KVH,
                                                              unsigned blocks) {
    unsigned most = blocks / KVH > 0 ? blocks / KVH : 1;
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

/* Pair i of a head, turned. *a, *b: its channels */
static __device__ __forceinline__ float2 one_turn(const float *head, const float2 *angles,
                                                  unsigned i, unsigned *a, unsigned *b,
                                                  const struct one &p) {
    *a = p.halves ? i : 2 * i;
    *b = p.halves ? i + p.HS / 2 : 2 * i + 1;
    float x = __ldcg(head + *a), y = __ldcg(head + *b);
    return make_float2(x * angles[i].x - y * angles[i].y, x * angles[i].y + y * angles[i].x);
}

/* The key head's queries, turned and scaled for powers of 2, to q (GROUP, HS) in shared memory. */
template <int GROUP>
static __device__ __forceinline__ void turn_queries(float *q, const float2 *angles, unsigned head,
                                                    const struct one &p) {
    float scale = 1.44269504f * rsqrtf((float)p.HS);
    unsigned half = p.HS / 2, a, b;
    for (unsigned i = threadIdx.x; i < GROUP * half; i += ONE_THREADS) {
        unsigned g = i / half;
        float2 x = one_turn(p.qkv + (head * GROUP + g) * p.HS, angles, i % half, &a, &b, p);
        q[g * p.HS + a] = x.x * scale;
        q[g * p.HS + b] = x.y * scale;
    }
}

/* The token's key, turned, and value become their row of the cache. */
template <typename E>
static __device__ __forceinline__ void append(E *k, E *v, const float2 *angles, unsigned head,
                                              const struct one &p) {
    const float *key = p.qkv + (p.NH + head) * p.HS, *value = key + p.KVH * p.HS;
    size_t row = ((size_t)p.position * p.KVH + head) * p.HS;
    unsigned a, b;
    for (unsigned i = threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        float2 x = one_turn(key, angles, i, &a, &b, p);
        k[row + a] = elements<E>::narrow(x.x);
        k[row + b] = elements<E>::narrow(x.y);
        v[row + a] = elements<E>::narrow(__ldcg(value + a));
        v[row + b] = elements<E>::narrow(__ldcg(value + b));
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

/*
 * A warp's keys first + warp * teams, ... below end. `lanes` lanes share a key, 16 bytes a lane;
 * all lanes stay for the shuffles.
 */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_keys(struct going<elements<E>::COUNT> m[GROUP], const float *queries, const E *k, const E *v,
            unsigned lanes, unsigned first, unsigned end, unsigned head, const struct one &p) {
    constexpr int COUNT = elements<E>::COUNT, KEYS = GROUP >= 8 ? 2 : 4;
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, teams = 32 / lanes;
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
    unsigned at = first + warp * teams, step = ONE_WARPS * teams;
    for (; at < end; at += KEYS * step) {
        uint4 key[KEYS], value[KEYS];
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            unsigned row = smaller(at + i * step + lane / lanes, end - 1);
            key[i] = __ldcg((const uint4 *)(keys + (size_t)row * stride));
            value[i] = __ldcg((const uint4 *)(values + (size_t)row * stride));
        }
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            bool there = at + i * step + lane / lanes < end;
            float x[COUNT], y[COUNT];
            elements<E>::unpack(x, key[i]);
            elements<E>::unpack(y, value[i]);
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                float score = 0.0f;
#pragma unroll
                for (int c = 0; c < COUNT; c++) {
                    score += q[g][c] * x[c];
                }
                for (unsigned s = lanes / 2; s > 0; s /= 2) {
                    score += __shfl_xor_sync(~0u, score, s);
                }
                if (there) {
                    take_key<COUNT>(&m[g], score, y);
                }
            }
        }
    }
}

/* The warps' results, from shared memory, put together: thread i has channel i % HS of head i / HS.
   Results are `distance` floats apart. */
static __device__ __forceinline__ float together(const float *results, unsigned count,
                                                 size_t distance, unsigned channel, unsigned HS,
                                                 float *largest, float *total) {
    float value = 0.0f;
    *largest = -INFINITY;
    *total = 0.0f;
    for (unsigned i = 0; i < count; i++) {
        *largest = fmaxf(*largest, __ldcg(results + i * distance + HS));
    }
    for (unsigned i = 0; i < count; i++) {
        const float *one = results + i * distance;
        float fade = exp2f(__ldcg(one + HS) - *largest);
        value += __ldcg(one + channel) * fade;
        *total += __ldcg(one + HS + 1) * fade;
    }
    return value;
}

/* The same within a block, from shared memory. */
static __device__ __forceinline__ float together_here(const float *results, size_t distance,
                                                      unsigned channel, unsigned HS, float *largest,
                                                      float *total) {
    float value = 0.0f;
    *largest = -INFINITY;
    *total = 0.0f;
    for (int i = 0; i < ONE_WARPS; i++) {
        *largest = fmaxf(*largest, results[i * distance + HS]);
    }
    for (int i = 0; i<ONE_WARPS && * largest> - INFINITY; i++) {
        const float *one = results + i * distance;
        float fade = exp2f(one[HS] - *largest);
        value += one[channel] * fade;
        *total += one[HS + 1] * fade;
    }
    return value;
}

/* The block that is done last with a key head puts its parts together. */
template <int GROUP>
static __device__ __forceinline__ void finish_head(unsigned head, unsigned parts, bool *last,
                                                   const struct one &p) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *last = atomicAdd(&p.done[head], 1) == parts - 1;
        if (*last) {
            p.done[head] = 0;
        }
        __threadfence();
    }
    __syncthreads();
    size_t floats = one_result(p.HS);
    for (unsigned i = threadIdx.x; *last && i < GROUP * p.HS; i += ONE_THREADS) {
        unsigned g = i / p.HS;
        float largest, total;
        float value = together(p.partial + ((size_t)head * parts * GROUP + g) * floats, parts,
                               GROUP * floats, i % p.HS, p.HS, &largest, &total);
        p.heads[head * GROUP * p.HS + i] = value / total;
    }
}

/* heads = attention of layer l. @param room shared memory: ONE_WARPS * GROUP results and GROUP
 * heads
 */
template <typename E, int GROUP>
static __device__ void attend(const struct one &p, unsigned l, float *room, const float2 *angles,
                              bool *last) {
    constexpr int COUNT = elements<E>::COUNT;
    unsigned keys = (unsigned)p.position + 1, parts = one_parts(keys, p.KVH, gridDim.x);
    unsigned share = (keys + parts - 1) / parts, floats = one_result(p.HS);
    unsigned lanes = p.HS / COUNT, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    E *k = (E *)p.k + (size_t)l * p.T * p.KVH * p.HS, *v = (E *)p.v + (k - (E *)p.k);
    float *queries = room, *results = room + GROUP * p.HS;
    for (unsigned item = blockIdx.x; item < p.KVH * parts; item += gridDim.x) {
        unsigned head = item / parts, first = item % parts * share;
        unsigned end = smaller(first + share, keys);
        turn_queries<GROUP>(queries, angles, head, p);
        if (first < end && end == keys) {
            append<E>(k, v, angles, head, p);
        }
        __syncthreads();
        struct going<COUNT> m[GROUP];
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            m[g] = {};
            m[g].largest = -INFINITY;
        }
        if (first < end) {
            attend_keys<E, GROUP>(m, queries, k, v, lanes, first, end, head, p);
        }
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            for (unsigned step = lanes; step < 32; step *= 2) {
                merge<COUNT>(&m[g], step);
            }
            float *to = results + (warp * GROUP + g) * floats;
#pragma unroll
            for (int c = 0; c < COUNT; c++) {
                if (lane < lanes) {
                    to[lane * COUNT + c] = m[g].values[c];
                }
            }
            if (lane == 0) {
                to[p.HS] = m[g].largest;
                to[p.HS + 1] = m[g].total;
            }
        }
        __syncthreads();
        for (unsigned i = threadIdx.x; i < GROUP * p.HS; i += ONE_THREADS) {
            unsigned g = i / p.HS, c = i % p.HS;
            float largest, total;
            float value = together_here(results + g * floats, (size_t)GROUP * floats, c, p.HS,
                                        &largest, &total);
            if (parts == 1) {
                p.heads[head * GROUP * p.HS + i] = value / total;
                continue;
            }
            float *to = p.partial + ((size_t)item * GROUP + g) * floats;
            to[c] = value;
            if (c == 0) {
                to[p.HS] = largest;
                to[p.HS + 1] = total;
            }
        }
        if (parts > 1) {
            finish_head<GROUP>(head, parts, last, p);
        }
        __syncthreads(); /* room is free */
    }
}

#endif
