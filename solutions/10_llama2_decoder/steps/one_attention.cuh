/**
 * @file one_attention.cuh
 * @brief d8's attention: each key head's context is dealt out to blocks (one_context.cuh), and in a
 *        block to warps, through whose rings it comes (one_ring.cuh).
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_ONE_ATTENTION_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/steps/one_ring.cuh"

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

/* The channels of pair i of a head. */
static __device__ __forceinline__ uint2 one_channels(unsigned i, const struct one &p) {
    return p.halves ? make_uint2(i, i + p.HS / 2) : make_uint2(2 * i, 2 * i + 1);
}

static __device__ __forceinline__ float2 turned(float2 x, float2 angle) {
    return make_float2(x.x * angle.x - x.y * angle.y, x.x * angle.y + x.y * angle.x);
}

/* The team's queries, turned and scaled for powers of 2, to q (GROUP, HS) in shared memory. */
template <int GROUP>
static __device__ __forceinline__ void turn_queries(float *q, const float2 *angles, unsigned team,
                                                    unsigned tag, const struct one &p) {
    float scale = 1.44269504f * rsqrtf((float)p.HS);
    unsigned half = p.HS / 2;
    for (unsigned i = threadIdx.x; i < GROUP * half; i += ONE_THREADS) {
        unsigned g = i / half, head = (team * GROUP + g) * p.HS;
        uint2 c = one_channels(i % half, p);
        struct pair x;
        do {
            x = look_at_two(p.qkv, head + c.x, head + c.y);
        } while (!is_there(x, tag));
        float2 y = turned(values_of(x), angles[i % half]);
        q[g * p.HS + c.x] = y.x * scale;
        q[g * p.HS + c.y] = y.y * scale;
    }
}

/* Where this token's key and value are for its block, shared memory, and where they stay for later
   tokens. */
template <typename E> struct newest { E *key_here, *value_here, *key, *value; };

template <typename E>
static __device__ __forceinline__ void put_newest(const struct newest<E> &to, unsigned channel,
                                                  float key, float value) {
    to.key_here[channel] = to.key[channel] = from_float<E>(key);
    to.value_here[channel] = to.value[channel] = from_float<E>(value);
}

/* The token's key, turned, and value become their row of the cache. Teams of one key head write the
   same. The last threads do it: the first ones turn queries. */
template <typename E>
static __device__ __forceinline__ void append(const struct newest<E> &to, const float2 *angles,
                                              unsigned head, unsigned tag, const struct one &p) {
    size_t key = (size_t)(p.NH + head) * p.HS, value = key + p.KVH * p.HS;
    for (unsigned i = ONE_THREADS - 1 - threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        uint2 c = one_channels(i, p);
        struct pair x, y;
        do {
            x = look_at_two(p.qkv, key + c.x, key + c.y);
            y = look_at_two(p.qkv, value + c.x, value + c.y);
        } while (!is_there(x, tag) || !is_there(y, tag));
        float2 k = turned(values_of(x), angles[i]), v = values_of(y);
        put_newest<E>(to, c.x, k.x, v.x);
        put_newest<E>(to, c.y, k.y, v.y);
    }
}

/* Below every score, and finite, so that two of them have a difference. */
static constexpr float ONE_NO_SCORE = -1e38f;

/* A softmax that goes along: the largest score, and sums relative to it. */
template <int CHANNELS> struct going { float largest, total, values[CHANNELS]; };

/* Raises the largest score, if this is larger. */
template <int CHANNELS>
static __device__ __forceinline__ void raise_to(struct going<CHANNELS> *m, float score) {
    float largest = fmaxf(m->largest, score), fade = exp2f(m->largest - largest);
    m->largest = largest;
    m->total *= fade;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        m->values[c] *= fade;
    }
}

/* Takes a key in whose score is not above the largest. */
template <int CHANNELS>
static __device__ __forceinline__ void take_key(struct going<CHANNELS> *m, float score,
                                                const float v[CHANNELS]) {
    float weight = exp2f(score - m->largest);
    m->total += weight;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        m->values[c] += weight * v[c];
    }
}

/* Adds what the lane `step` away has. */
template <int CHANNELS>
static __device__ __forceinline__ void merge(struct going<CHANNELS> *m, unsigned step) {
    float other = __shfl_xor_sync(~0u, m->largest, step), largest = fmaxf(m->largest, other);
    float fade = exp2f(m->largest - largest);
    m->largest = largest;
    m->total *= fade;
    m->total += __shfl_xor_sync(~0u, m->total, step);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        m->values[c] *= fade;
        m->values[c] += __shfl_xor_sync(~0u, m->values[c], step);
    }
}

/* A lane's part of a score. */
template <int COUNT>
static __device__ __forceinline__ float part_of_score(const float q[COUNT],
                                                      const float key[COUNT]) {
    float sums[2] = {};
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
        sums[c % 2] += q[c] * key[c];
    }
    return sums[0] + sums[1];
}

/* Scores from the parts of `lanes` lanes, all at once: one after the other would take as long as
   memory does. */
template <int N>
static __device__ __forceinline__ void put_scores_together(float scores[N], unsigned lanes) {
    for (unsigned step = lanes / 2; step > 0; step /= 2) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            scores[i] += __shfl_xor_sync(~0u, scores[i], step);
        }
    }
}

/* A warp reads a slot's keys so often. */
enum { ONE_KEY_ROUNDS = ONE_SLOT_BYTES / 2 / 512 };

/* What a lane has of each query: the channels that it has of a key. */
template <typename E, int GROUP> struct lane_queries { float of[GROUP][VECTOR_ELEMENTS<E>]; };

template <typename E, int GROUP>
static __device__ __forceinline__ struct lane_queries<E, GROUP>
lane_queries_of(const float *queries, unsigned lanes, unsigned HS) {
    struct lane_queries<E, GROUP> q;
    unsigned channel = threadIdx.x % 32 % lanes * VECTOR_ELEMENTS<E>;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int c = 0; c < VECTOR_ELEMENTS<E>; c++) {
            q.of[g][c] = queries[g * HS + channel + c];
        }
    }
    return q;
}

/* Keys and values that a lane has in registers: 16 bytes of each of KEYS. */
template <int KEYS>
struct lane_keys {
    uint4 key[KEYS], value[KEYS];
    bool counts[KEYS]; /* whether there is such a key; if not, its value is zeros */
};

/* Takes keys in that `lanes` lanes share; all lanes stay for the shuffles. */
template <typename E, int GROUP, int KEYS>
static __device__ __forceinline__ void
attend_some(struct going<VECTOR_ELEMENTS<E>> m[GROUP], const struct lane_queries<E, GROUP> &q,
            const struct lane_keys<KEYS> &k, unsigned lanes) {
    constexpr int COUNT = VECTOR_ELEMENTS<E>;
    float scores[KEYS * GROUP];
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float key[COUNT];
        unpack(k.key[i], key, E());
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            scores[i * GROUP + g] = part_of_score<COUNT>(q.of[g], key);
        }
    }
    put_scores_together<KEYS * GROUP>(scores, lanes);
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        float largest = ONE_NO_SCORE;
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float *score = &scores[i * GROUP + g];
            *score = k.counts[i] ? *score : -INFINITY;
            largest = fmaxf(largest, *score);
        }
        raise_to<COUNT>(&m[g], largest);
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float value[COUNT];
        unpack(k.value[i], value, E());
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            take_key<COUNT>(&m[g], scores[i * GROUP + g], value);
        }
    }
}

/* From the ring's oldest slot, which has so many keys, to places `first` and on. */
template <int FIRST, int KEYS>
static __device__ __forceinline__ void read_keys(struct lane_keys<KEYS> *k, unsigned slot,
                                                 unsigned lanes, unsigned keys) {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ONE_KEY_ROUNDS; i++) {
        unsigned at = slot + (lane + i * 32) * 16;
        k->counts[FIRST + i] = lane / lanes + i * (32 / lanes) < keys;
        k->key[FIRST + i] = k->value[FIRST + i] = make_uint4(0, 0, 0, 0);
        if (k->counts[FIRST + i]) {
            k->key[FIRST + i] = read_shared(at);
            k->value[FIRST + i] = read_shared(at + ONE_SLOT_BYTES / 2);
        }
    }
}

/* The warp's keys of earlier tokens, from its ring, two slots at a time where registers suffice. */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_keys(struct going<VECTOR_ELEMENTS<E>> m[GROUP], struct ring *r,
            const struct lane_queries<E, GROUP> &q, unsigned lanes, const struct one &p) {
    constexpr int SLOTS = GROUP < 4 ? 2 : 1;
    const struct begin *begin = begin_of(r->plan, ONE_KEYS);
    unsigned count = begin->count, tail = begin->slice;
    for (unsigned i = 0; i < count; i += SLOTS) {
        struct lane_keys<SLOTS * ONE_KEY_ROUNDS> k;
        read_keys<0>(&k, wait(r), lanes, i + 1 < count ? ~0u : tail);
        pass(r, false, p);
        if (SLOTS > 1 && i + 1 < count) {
            read_keys<(SLOTS - 1) * ONE_KEY_ROUNDS>(&k, wait(r), lanes, i + 2 < count ? ~0u : tail);
            pass(r, false, p);
        } else if (SLOTS > 1) {
            read_keys<(SLOTS - 1) * ONE_KEY_ROUNDS>(&k, 0, lanes, 0);
        }
        attend_some<E, GROUP>(m, q, k, lanes);
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

/* Adds another mix of the channel. */
static __device__ __forceinline__ void add_mix(struct mix *all, const struct mix &other) {
    float largest = fmaxf(all->largest, other.largest);
    float fade = exp2f(all->largest - largest), other_fade = exp2f(other.largest - largest);
    all->value = all->value * fade + other.value * other_fade;
    all->total = all->total * fade + other.total * other_fade;
    all->largest = largest;
}

/* Takes the other blocks' parts of a context in, as many at a time as a context of 7B has.
   @param first where the first one's values begin */
static __device__ __forceinline__ void add_parts(struct mix *all, struct post parts, size_t first,
                                                 unsigned count, size_t distance, unsigned c,
                                                 unsigned tag, unsigned HS) {
    enum { AT_ONCE = 3 };
    for (unsigned i = 0; i < count; i += AT_ONCE, first += AT_ONCE * distance) {
        struct pair scores[AT_ONCE], values[AT_ONCE];
        bool there;
        do {
            there = true;
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                size_t part = first + (i + j < count ? j : 0) * distance;
                scores[j] = look(parts, part + HS);
                values[j] = look(parts, part + c / 2 * 2);
            }
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                there = there && is_there(scores[j], tag) && is_there(values[j], tag);
            }
        } while (!there);
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            if (i + j < count) {
                float2 value = values_of(values[j]), score = values_of(scores[j]);
                add_mix(all, {c % 2 == 0 ? value.x : value.y, score.x, score.y});
            }
        }
    }
}

/* A warp's keys of all lanes together, to shared memory: GROUP of all channels. */
template <typename E, int GROUP>
static __device__ __forceinline__ void put_mixes(float *to, struct going<VECTOR_ELEMENTS<E>> *m,
                                                 unsigned lanes, unsigned HS) {
    constexpr int COUNT = VECTOR_ELEMENTS<E>;
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
        show(p.heads, (size_t)item->team * GROUP * p.HS + i, x.value / x.total, bit_of(tag));
    }
}

/* The block's own key, if its part has it: the last warp's, which has the fewest others. */
template <typename E, int GROUP>
static __device__ __forceinline__ void attend_newest(struct going<VECTOR_ELEMENTS<E>> m[GROUP],
                                                     const struct lane_queries<E, GROUP> &q,
                                                     const uint4 *newest, unsigned lanes) {
    unsigned lane = threadIdx.x % 32, piece = lane % lanes;
    if (threadIdx.x / 32 == ONE_WARPS - 1) {
        struct lane_keys<1> k;
        k.key[0] = newest[piece];
        k.value[0] = newest[lanes + piece];
        k.counts[0] = lane < lanes;
        if (!k.counts[0]) {
            k.value[0] = make_uint4(0, 0, 0, 0);
        }
        attend_some<E, GROUP>(m, q, k, lanes);
    }
}

/* Floats of shared memory that attend() works in. */
static __host__ __device__ __forceinline__ size_t one_attention_room(size_t group, size_t HS) {
    return (group + 2) * HS + ONE_WARPS * group * one_result((unsigned)HS);
}

/* With a short context attention is a chain of trips with few bytes, so its blocks ask for all they
   can before it. */
static __device__ __forceinline__ unsigned owed_before_attention(const struct item &item) {
    return item.any && item.parts == 1 ? 0 : ONE_OWED;
}

/* Attention of layer l, if the block has a part of it. @param room shared memory: queries, the
   newest key and value, warps' mixes @param tag of the layer */
template <typename E, int GROUP>
static __device__ __forceinline__ void attend(struct ring *r, unsigned l, float *room,
                                              const float2 *angles, unsigned tag,
                                              const struct one &p) {
    const struct item *item = &r->plan->item;
    if (!item->any) {
        return;
    }
    unsigned lanes = p.HS / VECTOR_ELEMENTS<E>;
    size_t row = (((size_t)l * p.T + (unsigned)p.position) * p.KVH + item->head) * p.HS;
    E *here = (E *)(room + GROUP * p.HS);
    struct newest<E> newest = {
        here, here + p.HS, (E *)p.k + row, (E *)p.v + row
    };
    float *mixes = room + (GROUP + 2) * p.HS;
    struct going<VECTOR_ELEMENTS<E>> m[GROUP] = {};
    turn_queries<GROUP>(room, angles, item->team, tag + ONE_QKV_PART, p);
    if (item->newest) {
        append<E>(newest, angles, item->head, tag + ONE_QKV_PART, p);
    }
    __syncthreads();
    catch_up_all(r, p);
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        m[g].largest = ONE_NO_SCORE;
    }
    struct lane_queries<E, GROUP> q = lane_queries_of<E, GROUP>(room, lanes, p.HS);
    attend_keys<E, GROUP>(m, r, q, lanes, p);
    if (item->newest) {
        attend_newest<E, GROUP>(m, q, (const uint4 *)here, lanes);
    }
    put_mixes<E, GROUP>(mixes + threadIdx.x / 32 * GROUP * one_result(p.HS), m, lanes, p.HS);
    __syncthreads();
    send_mixes<GROUP>(item, mixes, tag, p);
    __syncthreads(); /* room is free */
}

#endif
