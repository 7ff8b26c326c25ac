/**
 * @file team_attention.cuh
 * @brief The new row, rotation and attention in one launch: steps v3 and v4.
 *
 * A block has up to GROUP query heads of one key head and a split of the places, so that a key is
 * read once for all of them. A team of lanes has a key, 8 channels (16 bytes in 16-bit types) a
 * lane, and KEYS keys in flight. Each team has an online softmax of its own; teams are merged in
 * the warp, then in the block, then, with several splits, by the block that is done last.
 *
 * Keys are not rotated at all: (R(t) q) (R(s) k) = (R(t - s) q) k, so the query is, by the distance
 * to the key. From one of its keys to the next a team's distance falls by the same number, so the
 * lane rotates its channels of q once more by that angle: four multiply-adds a channel, no table.
 * Each RESTART keys it begins anew from the table, so that roundings do not add up. Since a lane
 * keeps its channels' partners, too, it does not matter which channels are a pair.
 *
 * The new token's key and value come from the arguments, rounded as the cache rounds them; no block
 * reads the row that it gets, which until now was that of the token that leaves.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TEAM_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TEAM_ATTENTION_CUH_

#include <math.h>

#include "common/cuda/convert.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/14_endless_text/steps/places.cuh"

enum {
    TEAM_THREADS = 256,
    TEAM_WARPS = TEAM_THREADS / 32,
    CHANNELS = 8, /* of a lane */
    RESTART = 16, /* keys of a team from one table lookup to the next */
    MOST_SPLITS = 32,
    SPLIT_PLACES = 64,  /* fewest of a split */
    SPLIT_BLOCKS = 256, /* of a launch: splits beyond that do not run at the same time */
    COUNTER_BYTES = 1 << 20,
};

/* A launch's plan. */
struct team_plan {
    int lanes;          /* of a team: a power of 2 with 8 channels each */
    int splits;         /* of the places */
    int bundles;        /* of query heads: blocks of a split */
    unsigned *counters; /* (bundles): splits that are done; 0 between calls */
    float *partials;    /* (NH, splits, HS + 2): output, running max and running sum */
};

/* Online softmax state of a head in a lane. */
struct running {
    float max, sum, out[CHANNELS];
};

/* A lane's channels of a query, rotated by some distance d: q and its partner p are such that at
   distance d + e they are q cos e + p sin e and p cos e - q sin e. */
struct turned {
    float q[CHANNELS], p[CHANNELS];
};

/* Shared memory of a block. */
template <int GROUP> struct team_shared {
    float q[GROUP][ENDLESS_MAX_HS], p[GROUP][ENDLESS_MAX_HS]; /* queries and partners, distance 0 */
    int pair[ENDLESS_MAX_HS];                                 /* -1: not rotated */
    float out[TEAM_WARPS][ENDLESS_MAX_HS];
    float max[TEAM_WARPS], sum[TEAM_WARPS];
    bool last;
};

/* What a block and a lane have to do. */
struct team_task {
    int head, heads, key_head; /* query heads: the first, and their number */
    int split, first, end;     /* places, but for the newest */
    bool has_newest, writes_newest;
    int c;    /* the lane's first channel */
    int team; /* of the block */
    int teams;
};

template <int GROUP>
static __device__ __forceinline__ struct team_task team_task_of(const struct endless_attention &a,
                                                                const struct team_plan &plan,
                                                                const struct places &p) {
    int group = (int)(a.NH / a.KVH), bundle = blockIdx.x % plan.bundles;
    int of_key = plan.bundles / (int)a.KVH, part = bundle % of_key;
    int places = (p.seen + plan.splits - 1) / plan.splits;
    struct team_task t;
    t.key_head = bundle / of_key;
    t.head = t.key_head * group + part * GROUP;
    t.heads = min(GROUP, group - part * GROUP);
    t.split = blockIdx.x / plan.bundles;
    t.first = min(t.split * places, p.seen - 1);
    t.end = min(t.first + places, p.seen - 1);
    t.has_newest = t.split == (p.seen - 1) / places;
    t.writes_newest = t.has_newest && part == 0;
    t.c = (int)threadIdx.x % plan.lanes * CHANNELS;
    t.team = (int)threadIdx.x / plan.lanes;
    t.teams = TEAM_THREADS / plan.lanes;
    return t;
}

/* The block's queries at distance 0, in units of log 2, and which channels are pairs; 0 behind a
   head. */
template <int GROUP>
static __device__ __forceinline__ void load_queries(struct team_shared<GROUP> *shared,
                                                    const struct endless_attention &a,
                                                    const struct team_task &t) {
    float scale = 1.44269504f / sqrtf((float)a.HS);
    for (int i = threadIdx.x; i < GROUP * (int)ENDLESS_MAX_HS; i += TEAM_THREADS) {
        int g = i / (int)ENDLESS_MAX_HS, c = i % (int)ENDLESS_MAX_HS;
        const float *q = a.q + (t.head + min(g, t.heads - 1)) * a.HS;
        struct partner p = {-1, 0, 0.0f};
        if (c < (int)a.rotary) {
            p = partner_of(c, a);
        }
        shared->q[g][c] = c < (int)a.HS ? scale * q[c] : 0.0f;
        shared->p[g][c] = p.pair >= 0 ? scale * p.sign * q[p.other] : 0.0f;
        if (g == 0) {
            shared->pair[c] = p.pair;
        }
    }
    __syncthreads();
}

/* (cosine, sine) by place for the lane's channels; channels that are not rotated have (1, 0). */
static __device__ __forceinline__ void load_angles(float2 angles[CHANNELS], const int *pair,
                                                   const struct endless_attention &a, int place) {
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        angles[i] = make_float2(1.0f, 0.0f);
        if (pair[i] >= 0) {
            angles[i] = angle_of(place, pair[i], a);
        }
    }
}

static __device__ __forceinline__ void turn(struct turned *t, const float2 angles[CHANNELS],
                                            float sign) {
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        float cosine = angles[i].x, sine = sign * angles[i].y, q = t->q[i];
        t->q[i] = q * cosine + t->p[i] * sine;
        t->p[i] = t->p[i] * cosine - q * sine;
    }
}

/* 8 channels as stored, from `from` on; zeros unless `valid`. */
template <typename E> struct raw {
    static constexpr int WIDE = VECTOR_ELEMENTS<E>, PIECES = CHANNELS / WIDE;
    uint4 pieces[PIECES];

    __device__ __forceinline__ void load(const E *from, bool valid) {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            pieces[i] = make_uint4(0, 0, 0, 0);
            if (valid) {
                pieces[i] = *(const uint4 *)(from + i * WIDE);
            }
        }
    }

    __device__ __forceinline__ void unpacked(float to[CHANNELS]) const {
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            unpack(pieces[i], to + i * WIDE, E());
        }
    }
};

/* The same one by one, for heads that do not begin at multiples of 16 bytes. */
template <typename E>
static __device__ __forceinline__ void load_channels(float to[CHANNELS], const E *from, int left) {
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        to[i] = i < left ? to_float(from[i]) : 0.0f;
    }
}

/* The team's score of a key, in all of its lanes. */
static __device__ __forceinline__ float team_score(const struct turned &t, const float k[CHANNELS],
                                                   int lanes) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        sum += t.q[i] * k[i];
    }
    for (int step = lanes / 2; step > 0; step /= 2) {
        sum += __shfl_xor_sync(~0u, sum, step);
    }
    return sum;
}

/* Online softmax: room for scores up to `score`. @return whether there is any */
static __device__ __forceinline__ bool raise(struct running *r, float score) {
    float larger = fmaxf(r->max, score);
    if (larger == -INFINITY) {
        return false;
    }
    float rescale = exp2f(r->max - larger);
    r->max = larger;
    r->sum *= rescale;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        r->out[i] *= rescale;
    }
    return true;
}

/* Adds a value by its score, which raise() has made room for; -INFINITY: none. */
static __device__ __forceinline__ void add_value(struct running *r, float score,
                                                 const float v[CHANNELS]) {
    float weight = exp2f(score - r->max);
    r->sum += weight;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        r->out[i] += weight * v[i];
    }
}

/* A team's keys and values in flight: KEYS places, `teams` apart. */
template <typename E, bool VECTOR, int KEYS> struct in_flight {
    int at[KEYS]; /* the lane's first channel in the cache, below 2^30; -1: no such place */
    struct raw<E> keys[KEYS], values[KEYS];

    __device__ __forceinline__ void load(const struct endless_attention &a, const struct places &p,
                                         const struct team_task &t, int s) {
        int stride = (int)(a.KVH * a.HS), head = t.key_head * (int)a.HS + t.c;
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            int place = s + i * t.teams;
            at[i] = place < t.end ? ring_row(p, place) * stride + head : -1;
            bool valid = at[i] >= 0 && t.c < (int)a.HS;
            if (VECTOR) {
                keys[i].load((const E *)a.k + at[i], valid);
                values[i].load((const E *)a.v + at[i], valid);
            }
        }
    }

    __device__ __forceinline__ void key(float to[CHANNELS], int i, const E *from, int left) const {
        VECTOR ? keys[i].unpacked(to) : load_channels(to, from + at[i], at[i] >= 0 ? left : 0);
    }

    __device__ __forceinline__ void value(float to[CHANNELS], int i, const E *from,
                                          int left) const {
        VECTOR ? values[i].unpacked(to) : load_channels(to, from + at[i], at[i] >= 0 ? left : 0);
    }
};

/* The block's queries, turned to the distance of the key at place s. */
template <int GROUP>
static __device__ __forceinline__ void
turn_to(struct turned q[GROUP], const struct team_shared<GROUP> &shared,
        const struct endless_attention &a, const struct places &p, const struct team_task &t,
        int s) {
    float2 angles[CHANNELS];
    asm volatile("" ::: "memory"); /* here, not before the loop: registers are short */
    load_angles(angles, shared.pair + t.c, a, max(p.seen - 1 - s, 0));
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int i = 0; i < CHANNELS; i++) {
            q[g].q[i] = shared.q[g][t.c + i], q[g].p[i] = shared.p[g][t.c + i];
        }
        turn(&q[g], angles, 1.0f);
    }
}

/* Attention over the places first .. end - 1 of the task. */
template <typename E, bool VECTOR, int GROUP>
static __device__ __forceinline__ void
attend_places(struct running state[GROUP], const struct team_shared<GROUP> &shared,
              const struct endless_attention &a, const struct places &p, const struct team_task &t,
              int lanes) {
    constexpr int KEYS = sizeof(E) == 4 ? 2 : 4;
    int left = (int)a.HS - t.c, round = 0;
    float2 step[CHANNELS];
    struct turned q[GROUP];
    load_angles(step, shared.pair + t.c, a, min(t.teams, p.seen - 1));
    for (int s = t.first + t.team; s - t.team < t.end; s += KEYS * t.teams, round++) {
        struct in_flight<E, VECTOR, KEYS> flight;
        float scores[GROUP][KEYS], largest[GROUP];
        flight.load(a, p, t, s);
        if (round % (RESTART / KEYS) == 0) {
            turn_to<GROUP>(q, shared, a, p, t, s);
        }
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float k[CHANNELS];
            flight.key(k, i, (const E *)a.k, left);
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                float score = team_score(q[g], k, lanes);
                scores[g][i] = flight.at[i] >= 0 ? score : -INFINITY;
                largest[g] = i == 0 ? scores[g][i] : fmaxf(largest[g], scores[g][i]);
                turn(&q[g], step, -1.0f);
            }
        }
        bool any[GROUP];
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            any[g] = raise(&state[g], largest[g]);
        }
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float v[CHANNELS];
            flight.value(v, i, (const E *)a.v, left);
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                if (any[g]) {
                    add_value(&state[g], scores[g][i], v);
                }
            }
        }
    }
}

/* The newest token, by the block's first team; one block also writes its row. */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_newest(struct running state[GROUP], const struct team_shared<GROUP> &shared,
              const struct endless_attention &a, const struct places &p, const struct team_task &t,
              int lanes) {
    size_t head = t.key_head * a.HS + t.c;
    size_t row = ring_row(p, p.seen - 1) * a.KVH * a.HS + head;
    float k[CHANNELS], v[CHANNELS];
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        bool valid = t.c + i < (int)a.HS;
        E key = from_float<E>(valid ? a.k_new[head + i] : 0.0f);
        E value = from_float<E>(valid ? a.v_new[head + i] : 0.0f);
        k[i] = to_float(key), v[i] = to_float(value);
        if (valid && t.team == 0 && t.writes_newest) {
            ((E *)a.k)[row + i] = key;
            ((E *)a.v)[row + i] = value;
        }
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        struct turned q;
#pragma unroll
        for (int i = 0; i < CHANNELS; i++) {
            q.q[i] = shared.q[g][t.c + i];
        }
        float score = team_score(q, k, lanes);

        if (t.team == 0 && raise(&state[g], score)) {
            add_value(&state[g], score, v);
        }
    }
}

/* ---- Merging ---- */

/* Merges the state of the lane `step` away. */
static __device__ __forceinline__ void merge_lanes(struct running *r, int step) {
    float larger = fmaxf(r->max, __shfl_xor_sync(~0u, r->max, step));
    float rescale = larger == -INFINITY ? 0.0f : exp2f(r->max - larger);
    r->max = larger;
    r->sum *= rescale;
    r->sum += __shfl_xor_sync(~0u, r->sum, step);
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        r->out[i] *= rescale;
        r->out[i] += __shfl_xor_sync(~0u, r->out[i], step);
    }
}

/* From shared memory, or from device memory that other blocks wrote: that is in L2. */
template <bool SHARED> static __device__ __forceinline__ float part_of(const float *from) {
    return SHARED ? *from : __ldcg(from);
}

/* Merges parts, each with max and sum: result, max and sum for one channel. */
template <bool SHARED>
static __device__ __forceinline__ float3 merge_parts(const float *out, size_t out_step,
                                                     const float *max, const float *sum,
                                                     size_t step, int parts) {
    float3 merged = make_float3(0.0f, -INFINITY, 0.0f);
    for (int i = 0; i < parts; i++) {
        merged.y = fmaxf(merged.y, part_of<SHARED>(max + i * step));
    }
    for (int i = 0; i < parts; i++) {
        float own = part_of<SHARED>(max + i * step);
        float share = own == -INFINITY ? 0.0f : exp2f(own - merged.y);
        merged.x += share * part_of<SHARED>(out + i * out_step);
        merged.z += share * part_of<SHARED>(sum + i * step);
    }
    return merged;
}

/* One head's result of the block: to out, or to the partials with several splits. */
template <int GROUP>
static __device__ __forceinline__ void
store_head(struct team_shared<GROUP> *shared, struct running *r, const struct endless_attention &a,
           const struct team_plan &plan, const struct team_task &t, int head, bool valid) {
    int warp = threadIdx.x / 32, HS = (int)a.HS;
    for (int step = plan.lanes; step < 32; step *= 2) {
        merge_lanes(r, step);
    }
    __syncthreads(); /* the head before has been read */
    if ((int)threadIdx.x % 32 < plan.lanes) {
#pragma unroll
        for (int i = 0; i < CHANNELS; i++) {
            if (t.c + i < HS) {
                shared->out[warp][t.c + i] = r->out[i];
            }
        }
        shared->max[warp] = r->max;
        shared->sum[warp] = r->sum;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < HS && valid; c += TEAM_THREADS) {
        float3 all = merge_parts<true>(&shared->out[0][c], ENDLESS_MAX_HS, shared->max, shared->sum,
                                       1, TEAM_WARPS);
        if (plan.splits == 1) {
            a.out[head * a.HS + c] = all.x / all.z;
            continue;
        }
        float *partial = plan.partials + ((size_t)head * plan.splits + t.split) * (HS + 2);
        partial[c] = all.x;
        if (c == 0) {
            partial[HS] = all.y, partial[HS + 1] = all.z;
        }
    }
}

/* The block of a bundle that is done last merges the splits, and sets the counter back. */
template <int GROUP>
static __device__ __forceinline__ void
merge_splits(struct team_shared<GROUP> *shared, const struct endless_attention &a,
             const struct team_plan &plan, const struct team_task &t) {
    unsigned *counter = plan.counters + blockIdx.x % plan.bundles;
    __threadfence(); /* this block's partials come before its count */
    __syncthreads();
    if (threadIdx.x == 0) {
        shared->last = atomicAdd(counter, 1) == (unsigned)plan.splits - 1;
    }
    __syncthreads();
    if (!shared->last) {
        return;
    }
    __threadfence();
    int HS = (int)a.HS;
    for (int i = threadIdx.x; i < t.heads * HS; i += TEAM_THREADS) {
        int head = t.head + i / HS, c = i % HS;
        const float *part = plan.partials + (size_t)head * plan.splits * (HS + 2);
        float3 all =
            merge_parts<false>(part + c, HS + 2, part + HS, part + HS + 1, HS + 2, plan.splits);
        a.out[head * a.HS + c] = all.x / all.z;
    }
    if (threadIdx.x == 0) {
        *counter = 0;
    }
}

/* ---- The kernel ---- */

/* Mapping: blocks are (split, bundle), bundles innermost. */
template <typename E, bool VECTOR, int GROUP>
static __global__ void __launch_bounds__(TEAM_THREADS, GROUP == 1 ? 2 : 1)
    team_kernel(struct endless_attention a, struct team_plan plan) {
    __shared__ struct team_shared<GROUP> shared;
    dependent_launch_begin();
    struct places p = places_of(a);
    struct team_task t = team_task_of<GROUP>(a, plan, p);
    struct running state[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        state[g] = {-INFINITY, 0.0f, {}};
    }
    load_queries<GROUP>(&shared, a, t);
    attend_places<E, VECTOR, GROUP>(state, shared, a, p, t, plan.lanes);
    if (t.has_newest) {
        attend_newest<E, GROUP>(state, shared, a, p, t, plan.lanes);
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        store_head(&shared, &state[g], a, plan, t, t.head + g, g < t.heads);
    }
    if (plan.splits > 1) {
        merge_splits(&shared, a, plan, t);
    }
}

#endif
