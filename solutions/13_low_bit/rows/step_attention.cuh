/**
 * @file step_attention.cuh
 * @brief Attention in the step of several texts: eight warps have a head of a text, and its whole
 * context. The arithmetic is d8's.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_ATTENTION_CUH_

#include "solutions/10_llama2_decoder/steps/d8_attention.cuh"
#include "solutions/13_low_bit/rows/step_arguments.cuh"

enum {
    TEAM_WARPS = ONE_WARPS,
    TEAM_THREADS = ONE_THREADS,
    TEAMS = STEP_TEAMS,
    TEAM_KEYS = 1,    /* that a lane has at a time */
    TEAM_BARRIERS = 3 /* of an item */
};

/* Shared memory of a team. */
struct __align__(16) team_shared {
    float q[ONE_MAX_HS];
    int8_t key[ONE_MAX_HS], value[ONE_MAX_HS];
    float2 scale;
    float partials[TEAM_WARPS * (ONE_MAX_HS + 2)];
};

/* A query head of a text. */
struct team_item {
    unsigned text, query, head; /* head of its keys */
    unsigned position;
    size_t row; /* of the context's first key of the head in the cache */
};

/* A team's first item, in shared memory: the same in all layers. */
struct __align__(16) team_first {
    float2 angles[ONE_MAX_HS / 2]; /* of its text's position */
    struct team_item item;         /* of layer 0 */
};

/* An item in layer 0. */
static __device__ __forceinline__ struct team_item item_of(unsigned item,
                                                           const struct step_arguments &p) {
    struct team_item t;
    t.text = item / p.NH;
    t.query = item % p.NH;
    t.head = t.query / (p.NH / p.KVH);
    t.position = (unsigned)p.positions[t.text];
    t.row = (size_t)t.text * p.L * p.T * p.KVH + t.head;
    return t;
}

/* The number of the team's first item. */
static __device__ __forceinline__ unsigned first_item() {
    return blockIdx.x + threadIdx.x / TEAM_THREADS * gridDim.x;
}

/* @param first (TEAMS) */
static __device__ __forceinline__ void share_items(struct team_first *first,
                                                   const struct step_arguments &p) {
    struct team_first *own = first + threadIdx.x / TEAM_THREADS;
    if (first_item() < p.rows * p.NH) {
        const struct team_item t = item_of(first_item(), p);
        unsigned i = threadIdx.x % TEAM_THREADS; /* HS / 2 <= TEAM_THREADS */
        if (i < p.HS / 2) {
            own->angles[i] = p.angles[(size_t)t.position * (p.HS / 2) + i];
        }
        if (i == 0) {
            own->item = t;
        }
    }
}

/* All threads of the team. Barriers' numbers are literals: in a register, a number would occupy all
 * sixteen barriers. */
static __device__ __forceinline__ void team_barrier() {
    static_assert(TEAMS == 2 && TEAMS * TEAM_WARPS == STEP_WARPS, "a barrier each");
    if (threadIdx.x < TEAM_THREADS) {
        asm volatile("bar.sync 1, %0;" ::"n"((int)TEAM_THREADS) : "memory");
    } else {
        asm volatile("bar.sync 2, %0;" ::"n"((int)TEAM_THREADS) : "memory");
    }
}

/* COUNT values of qkv at the places `at`, as soon as all have been published. */
template <int COUNT>
static __device__ __forceinline__ void wait_for_values(float x[COUNT], const unsigned at[COUNT],
                                                       unsigned flag,
                                                       const struct step_arguments &p) {
    unsigned read[COUNT], missing;
    do {
        missing = 0;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            read[i] = read_value(p.qkv, at[i]);
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            missing |= read[i] ^ flag;
        }
    } while ((missing & 1) != 0);
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        x[i] = __uint_as_float(read[i]);
    }
}

static __device__ __forceinline__ uint2 pair_channels(unsigned i, const struct step_arguments &p) {
    return p.rope_halves ? make_uint2(i, i + p.HS / 2) : make_uint2(2 * i, 2 * i + 1);
}

/* The query, rotated, and scaled for exp2f. */
static __device__ __forceinline__ void rotate_query(struct team_shared *s,
                                                    const struct team_item &t, const float2 *angles,
                                                    unsigned flag, const struct step_arguments &p) {
    float scale = 1.44269504f * rsqrtf((float)p.HS);
    unsigned first = (t.text * (p.NH + 2 * p.KVH) + t.query) * p.HS;
    unsigned i = threadIdx.x % TEAM_THREADS; /* HS / 2 <= TEAM_THREADS */
    if (i < p.HS / 2) {
        uint2 at = pair_channels(i, p);
        float2 angle = angles[i];
        float x[2];
        const unsigned places[2] = {first + at.x, first + at.y};
        wait_for_values<2>(x, places, flag, p);
        float2 y = rotated(make_float2(x[0], x[1]), angle);
        s->q[at.x] = y.x * scale;
        s->q[at.y] = y.y * scale;
    }
}

/* The token's key, or its value: two warps of a team round one each; teams that share them write
 * the same. */
static __device__ __forceinline__ void append_newest(struct team_shared *s,
                                                     const struct team_item &t, bool is_value,
                                                     const float2 *angles, unsigned flag,
                                                     const struct step_arguments &p) {
    enum { PAIRS = ONE_MAX_HS / 2 / 32, AT_ONCE = 2 };
    size_t row = t.row + (size_t)t.position * p.KVH;
    unsigned lane = threadIdx.x % 32;
    unsigned first = (t.text * (p.NH + 2 * p.KVH) + p.NH + t.head) * p.HS;
    float2 y[PAIRS] = {};
    float largest = 0.0f, x[AT_ONCE * 2];
    first += is_value ? p.KVH * p.HS : 0;
#pragma unroll
    for (unsigned j = 0; j < PAIRS; j++) {
        unsigned i = lane + j * 32, places[AT_ONCE * 2];
        const float2 angle = i < p.HS / 2 ? angles[i] : make_float2(0.0f, 0.0f);
        if (j % AT_ONCE == 0 && j * 64 < p.HS) {
#pragma unroll
            for (unsigned next = 0; next < AT_ONCE; next++) { /* behind the head: pair 0 */
                unsigned pair = i + next * 32 < p.HS / 2 ? i + next * 32 : 0;
                const uint2 c = pair_channels(pair, p);
                places[2 * next] = first + c.x, places[2 * next + 1] = first + c.y;
            }
            wait_for_values<AT_ONCE * 2>(x, places, flag, p);
        }
        if (i < p.HS / 2) {
            y[j] = make_float2(x[j % AT_ONCE * 2], x[j % AT_ONCE * 2 + 1]);
            y[j] = is_value ? y[j] : rotated(y[j], angle);
            largest = fmaxf(largest, fmaxf(fabsf(y[j].x), fabsf(y[j].y)));
        }
    }
    float scale = scale_of_key(largest), per_scale = 1.0f / scale;
    float *scale_to = (float *)(p.cache.scales + row) + (is_value ? 1 : 0);
    int8_t *to = (is_value ? p.cache.v : p.cache.k) + row * p.HS;
    int8_t *shared = is_value ? s->value : s->key;
    if (lane == 0) {
        *(is_value ? &s->scale.y : &s->scale.x) = *scale_to = scale;
    }
#pragma unroll
    for (unsigned j = 0; j < PAIRS; j++) {
        unsigned i = lane + j * 32;
        if (i < p.HS / 2) {
            uint2 at = pair_channels(i, p);
            shared[at.x] = to[at.x] = key8_of(y[j].x, scale, per_scale).bits;
            shared[at.y] = to[at.y] = key8_of(y[j].y, scale, per_scale).bits;
        }
    }
}

/* The warp's keys of earlier tokens, from key `first` on. */
static __device__ __forceinline__ struct lane_keys<TEAM_KEYS>
load_keys(const struct team_item &t, unsigned first, unsigned lanes,
          const struct step_arguments &p) {
    unsigned lane = threadIdx.x % 32, at_once = 32 / lanes;
    struct lane_keys<TEAM_KEYS> k;
#pragma unroll
    for (unsigned i = 0; i < TEAM_KEYS; i++) {
        unsigned key = first + i * at_once + lane / lanes;
        k.valid[i] = key < t.position;
        k.key[i] = k.value[i] = make_uint4(0, 0, 0, 0);
        k.scale[i] = make_float2(0.0f, 0.0f);
        if (k.valid[i]) {
            size_t row = t.row + (size_t)key * p.KVH;
            k.key[i] = *(const uint4 *)(p.cache.k + row * p.HS + lane % lanes * 16);
            k.value[i] = *(const uint4 *)(p.cache.v + row * p.HS + lane % lanes * 16);
            k.scale[i] = p.cache.scales[row];
        }
    }
    return k;
}

static __device__ __forceinline__ struct lane_keys<1>
newest_key(const struct team_shared *s, unsigned lanes) {
    unsigned lane = threadIdx.x % 32, at = lane % lanes * 16;
    struct lane_keys<1> k;
    k.key[0] = *(const uint4 *)(s->key + at);
    k.value[0] = *(const uint4 *)(s->value + at);
    k.scale[0] = s->scale;
    k.valid[0] = lane < lanes;
    if (!k.valid[0]) {
        k.value[0] = make_uint4(0, 0, 0, 0);
    }
    return k;
}

/* The team's warps take keys in turn. @param k the first ones, which have come while the team
 * waited for its query */
static __device__ __forceinline__ void
attend_context(struct online_softmax<16> *state, const struct team_shared *s,
               const struct team_item &t, struct lane_keys<TEAM_KEYS> k, unsigned first,
               unsigned lanes, const struct step_arguments &p) {
    unsigned step = TEAM_WARPS * TEAM_KEYS * (32 / lanes);
    const struct lane_queries<key8, 1> q = lane_queries_of<key8, 1>(s->q, lanes, p.HS);
    while (first < t.position) {
        attend_tile<key8, 1>(state, q, k, lanes);
        first += step;
        k = load_keys(t, first, lanes, p);
    }
    if (threadIdx.x % TEAM_THREADS / 32 == TEAM_WARPS - 1) {
        attend_tile<key8, 1>(state, q, newest_key(s, lanes), lanes);
    }
}

/* @param angles of the text's position */
static __device__ __forceinline__ void attend_item(struct team_shared *s, const struct team_item &t,
                                                   const float2 *angles, unsigned flag,
                                                   const struct step_arguments &p) {
    unsigned lanes = p.HS / 16, warp = threadIdx.x % TEAM_THREADS / 32, floats = p.HS + 2;
    unsigned first = warp * TEAM_KEYS * (32 / lanes), channel = threadIdx.x % TEAM_THREADS;
    const struct lane_keys<TEAM_KEYS> k = load_keys(t, first, lanes, p);
    struct online_softmax<16> state = {};
    state.max = ONE_NO_SCORE;
    rotate_query(s, t, angles, flag, p);
    if (warp >= TEAM_WARPS - 2) {
        append_newest(s, t, warp == TEAM_WARPS - 1, angles, flag, p);
    }
    team_barrier();
    attend_context(&state, s, t, k, first, lanes, p);
    store_partials<key8, 1>(s->partials + warp * floats, &state, lanes, p.HS);
    team_barrier();
    if (channel < p.HS) { /* HS <= TEAM_THREADS, a multiple of 32 */
        const struct partial x = merge_warps(s->partials, floats, channel, p.HS);
        float value = x.value / x.sum, second = __shfl_xor_sync(~0u, value, 2);
        if (channel % 4 < 2) {
            publish_pair(p.heads, t.text, t.query * p.HS + channel, value, second, flag);
        }
    }
    team_barrier();
}

/* Attention of layer `layer`. A team without an item synchronises as often as the others: where it
 * does not, compute-sanitizer's racecheck loses track of the block's barriers (../README.md).
 * @param shared, own (TEAMS) */
static __device__ __forceinline__ void attend_texts(struct team_shared *shared,
                                                    const struct team_first *own, unsigned layer,
                                                    unsigned flag, const struct step_arguments &p) {
    unsigned team = threadIdx.x / TEAM_THREADS;
    for (unsigned skipped = 0; blockIdx.x + skipped < p.rows * p.NH; skipped += TEAMS * gridDim.x) {
        unsigned item = first_item() + skipped;
        if (item < p.rows * p.NH) {
            struct team_item t = skipped == 0 ? own[team].item : item_of(item, p);
            const float2 *angles =
                skipped == 0 ? own[team].angles : p.angles + (size_t)t.position * (p.HS / 2);
            t.row += (size_t)layer * p.T * p.KVH;
            attend_item(shared + team, t, angles, flag, p);
        } else {
            for (int i = 0; i < TEAM_BARRIERS; i++) {
                team_barrier();
            }
        }
    }
}

#endif
