/**
 * @file d8_attention.cuh
 * @brief d8's attention, split-KV: blocks share each key head's context (d8_split.cuh), and a
 * block's warps share a split through their pipelines (d8_pipeline.cuh).
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STEPS_D8_ATTENTION_CUH_

#include <math.h>

#include "solutions/10_llama2_decoder/steps/d8_keys.cuh"
#include "solutions/10_llama2_decoder/steps/d8_pipeline.cuh"

/* Floats of a split's partial result for one head: the output, running max and running sum. */
static __host__ __device__ __forceinline__ unsigned one_partial_floats(unsigned HS) {
    return HS + 2;
}

/* (cosine, sine) of pair i's angle; whole rotations are subtracted in double. */
static __device__ __forceinline__ float2 one_angle(unsigned i, const struct one_arguments &p) {
    const double one_over_pi = 0.31830988618379067;
    double half_turns = p.position * exp2(-2.0 * i / p.HS * p.log2_theta) * one_over_pi;
    float2 angle;
    sincospif((float)(half_turns - 2.0 * rint(0.5 * half_turns)), &angle.y, &angle.x);
    return angle;
}

/* The channels of pair i of a head. */
static __device__ __forceinline__ uint2 one_channels(unsigned i, const struct one_arguments &p) {
    return p.rope_halves ? make_uint2(i, i + p.HS / 2) : make_uint2(2 * i, 2 * i + 1);
}

static __device__ __forceinline__ float2 rotated(float2 x, float2 angle) {
    return make_float2(x.x * angle.x - x.y * angle.y, x.x * angle.y + x.y * angle.x);
}

/* q (GROUP, HS) in shared memory = the team's queries, rotated, and scaled for exp2f. */
template <int GROUP>
static __device__ __forceinline__ void rotate_queries(float *q, const float2 *angles, unsigned team,
                                                      unsigned tag, const struct one_arguments &p) {
    float scale = 1.44269504f * rsqrtf((float)p.HS);
    unsigned half = p.HS / 2;
    for (unsigned i = threadIdx.x; i < GROUP * half; i += ONE_THREADS) {
        unsigned g = small_quotient(i, half), head = (team * GROUP + g) * p.HS, n = i - g * half;
        uint2 c = one_channels(n, p);
        struct pair x;
        do {
            x = read_two(p.qkv, head + c.x, head + c.y);
        } while (!has_tag(x, tag));
        float2 y = rotated(values_of(x), angles[n]);
        q[g * p.HS + c.x] = y.x * scale;
        q[g * p.HS + c.y] = y.y * scale;
    }
}

/* Where this token's key and value go: shared memory, for this block, and the cache. */
template <typename E> struct newest {
    E *key_here, *value_here, *key, *value;
    float2 *scale; /* of key and value, where those have 8 bits */
};

template <typename E>
static __device__ __forceinline__ void store_newest(const struct newest<E> &to, unsigned channel,
                                                    float key, float value) {
    to.key_here[channel] = to.key[channel] = from_float<E>(key);
    to.value_here[channel] = to.value[channel] = from_float<E>(value);
}

/* A pair of channels c of the token's key, rotated, and of its value, as soon as they have been
 * published. */
static __device__ __forceinline__ void read_newest_pair(float2 *k, float2 *v, size_t key,
                                                        size_t value, uint2 c, float2 angle,
                                                        unsigned tag,
                                                        const struct one_arguments &p) {
    struct pair x, y;
    do {
        x = read_two(p.qkv, key + c.x, key + c.y);
        y = read_two(p.qkv, value + c.x, value + c.y);
    } while (!has_tag(x, tag) || !has_tag(y, tag));
    *k = rotated(values_of(x), angle);
    *v = values_of(y);
}

/* Appends the token's key, rotated, and its value to the cache. Teams of one key head write the
 * same. The block's last threads do it, because the first ones rotate queries. */
template <typename E>
static __device__ __forceinline__ void
append_to_cache(const struct newest<E> &to, const float2 *angles, unsigned head, unsigned tag,
                const struct one_arguments &p) {
    size_t key = (size_t)(p.NH + head) * p.HS, value = key + p.KVH * p.HS;
    for (unsigned i = ONE_THREADS - 1 - threadIdx.x; i < p.HS / 2; i += ONE_THREADS) {
        uint2 c = one_channels(i, p);
        float2 k, v;
        read_newest_pair(&k, &v, key, value, c, angles[i], tag, p);
        store_newest<E>(to, c.x, k.x, v.x);
        store_newest<E>(to, c.y, k.y, v.y);
    }
}

/* The same of pairs lane + 32 j and lane + 32 (j + 1), those that there are, at once. */
static __device__ __forceinline__ void read_two_newest(float2 k[2], float2 v[2], size_t key,
                                                       size_t value, unsigned j,
                                                       const float2 *angles, unsigned tag,
                                                       const struct one_arguments &p) {
    unsigned first = threadIdx.x % 32 + j * 32;
    struct pair x[2], y[2];
    bool ready;
    do {
        ready = true;
#pragma unroll
        for (unsigned n = 0; n < 2; n++) {
            unsigned i = first + n * 32 < p.HS / 2 ? first + n * 32 : 0;
            uint2 c = one_channels(i, p);
            x[n] = read_two(p.qkv, key + c.x, key + c.y);
            y[n] = read_two(p.qkv, value + c.x, value + c.y);
        }
#pragma unroll
        for (unsigned n = 0; n < 2; n++) {
            ready = ready && has_tag(x[n], tag) && has_tag(y[n], tag);
        }
    } while (!ready);
#pragma unroll
    for (unsigned n = 0; n < 2; n++) {
        if (first + n * 32 < p.HS / 2) {
            k[n] = rotated(values_of(x[n]), angles[first + n * 32]);
            v[n] = values_of(y[n]);
        }
    }
}

/* With 8 bits, between reading the token's key and value and rounding them, the block's last warp
 * holds them, pairs of channels, because a scale is of all channels. */
struct held_newest {
    enum { PAIRS = ONE_MAX_HS / 2 / 32 };
    float2 k[PAIRS], v[PAIRS]; /* zeros behind the head's */
};

/* Reads the token's key and value. Without scales they are appended at once. */
template <typename E>
static __device__ __forceinline__ void read_newest(struct held_newest *, const struct newest<E> &to,
                                                   const float2 *angles, unsigned head,
                                                   unsigned tag, const struct one_arguments &p) {
    append_to_cache(to, angles, head, tag, p);
}

static __device__ __forceinline__ void read_newest(struct held_newest *held,
                                                   const struct newest<struct key8> &,
                                                   const float2 *angles, unsigned head,
                                                   unsigned tag, const struct one_arguments &p) {
    size_t key = (size_t)(p.NH + head) * p.HS, value = key + p.KVH * p.HS;
    if (threadIdx.x / 32 != ONE_WARPS - 1) {
        return;
    }
#pragma unroll
    for (unsigned j = 0; j < held->PAIRS; j += 2) {
        if (j * 32 < p.HS / 2) {
            read_two_newest(held->k + j, held->v + j, key, value, j, angles, tag, p);
        }
    }
}

/* Below every score, and finite, so that the difference of two of them is not NaN. */
static constexpr float ONE_NO_SCORE = -1e38f;

/* Online softmax state: running max, running sum and outputs relative to it. */
template <int CHANNELS> struct online_softmax { float max, sum, values[CHANNELS]; };

/* Online softmax update, first half: a new running max rescales the sums. */
template <int CHANNELS>
static __device__ __forceinline__ void raise_max(struct online_softmax<CHANNELS> *state,
                                                 float score) {
    float max = fmaxf(state->max, score), rescale = exp2f(state->max - max);
    state->max = max;
    state->sum *= rescale;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        state->values[c] *= rescale;
    }
}

/* Online softmax update, second half: adds a key whose score is at most the running max. @param
   scale of v, where that has 8 bits */
template <int CHANNELS>
static __device__ __forceinline__ void accumulate(struct online_softmax<CHANNELS> *state,
                                                  float score, const float v[CHANNELS],
                                                  float scale) {
    float weight = exp2f(score - state->max);
    state->sum += weight;
    weight *= ONE_KEYS_HAVE_SCALES ? scale : 1.0f;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        state->values[c] += weight * v[c];
    }
}

/* Merges the state of the lane `step` away. */
template <int CHANNELS>
static __device__ __forceinline__ void merge_lanes(struct online_softmax<CHANNELS> *state,
                                                   unsigned step) {
    float other = __shfl_xor_sync(~0u, state->max, step), max = fmaxf(state->max, other);
    float rescale = exp2f(state->max - max);
    state->max = max;
    state->sum *= rescale;
    state->sum += __shfl_xor_sync(~0u, state->sum, step);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        state->values[c] *= rescale;
        state->values[c] += __shfl_xor_sync(~0u, state->values[c], step);
    }
}

/* Adds up half of `count` channels with the lane `step` away, which gets the other half; a single
 * one both have. @return the first of this lane's half */
template <int COUNT>
static __device__ __forceinline__ unsigned keep_half(float values[COUNT], unsigned count,
                                                     unsigned step) {
    unsigned half = count / 2;
    bool upper = half > 0 && (threadIdx.x & step) != 0;
#pragma unroll
    for (unsigned c = 0; c < COUNT; c++) {
        if (c < half || (half == 0 && c == 0)) {
            float other = values[c + half], mine = upper ? other : values[c];
            values[c] = mine + __shfl_xor_sync(~0u, upper ? values[c] : other, step);
        }
    }
    return upper ? half : 0;
}

/*
 * Merges the states of the lanes that have the same channels: lanes `lanes`, 2 * `lanes`, ... away.
 * Of two lanes each keeps half of the channels, so that a warp shuffles few values. @return the
 * first of the lane's channels that it keeps, of COUNT; *kept of them, in values from 0 on
 */
template <int COUNT>
static __device__ __forceinline__ unsigned scatter_lanes(struct online_softmax<COUNT> *state,
                                                         unsigned lanes, unsigned *kept) {
    float max = state->max;
    unsigned first = 0;
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2) {
        max = step >= lanes ? fmaxf(max, __shfl_xor_sync(~0u, max, step)) : max;
    }
    float rescale = exp2f(state->max - max);
    state->max = max;
    state->sum *= rescale;
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
        state->values[c] *= rescale;
    }
    *kept = COUNT;
#pragma unroll
    for (unsigned step = 16, count = COUNT; step > 0;
         step /= 2, count = count > 1 ? count / 2 : 1) {
        if (step >= lanes) {
            first += keep_half<COUNT>(state->values, count, step);
            *kept = count > 1 ? count / 2 : 1;
            state->sum += __shfl_xor_sync(~0u, state->sum, step);
        }
    }
    return first;
}

/* The dot product over a lane's channels. */
template <int COUNT>
static __device__ __forceinline__ float partial_score(const float q[COUNT],
                                                      const float key[COUNT]) {
    float sums[2] = {};
#pragma unroll
    for (int c = 0; c < COUNT; c++) {
        sums[c % 2] += q[c] * key[c];
    }
    return sums[0] + sums[1];
}

/* Reduces N scores over `lanes` lanes, interleaved: one after the other would take as long as
 * memory does. */
template <int N>
static __device__ __forceinline__ void reduce_scores(float scores[N], unsigned lanes) {
    for (unsigned step = lanes / 2; step > 0; step /= 2) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            scores[i] += __shfl_xor_sync(~0u, scores[i], step);
        }
    }
}

/* Reads of 512 bytes that a warp needs for a stage's keys. */
enum { ONE_KEY_ROUNDS = ONE_KEY_BYTES / 2 / 512 };

/* A lane's channels of each query, the same as its channels of a key. */
template <typename E, int GROUP> struct lane_queries { float of[GROUP][VECTOR_ELEMENTS<E>]; };

/* @param ALIGNED whether `queries` is, to 16 bytes */
template <typename E, int GROUP, bool ALIGNED = false>
static __device__ __forceinline__ struct lane_queries<E, GROUP>
lane_queries_of(const float *queries, unsigned lanes, unsigned HS) {
    struct lane_queries<E, GROUP> q;
    queries += (threadIdx.x % 32 & (lanes - 1)) * VECTOR_ELEMENTS<E>;
#pragma unroll
    for (int g = 0; g < GROUP; g++, queries += HS) {
#pragma unroll
        for (int c = 0; c < VECTOR_ELEMENTS<E>; c += 4) {
            float4 x =
                ALIGNED ? *(const float4 *)(queries + c)
                        : make_float4(queries[c], queries[c + 1], queries[c + 2], queries[c + 3]);
            q.of[g][c] = x.x, q.of[g][c + 1] = x.y;
            q.of[g][c + 2] = x.z, q.of[g][c + 3] = x.w;
        }
    }
    return q;
}

/* Keys and values that a lane has in registers: 16 bytes of each of KEYS. */
template <int KEYS>
struct lane_keys {
    uint4 key[KEYS], value[KEYS];
    float2 scale[KEYS]; /* of key and value, where those have 8 bits */
    bool valid[KEYS];   /* false beyond the last key; the value is zeros then */
};

/* Online softmax over KEYS keys, each spread over `lanes` lanes. Called by all lanes, for the
 * shuffles. */
template <typename E, int GROUP, int KEYS>
static __device__ __forceinline__ void
attend_tile(struct online_softmax<VECTOR_ELEMENTS<E>> state[GROUP],
            const struct lane_queries<E, GROUP> &q, const struct lane_keys<KEYS> &k,
            unsigned lanes) {
    constexpr int COUNT = VECTOR_ELEMENTS<E>;
    float scores[KEYS * GROUP];
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float key[COUNT];
        unpack(k.key[i], key, E());
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            scores[i * GROUP + g] = partial_score<COUNT>(q.of[g], key);
            if constexpr (ONE_KEYS_HAVE_SCALES) {
                scores[i * GROUP + g] *= k.scale[i].x;
            }
        }
    }
    reduce_scores<KEYS * GROUP>(scores, lanes);
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        float max = ONE_NO_SCORE;
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float *score = &scores[i * GROUP + g];
            *score = k.valid[i] ? *score : -INFINITY;
            max = fmaxf(max, *score);
        }
        raise_max<COUNT>(&state[g], max);
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float value[COUNT];
        unpack(k.value[i], value, E());
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            accumulate<COUNT>(&state[g], scores[i * GROUP + g], value, k.scale[i].y);
        }
    }
}

/* Reads a stage of `keys` keys into k from index FIRST on. */
template <int FIRST, int KEYS>
static __device__ __forceinline__ void read_keys(struct lane_keys<KEYS> *k, unsigned stage,
                                                 unsigned lanes, unsigned keys) {
    unsigned lane = threadIdx.x % 32, shift = __ffs(lanes) - 1; /* a power of two */
#pragma unroll
    for (int i = 0; i < ONE_KEY_ROUNDS; i++) {
        unsigned at = stage + (lane + i * 32) * 16;
        k->valid[FIRST + i] = (lane >> shift) + i * (32u >> shift) < keys;
        k->key[FIRST + i] = k->value[FIRST + i] = make_uint4(0, 0, 0, 0);
        k->scale[FIRST + i] = make_float2(0.0f, 0.0f);
        if (k->valid[FIRST + i]) {
            k->key[FIRST + i] = read_shared(at);
            k->value[FIRST + i] = read_shared(at + ONE_KEY_BYTES / 2);
            if (ONE_KEYS_HAVE_SCALES) {
                unsigned key = (lane >> shift) + i * (32u >> shift);
                k->scale[FIRST + i] = read_shared_pair(stage + ONE_KEY_BYTES + key * 8);
            }
        }
    }
}

/* The warp's keys of earlier tokens, from its pipeline, two stages at a time where registers
 * suffice. @param held_back prefetches to hold back at the end, at most one less where there are
 * two stages at a time */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_keys(struct online_softmax<VECTOR_ELEMENTS<E>> state[GROUP], struct pipeline *pipe,
            const struct lane_queries<E, GROUP> &q, unsigned lanes, unsigned held_back,
            const struct one_arguments &p) {
    constexpr int STAGES = GROUP < 4 && !ONE_KEYS_HAVE_SCALES ? 2 : 1;
    const struct warp_slices *own = warp_slices_of(pipe->plan, ONE_KEYS);
    unsigned count = own->count, tail = own->slice;
    for (unsigned i = 0; i < count; i += STAGES) {
        struct lane_keys<STAGES * ONE_KEY_ROUNDS> k;
        read_keys<0>(&k, pipeline_wait(pipe), lanes, i + 1 < count ? ~0u : tail);
        pipeline_release(pipe, i + held_back >= count, p);
        if (STAGES > 1 && i + 1 < count) {
            read_keys<(STAGES - 1) * ONE_KEY_ROUNDS>(&k, pipeline_wait(pipe), lanes,
                                                     i + 2 < count ? ~0u : tail);
            pipeline_release(pipe, i + held_back >= count, p);
        } else if (STAGES > 1) {
            read_keys<(STAGES - 1) * ONE_KEY_ROUNDS>(&k, 0, lanes, 0);
        }
        attend_tile<E, GROUP>(state, q, k, lanes);
    }
}

/* A partial result over some keys for one channel: sum of P V, running max, running sum. */
struct partial {
    float value, max, sum;
};

/* Partial results of a block: its warps', and of a newest key of 8 bits. */
enum { ONE_PARTIALS = ONE_WARPS + (ONE_KEYS_HAVE_SCALES ? 1 : 0) };

/* Merges COUNT partial results of a block for channel c. @param partials in shared memory,
   `distance` floats apart @param present bit i: whether there is number i */
template <int COUNT>
static __device__ __forceinline__ struct partial
merge_block(const float *partials, size_t distance, unsigned present, unsigned c, unsigned HS) {
    struct partial all = {0.0f, -INFINITY, 0.0f};
    float max[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        max[i] = (present >> i & 1) != 0 ? partials[i * distance + HS] : -INFINITY;
        all.max = fmaxf(all.max, max[i]);
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float *one = partials + i * distance;
        float rescale = exp2f(max[i] - all.max);
        all.value += (present >> i & 1) != 0 ? one[c] * rescale : 0.0f;
        all.sum += (present >> i & 1) != 0 ? one[HS + 1] * rescale : 0.0f;
    }
    return all;
}

/* Merges those of all warps. */
static __device__ __forceinline__ struct partial merge_warps(const float *partials, size_t distance,
                                                             unsigned c, unsigned HS) {
    return merge_block<ONE_WARPS>(partials, distance, ~0u, c, HS);
}

/* Merges another partial result of the channel. */
static __device__ __forceinline__ void merge_partial(struct partial *all,
                                                     const struct partial &other) {
    float max = fmaxf(all->max, other.max);
    float rescale = exp2f(all->max - max), other_rescale = exp2f(other.max - max);
    all->value = all->value * rescale + other.value * other_rescale;
    all->sum = all->sum * rescale + other.sum * other_rescale;
    all->max = max;
}

/* Merges the other splits, as many at a time as a context of 7B has. @param first index of the
 * first one's values */
static __device__ __forceinline__ void merge_splits(struct partial *all, struct tagged_mailbox box,
                                                    size_t first, unsigned count, size_t distance,
                                                    unsigned c, unsigned tag, unsigned HS) {
    enum { AT_ONCE = 3 };
    for (unsigned i = 0; i < count; i += AT_ONCE, first += AT_ONCE * distance) {
        struct pair scores[AT_ONCE], values[AT_ONCE];
        bool ready;
        do {
            ready = true;
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                size_t split = first + (i + j < count ? j : 0) * distance;
                scores[j] = read_pair(box, split + HS);
                values[j] = read_pair(box, split + c / 2 * 2);
            }
#pragma unroll
            for (unsigned j = 0; j < AT_ONCE; j++) {
                ready = ready && has_tag(scores[j], tag) && has_tag(values[j], tag);
            }
        } while (!ready);
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; j++) {
            if (i + j < count) {
                float2 value = values_of(values[j]), score = values_of(scores[j]);
                merge_partial(all, {c % 2 == 0 ? value.x : value.y, score.x, score.y});
            }
        }
    }
}

/* Merges a warp's lanes; afterwards a lane has channels *first and further on, of the head. @return
   how many */
template <int COUNT>
static __device__ __forceinline__ unsigned merge_warp(struct online_softmax<COUNT> *state,
                                                      unsigned lanes, unsigned *first) {
    enum { MANY = 16 }; /* channels, for which halving them is worth its instructions */
    unsigned lane = threadIdx.x % 32, kept = COUNT;
    *first = (lane & (lanes - 1)) * COUNT;
    if constexpr (COUNT >= MANY) {
        *first += scatter_lanes<COUNT>(state, lanes, &kept);
    } else {
        for (unsigned step = lanes; step < 32; step *= 2) {
            merge_lanes<COUNT>(state, step);
        }
        kept = lane < lanes ? COUNT : 0;
    }
    return kept;
}

/* Merges a warp's lanes and stores its partial results, one for each of GROUP queries. */
template <typename E, int GROUP>
static __device__ __forceinline__ void
store_partials(float *to, struct online_softmax<VECTOR_ELEMENTS<E>> *state, unsigned lanes,
               unsigned HS) {
    constexpr int COUNT = VECTOR_ELEMENTS<E>;
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int g = 0; g < GROUP; g++, to += one_partial_floats(HS)) {
        unsigned first, kept = merge_warp<COUNT>(&state[g], lanes, &first);
#pragma unroll
        for (unsigned c = 0; c < COUNT; c++) {
            if (c < kept) {
                to[first + c] = state[g].values[c];
            }
        }
        if (lane == 0) {
            to[HS] = state[g].max;
            to[HS + 1] = state[g].sum;
        }
    }
}

/* Which partial results a block has: bit i. Without scales all warps store one, perhaps of no keys.
 */
static __device__ __forceinline__ unsigned partials_present(const struct split_item *item) {
    return ONE_KEYS_HAVE_SCALES ? item->present : ~0u;
}

/* Publishes a block's partial results; the block with split 0 merges all of them instead. */
template <int GROUP>
static __device__ __forceinline__ void publish_partials(const struct split_item *item,
                                                        const float *partials, unsigned tag,
                                                        const struct one_arguments &p) {
    unsigned floats = one_partial_floats(p.HS);
    for (unsigned i = threadIdx.x; i < GROUP * p.HS; i += ONE_THREADS) {
        unsigned g = small_quotient(i, p.HS), c = i - g * p.HS;
        size_t first = ((size_t)item->team * item->splits * GROUP + g) * floats;
        struct partial x = merge_block<ONE_PARTIALS>(partials + g * floats, (size_t)GROUP * floats,
                                                     partials_present(item), c, p.HS);
        if (item->split > 0) {
            size_t to = first + (size_t)item->split * GROUP * floats;
            publish(p.partial, to + c, x.value, tag + ONE_TAG_PARTIAL);
            if (c == 0) {
                publish(p.partial, to + p.HS, x.max, tag + ONE_TAG_PARTIAL);
                publish(p.partial, to + p.HS + 1, x.sum, tag + ONE_TAG_PARTIAL);
            }
            continue;
        }
        merge_splits(&x, p.partial, first + GROUP * floats, item->splits - 1, GROUP * floats, c,
                     tag + ONE_TAG_PARTIAL, p.HS);
        publish(p.heads, (size_t)item->team * GROUP * p.HS + i, x.value / x.sum, flag_of(tag));
    }
}

/* The token's own key: the last warp's, which has the fewest others. */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_newest(struct online_softmax<VECTOR_ELEMENTS<E>> state[GROUP],
              const struct lane_queries<E, GROUP> &q, const uint4 *newest, unsigned lanes) {
    unsigned lane = threadIdx.x % 32, piece = lane & (lanes - 1);
    if (threadIdx.x / 32 == ONE_WARPS - 1) {
        struct lane_keys<1> k;
        k.key[0] = newest[piece];
        k.value[0] = newest[lanes + piece];
        k.scale[0] = make_float2(1, 1);
        k.valid[0] = lane < lanes;
        if (!k.valid[0]) {
            k.value[0] = make_uint4(0, 0, 0, 0);
        }
        attend_tile<E, GROUP>(state, q, k, lanes);
    }
}

/* The same with 8 bits, from registers, as a partial result of one key. Rounds and appends key and
 * value, too: other warps are at their keys meanwhile. @param queries, partial shared memory */
template <int GROUP>
static __device__ __forceinline__ void
attend_held(const struct held_newest &held, const struct newest<struct key8> &to,
            const float *queries, float *partial, const struct one_arguments &p) {
    unsigned lane = threadIdx.x % 32, floats = one_partial_floats(p.HS);
    float key_max = 0.0f, value_max = 0.0f, scores[GROUP] = {};
    if (threadIdx.x / 32 != ONE_WARPS - 1) {
        return;
    }
#pragma unroll
    for (unsigned j = 0; j < held.PAIRS; j++) {
        key_max = fmaxf(key_max, fmaxf(fabsf(held.k[j].x), fabsf(held.k[j].y)));
        value_max = fmaxf(value_max, fmaxf(fabsf(held.v[j].x), fabsf(held.v[j].y)));
    }
    float2 scale = make_float2(scale_of_key(key_max), scale_of_key(value_max));
    const float2 per_scale = make_float2(1.0f / scale.x, 1.0f / scale.y);
#pragma unroll
    for (unsigned j = 0; j < held.PAIRS; j++) {
        if (lane + j * 32 >= p.HS / 2) {
            break;
        }
        uint2 c = one_channels(lane + j * 32, p);
        float2 k = make_float2(rounded_key(held.k[j].x, scale.x, per_scale.x),
                               rounded_key(held.k[j].y, scale.x, per_scale.x));
        float2 v = make_float2(rounded_key(held.v[j].x, scale.y, per_scale.y),
                               rounded_key(held.v[j].y, scale.y, per_scale.y));
        to.key[c.x] = stored_key(k.x), to.key[c.y] = stored_key(k.y);
        to.value[c.x] = stored_key(v.x), to.value[c.y] = stored_key(v.y);
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            scores[g] += queries[g * p.HS + c.x] * k.x + queries[g * p.HS + c.y] * k.y;
            partial[g * floats + c.x] = v.x * scale.y;
            partial[g * floats + c.y] = v.y * scale.y;
        }
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        float score = warp_sum(scores[g]) * scale.x;
        if (lane == 0) {
            partial[g * floats + p.HS] = score;
            partial[g * floats + p.HS + 1] = 1.0f;
        }
    }
    if (lane == 0) {
        *to.scale = scale;
    }
}

/* Floats of shared memory that attend() works in. */
static __host__ __device__ __forceinline__ size_t one_attention_floats(size_t group, size_t HS) {
    return (group + 2) * HS + ONE_PARTIALS * group * one_partial_floats((unsigned)HS);
}

/* Blocks with attention to do issue all prefetches before it: over a short context it is a chain of
 * round trips with few bytes, and over a long one their keys are on the way when the query arrives.
 * Behind a split's keys come exchanges with the other splits and of the heads, and prefetches are
 * held back for these. On an H100 4,000 tokens of 7B cost 1.00 times their bytes instead of 1.10
 * by both, 1.08 by the first alone. */
static __device__ __forceinline__ unsigned
held_back_before_attention(const struct split_item &item, const struct one_arguments &p) {
    return item.active ? 0 : p.held_back;
}

/* Attention of layer l, where the block has a split of it. @param scratch shared memory: queries,
   the newest key and value, the warps' partial results @param tag the layer's first */
template <typename E, int GROUP>
static __device__ __forceinline__ void attend(struct pipeline *pipe, unsigned l, float *scratch,
                                              const float2 *angles, unsigned tag,
                                              const struct one_arguments &p) {
    const struct split_item *item = &pipe->plan->item;
    if (!item->active) {
        return;
    }
    unsigned lanes = p.HS / VECTOR_ELEMENTS<E>, of_warp = GROUP * one_partial_floats(p.HS);
    size_t head = ((size_t)l * p.T + (unsigned)p.position) * p.KVH + item->head, row = head * p.HS;
    E *here = (E *)(scratch + GROUP * p.HS);
    struct newest<E> newest = {
        here, here + p.HS, (E *)p.k + row, (E *)p.v + row, p.scales + head
    };
    float *partials = scratch + (GROUP + 2) * p.HS;
    struct online_softmax<VECTOR_ELEMENTS<E>> state[GROUP] = {};
    struct held_newest held = {};
    rotate_queries<GROUP>(scratch, angles, item->team, tag + ONE_TAG_QKV, p);
    if (item->has_newest) {
        read_newest(&held, newest, angles, item->head, tag + ONE_TAG_QKV, p);
    }
    __syncthreads();
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        state[g].max = ONE_NO_SCORE;
    }
    struct lane_queries<E, GROUP> q = lane_queries_of<E, GROUP, true>(scratch, lanes, p.HS);
    if constexpr (ONE_KEYS_HAVE_SCALES) {
        if (item->has_newest) {
            attend_held<GROUP>(held, newest, scratch, partials + ONE_WARPS * of_warp, p);
        }
    }
    attend_keys<E, GROUP>(state, pipe, q, lanes, item->splits > 1 ? p.held_back : 0, p);
    if constexpr (!ONE_KEYS_HAVE_SCALES) {
        if (item->has_newest) {
            attend_newest<E, GROUP>(state, q, (const uint4 *)here, lanes);
        }
    }
    if ((partials_present(item) >> threadIdx.x / 32 & 1) != 0) {
        store_partials<E, GROUP>(partials + threadIdx.x / 32 * of_warp, state, lanes, p.HS);
    }
    __syncthreads();
    publish_partials<GROUP>(item, partials, tag, p);
    __syncthreads(); /* scratch may be overwritten */
}

#endif
