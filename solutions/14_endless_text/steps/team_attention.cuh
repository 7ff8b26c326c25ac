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
#include <stdint.h>

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/14_endless_text/steps/places.cuh"

enum {
    TEAM_THREADS = 256,
    TEAM_WARPS = TEAM_THREADS / 32,
    CHANNELS = 8, /* of a lane */
    KEYS = 4,     /* of a team in flight */
    RESTART = 32, /* keys of a team from one table lookup to the next */
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

struct team_shared {
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

/* The lane's channels of the query head, at distance 0, in units of log 2; 0 behind the head. */
static __device__ __forceinline__ struct turned load_query(const struct endless_attention &a,
                                                           int head, int c) {
    struct turned t;
    const float *q = a.q + head * a.HS;
    float scale = 1.44269504f / sqrtf((float)a.HS);
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        bool rotates = c + i < (int)a.rotary;
        struct partner p = {0, 0, 0.0f};
        if (rotates) {
            p = partner_of(c + i, a);
        }
        t.q[i] = c + i < (int)a.HS ? scale * q[c + i] : 0.0f;
        t.p[i] = rotates ? scale * p.sign * q[p.other] : 0.0f;
    }
    return t;
}

/* (cosine, sine) by place for the lane's channels; channels that are not rotated have (1, 0). */
static __device__ __forceinline__ void
load_angles(float2 angles[CHANNELS], const struct endless_attention &a, int place, int c) {
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        angles[i] = make_float2(1.0f, 0.0f);
        if (c + i < (int)a.rotary) {
            angles[i] = angle_of(place, partner_of(c + i, a).pair, a);
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

/* 8 channels from `from` on as stored; behind `left` ones they are 0. VECTOR: left is 8 or more, or
   less than 1, and addresses are multiples of 16. */
template <typename E, bool VECTOR>
static __device__ __forceinline__ void load_channels(float to[CHANNELS], const E *from, int left) {
    constexpr int WIDE = VECTOR ? VECTOR_ELEMENTS<E> : CHANNELS;
#pragma unroll
    for (int i = 0; i < CHANNELS; i += WIDE) {
        if (VECTOR) {
            uint4 piece = make_uint4(0, 0, 0, 0);
            if (left > 0) {
                piece = *(const uint4 *)(from + i);
            }
            unpack(piece, to + i, E());
        }
#pragma unroll
        for (int j = i; j < (VECTOR ? 0 : i + WIDE); j++) {
            to[j] = j < left ? to_float(from[j]) : 0.0f;
        }
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

/* Online softmax update by one key; score -INFINITY: none. */
static __device__ __forceinline__ void update(struct running *r, float score,
                                              const float v[CHANNELS]) {
    if (score == -INFINITY) {
        return;
    }
    float larger = fmaxf(r->max, score);
    float rescale = exp2f(r->max - larger), weight = exp2f(score - larger);
    r->max = larger;
    r->sum = r->sum * rescale + weight;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        r->out[i] = r->out[i] * rescale + weight * v[i];
    }
}

/* Attention over the places first .. end - 1 of the task. */
template <typename E, bool VECTOR, int GROUP>
static __device__ __forceinline__ void
attend_places(struct running state[GROUP], const struct endless_attention &a,
              const struct places &p, const struct team_task &t, int lanes) {
    size_t stride = a.KVH * a.HS, head = t.key_head * a.HS + t.c;
    int left = (int)a.HS - t.c;
    float2 step[CHANNELS];
    load_angles(step, a, min(t.teams, p.seen - 1), t.c);
    for (int base = t.first; base < t.end; base += RESTART * t.teams) {
        struct turned q[GROUP];
        float2 start[CHANNELS];
        load_angles(start, a, max(p.seen - 1 - base - t.team, 0), t.c);
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            q[g] = load_query(a, t.head + min(g, t.heads - 1), t.c);
            turn(&q[g], start, 1.0f);
        }
        int end = min(base + RESTART * t.teams, t.end);
        for (int s = base + t.team; s - t.team < end; s += KEYS * t.teams) {
            float k[KEYS][CHANNELS], v[KEYS][CHANNELS];
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
                bool valid = s + i * t.teams < end;
                size_t row = (valid ? ring_row(p, s + i * t.teams) : 0) * stride + head;
                load_channels<E, VECTOR>(k[i], (const E *)a.k + row, valid ? left : 0);
                load_channels<E, VECTOR>(v[i], (const E *)a.v + row, valid ? left : 0);
            }
#pragma unroll
            for (int i = 0; i < KEYS; i++) {
                bool valid = s + i * t.teams < end;
#pragma unroll
                for (int g = 0; g < GROUP; g++) {
                    float score = team_score(q[g], k[i], lanes);
                    update(&state[g], valid ? score : -INFINITY, v[i]);
                    turn(&q[g], step, -1.0f);
                }
            }
        }
    }
}

/* The newest token, by the block's first team; one block also writes its row. */
template <typename E, int GROUP>
static __device__ __forceinline__ void
attend_newest(struct running state[GROUP], const struct endless_attention &a,
              const struct places &p, const struct team_task &t, int lanes) {
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
        float score = team_score(load_query(a, t.head + min(g, t.heads - 1), t.c), k, lanes);
        update(&state[g], t.team == 0 ? score : -INFINITY, v);
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
static __device__ __forceinline__ void store_head(struct team_shared *shared, struct running *r,
                                                  const struct endless_attention &a,
                                                  const struct team_plan &plan,
                                                  const struct team_task &t, int head, bool valid) {
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
static __device__ __forceinline__ void merge_splits(struct team_shared *shared,
                                                    const struct endless_attention &a,
                                                    const struct team_plan &plan,
                                                    const struct team_task &t) {
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

/* ---- The kernel and its launch ---- */

/* Mapping: blocks are (split, bundle), bundles innermost. */
template <typename E, bool VECTOR, int GROUP>
static __global__ void __launch_bounds__(TEAM_THREADS)
    team_kernel(struct endless_attention a, struct team_plan plan) {
    __shared__ struct team_shared shared;
    dependent_launch_begin();
    struct places p = places_of(a);
    struct team_task t = team_task_of<GROUP>(a, plan, p);
    struct running state[GROUP];
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        state[g] = {-INFINITY, 0.0f, {}};
    }
    attend_places<E, VECTOR, GROUP>(state, a, p, t, plan.lanes);
    if (t.has_newest) {
        attend_newest<E, GROUP>(state, a, p, t, plan.lanes);
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        store_head(&shared, &state[g], a, plan, t, t.head + g, g < t.heads);
    }
    if (plan.splits > 1) {
        merge_splits(&shared, a, plan, t);
    }
}

static inline int lanes_of(size_t HS) {
    int lanes = 1;
    while ((size_t)lanes * CHANNELS < HS) {
        lanes *= 2;
    }
    return lanes;
}

/* As many splits as run at a time, have enough places, and fit the workspace. */
static inline int splits_of(const struct endless_attention *a, int bundles) {
    size_t rows = a->sinks + a->window;
    size_t room = (ENDLESS_WORKSPACE_BYTES - COUNTER_BYTES) / sizeof(float) / (a->NH * (a->HS + 2));
    size_t splits = ceil_div((size_t)SPLIT_BLOCKS, (size_t)bundles);
    splits = splits < rows / SPLIT_PLACES ? splits : rows / SPLIT_PLACES;
    splits = splits < room ? splits : room;
    splits = splits < MOST_SPLITS ? splits : MOST_SPLITS;
    return splits > 1 ? (int)splits : 1;
}

template <typename E, int GROUP>
static inline void launch_team(const struct endless_attention &a, const struct team_plan &plan,
                               device_stream stream) {
    dim3 blocks((unsigned)(plan.bundles * plan.splits));
    bool vector = a.HS % CHANNELS == 0 && (uintptr_t)a.k % 16 == 0 && (uintptr_t)a.v % 16 == 0;
    if (vector) {
        launch_dependent<team_kernel<E, true, GROUP>>(blocks, dim3(TEAM_THREADS), 0, stream, a,
                                                      plan);
    } else {
        launch_dependent<team_kernel<E, false, GROUP>>(blocks, dim3(TEAM_THREADS), 0, stream, a,
                                                       plan);
    }
}

/* Attention of steps v3 and v4. @param split whether the places may be split over blocks */
static inline enum status team_attention(const struct endless_attention *attention, void *workspace,
                                         bool split, device_stream stream, struct error *error) {
    enum { GROUP = 4 };
    TRY(endless_attention_check(attention, error));
    const struct endless_attention &a = *attention;
    size_t group = a.NH / a.KVH;
    bool several = group > 1;
    struct team_plan plan = {};
    plan.lanes = lanes_of(a.HS);
    plan.bundles = (int)(a.KVH * ceil_div(group, several ? GROUP : 1));
    plan.splits = split ? splits_of(&a, plan.bundles) : 1;
    plan.counters = (unsigned *)workspace;
    plan.partials = (float *)((char *)workspace + COUNTER_BYTES);
    if (several) {
        FOR_ELEMENT_TYPE(a.dtype, (launch_team<E, GROUP>(a, plan, stream)));
    } else {
        FOR_ELEMENT_TYPE(a.dtype, (launch_team<E, 1>(a, plan, stream)));
    }
    return device_launched("attention", error);
}

#endif
