/**
 * @file attend.cuh
 * @brief Rotary embedding, the cache's new row and attention in one launch, steps v4 to v6.
 *
 * A block has up to GROUP query heads of one key head and a part of the context, so that keys and
 * values are read once for all of them. LANES lanes share a key, 16 bytes (or what a head has) a
 * lane; each such team has its own softmax that goes along, and at the end the teams' results are
 * put together: in the warp, in the block, and, where the context was dealt out, by the block that
 * is done last.
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_ATTEND_CUH_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_ATTEND_CUH_

#include "solutions/09_kv_cache/steps/product.cuh"

enum {
    ATTEND_THREADS = 256,
    ATTEND_WARPS = ATTEND_THREADS / 32,
    ATTEND_CHANNELS = 1024, /* of all heads of a block */
    ATTEND_GROUP = 4,       /* most heads of a block */
    ATTEND_KEYS = 64,       /* a part of the context has at least so many */
    ATTEND_ALONE = 128,     /* so many are one part */
    ATTEND_PARTS = 64,      /* and there are at most so many parts */
};

/* A launch's plan: where the workspace's parts lie, and how blocks are dealt out. */
struct attend {
    struct kv_attention a;
    double log2_theta;
    float *qkv;         /* ((NH + 2 KVH) * HS): the product, not turned */
    unsigned *counters; /* (bundles): parts that are done; 0 at first */
    float *partial;     /* (bundles, splits, GROUP, HS + 2): sums, largest and total of parts */
    unsigned splits;    /* parts of the longest context */
    unsigned bundles;   /* blocks of a part: KVH times those that a key head's query heads take */
};

/* What a team or several have found for one head: sum of weights, and of weights times values. */
template <int CHANNELS> struct mix { float largest, total, values[CHANNELS]; };

/* b's part is added to a's; scores are in units of log 2. */
template <int CHANNELS>
static __device__ __forceinline__ void merge_lanes(struct mix<CHANNELS> *a, int step) {
    float other = __shfl_xor_sync(~0u, a->largest, step);
    float largest = fmaxf(a->largest, other);
    float mine = largest == -INFINITY ? 0.0f : exp2f(a->largest - largest);
    a->largest = largest;
    a->total *= mine;
    a->total += __shfl_xor_sync(~0u, a->total, step);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        a->values[c] *= mine;
        a->values[c] += __shfl_xor_sync(~0u, a->values[c], step);
    }
}

/* Shared memory of a block. */
struct room {
    float2 angles[KV_MAX_HS / 2];
    float q[ATTEND_CHANNELS], k[KV_MAX_HS], v[KV_MAX_HS];
    float values[ATTEND_WARPS][ATTEND_CHANNELS];
    float largest[ATTEND_WARPS][ATTEND_GROUP], total[ATTEND_WARPS][ATTEND_GROUP];
    float part_largest[ATTEND_GROUP * ATTEND_PARTS], part_total[ATTEND_GROUP * ATTEND_PARTS];
    bool last;
};

/* What a block works on. */
struct task {
    int head, heads; /* query heads: the first, and how many */
    int key_head;
    int first, end;    /* earlier rows of the cache */
    int split, splits; /* parts that have any rows */
    bool newest;       /* whether the token's own row is in this part */
    bool stores;       /* and whether this block writes it */
};

template <int GROUP> static __device__ __forceinline__ struct task task_of(const struct attend &p) {
    unsigned group = (unsigned)p.a.NH / (unsigned)p.a.KVH, bundle = blockIdx.x % p.bundles;
    unsigned bundles_a_key = p.bundles / (unsigned)p.a.KVH, part = bundle % bundles_a_key;
    int position = *p.a.position, most = (int)p.splits;
    int keys = max((position + most) / most, (int)ATTEND_KEYS); /* of position + 1 */
    keys = position < ATTEND_ALONE ? (int)ATTEND_ALONE : keys;
    struct task t;
    t.key_head = (int)(bundle / bundles_a_key);
    t.head = t.key_head * (int)group + (int)part * GROUP;
    t.heads = min(GROUP, (int)(group - part * GROUP));
    t.split = (int)(blockIdx.x / p.bundles);
    t.splits = (position + keys) / keys;
    t.first = t.split * keys;
    t.end = min(t.first + keys, position);
    t.newest = t.split == t.splits - 1;
    t.stores = t.newest && part == 0;
    return t;
}

/* ---- The token's own queries, key and value ---- */

/* Queries, turned and scaled, into room->q; where wanted, the new key and value too, as the cache
   holds them, into the room and the cache. */
template <typename E>
static __device__ void prepare(struct room *room, const struct attend &p, const struct task &t) {
    const struct kv_attention &a = p.a;
    int HS = (int)a.HS, half = HS / 2;
    float scale = 1.44269504f / sqrtf((float)HS); /* 2^x instead of e^x */
    for (int i = threadIdx.x; i < t.heads * half; i += ATTEND_THREADS) {
        struct pair at = pair_of(i % half, a);
        const float *q = p.qkv + (size_t)(t.head + i / half) * HS;
        float2 x = turned(q[at.first], q[at.second], room->angles[i % half]);
        float *to = room->q + i / half * HS;
        to[at.first] = x.x * scale, to[at.second] = x.y * scale;
    }
    if (!t.newest) {
        return;
    }
    size_t row = ((size_t)*a.position * a.KVH + t.key_head) * HS;
    const float *k = p.qkv + (a.NH + t.key_head) * HS, *v = k + a.KVH * HS;
    for (int i = threadIdx.x; i < half; i += ATTEND_THREADS) {
        struct pair at = pair_of(i, a);
        float2 x = turned(k[at.first], k[at.second], room->angles[i]);
        E stored[4];
        store_rounded(&stored[0], x.x), store_rounded(&stored[1], x.y);
        store_rounded(&stored[2], v[at.first]), store_rounded(&stored[3], v[at.second]);
        room->k[at.first] = to_float(stored[0]), room->k[at.second] = to_float(stored[1]);
        room->v[at.first] = to_float(stored[2]), room->v[at.second] = to_float(stored[3]);
        if (t.stores) {
            E *keys = (E *)a.k + row, *values = (E *)a.v + row;
            keys[at.first] = stored[0], keys[at.second] = stored[1];
            values[at.first] = stored[2], values[at.second] = stored[3];
        }
    }
}

/* ---- The context ---- */

/*
 * How a thread streams its team's keys: KEYS of them at a time, TEAMS apart, 16 bytes or CHUNKS
 * times that of each key and value, on their way into registers while those before are worked on.
 * Heads that do not begin 16-byte aligned are loaded when needed.
 */
template <typename E, int LANES, int CHUNKS, bool VECTOR, int GROUP> struct stream {
    static constexpr int WIDE = VECTOR_ELEMENTS<E>, CHANNELS = CHUNKS * WIDE;
    static constexpr int KEYS = GROUP > 1 || CHUNKS > 1 ? 2 : 4, TEAMS = ATTEND_THREADS / LANES;
    static constexpr int STEP = KEYS * TEAMS;

    const E *k, *v;
    size_t stride;
    int HS, end;
    uint4 keys[KEYS][CHUNKS], values[KEYS][CHUNKS];

    __device__ __forceinline__ stream(const struct kv_attention &a, const struct task &t) {
        k = (const E *)a.k + t.key_head * a.HS, v = (const E *)a.v + t.key_head * a.HS;
        stride = a.KVH * a.HS;
        HS = (int)a.HS, end = t.end;
    }

    /* The first channel of the lane's chunk of a head. */
    static __device__ __forceinline__ int channel(int chunk) {
        return (int)(threadIdx.x % LANES + chunk * LANES) * WIDE;
    }

    /* Key i of those that begin with `first`. */
    static __device__ __forceinline__ int key(int first, int i) {
        return first + (int)threadIdx.x / LANES + i * TEAMS;
    }

    static __device__ __forceinline__ void load(uint4 to[KEYS][CHUNKS], const E *from,
                                                size_t stride, int HS, int first, int end) {
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                to[i][c] = make_uint4(0, 0, 0, 0);
                if (key(first, i) < end && channel(c) < HS) {
                    to[i][c] = __ldcs((const uint4 *)(from + key(first, i) * stride + channel(c)));
                }
            }
        }
    }

    __device__ __forceinline__ void ask(int first) {
        if (VECTOR) {
            load(keys, k, stride, HS, first, end);
            load(values, v, stride, HS, first, end);
        }
    }

    /* Key i's and its value's channels; zeros where there are none. */
    __device__ __forceinline__ void get(float key_to[CHANNELS], float value_to[CHANNELS], int first,
                                        int i) const {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (VECTOR) {
                unpack(keys[i][c], key_to + c * WIDE, E());
                unpack(values[i][c], value_to + c * WIDE, E());
            }
#pragma unroll
            for (int j = 0; !VECTOR && j < WIDE; j++) {
                bool there = key(first, i) < end && channel(c) + j < HS;
                size_t at = key(first, i) * stride + channel(c) + j;
                key_to[c * WIDE + j] = there ? to_float(k[at]) : 0.0f;
                value_to[c * WIDE + j] = there ? to_float(v[at]) : 0.0f;
            }
        }
    }
};

/* Takes KEYS keys, with `there` of them, into the softmax of one head. */
template <int LANES, int KEYS, int CHANNELS>
static __device__ __forceinline__ void take(struct mix<CHANNELS> *m, const float q[CHANNELS],
                                            const float k[KEYS][CHANNELS],
                                            const float v[KEYS][CHANNELS], const bool there[KEYS]) {
    float scores[KEYS], largest = m->largest;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float sum = 0.0f;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            sum += q[c] * k[i][c];
        }
        sum = warp_sum<LANES>(sum);
        scores[i] = there[i] ? sum : -INFINITY;
        largest = fmaxf(largest, scores[i]);
    }
    if (largest == -INFINITY) {
        return;
    }
    float fade = exp2f(m->largest - largest);
    m->largest = largest;
    m->total *= fade;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        m->values[c] *= fade;
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float weight = exp2f(scores[i] - largest);
        m->total += weight;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            m->values[c] += weight * v[i][c];
        }
    }
}

/* The lane's channels of the block's queries, and softmaxes that have seen no key yet. */
template <typename S, int GROUP>
static __device__ __forceinline__ void begin_heads(float (*q)[S::CHANNELS],
                                                   struct mix<S::CHANNELS> m[GROUP],
                                                   const struct room &room, int heads, int HS) {
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        m[g].largest = -INFINITY, m[g].total = 0.0f;
#pragma unroll
        for (int c = 0; c < S::CHANNELS; c++) {
            int channel = S::channel(c / S::WIDE) + c % S::WIDE;
            bool there = g < heads && channel < HS;
            q[g][c] = there ? room.q[g * HS + channel] : 0.0f;
            m[g].values[c] = 0.0f;
        }
    }
}

/* Takes the task's earlier rows of the cache; the first ones have been asked for. */
template <typename S, int LANES, int GROUP>
static __device__ __forceinline__ void take_context(struct mix<S::CHANNELS> m[GROUP],
                                                    const float (*q)[S::CHANNELS], S *s,
                                                    const struct task &t) {
    for (int first = t.first; first < t.end; first += S::STEP) {
        float k[S::KEYS][S::CHANNELS], v[S::KEYS][S::CHANNELS];
        bool there[S::KEYS];
#pragma unroll
        for (int i = 0; i < S::KEYS; i++) {
            s->get(k[i], v[i], first, i);
            there[i] = S::key(first, i) < t.end;
        }
        s->ask(first + S::STEP); /* the next ones are on their way */
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            take<LANES, S::KEYS, S::CHANNELS>(&m[g], q[g], k, v, there);
        }
    }
}

/* ---- Putting results together ---- */

/* Takes the token's own key and value. A whole warp calls it, for its shuffles; the first team of
   it counts. */
template <typename S, int LANES, int GROUP>
static __device__ __forceinline__ void take_newest(struct mix<S::CHANNELS> m[GROUP],
                                                   const float (*q)[S::CHANNELS],
                                                   const struct room &room, int HS) {
    float k[1][S::CHANNELS], v[1][S::CHANNELS];
    bool there[1] = {threadIdx.x < LANES};
#pragma unroll
    for (int c = 0; c < S::CHANNELS; c++) {
        int channel = S::channel(c / S::WIDE) + c % S::WIDE;
        k[0][c] = channel < HS ? room.k[channel] : 0.0f;
        v[0][c] = channel < HS ? room.v[channel] : 0.0f;
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        take<LANES, 1, S::CHANNELS>(&m[g], q[g], k, v, there);
    }
}

/* Puts a warp's teams together and leaves the warp's results in the room. */
template <typename S, int LANES, int GROUP>
static __device__ __forceinline__ void
leave_results(struct room *room, struct mix<S::CHANNELS> m[GROUP], int heads, int HS) {
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int step = LANES; step < 32; step *= 2) {
            merge_lanes(&m[g], step);
        }
        if (g < heads && threadIdx.x % 32 < LANES) {
#pragma unroll
            for (int c = 0; c < S::CHANNELS; c++) {
                int channel = S::channel(c / S::WIDE) + c % S::WIDE;
                if (channel < HS) {
                    room->values[warp][g * HS + channel] = m[g].values[c];
                }
            }
            room->largest[warp][g] = m[g].largest;
            room->total[warp][g] = m[g].total;
        }
    }
}

/* The warps' results for head g and channel c, into `m`. */
static __device__ __forceinline__ struct mix<1> merge_warps(const struct room &room, int g, int HS,
                                                            int c) {
    struct mix<1> m = {};
    m.largest = -INFINITY;
    for (int w = 0; w < ATTEND_WARPS; w++) {
        m.largest = fmaxf(m.largest, room.largest[w][g]);
    }
    for (int w = 0; w < ATTEND_WARPS; w++) {
        float share =
            room.largest[w][g] == -INFINITY ? 0.0f : exp2f(room.largest[w][g] - m.largest);
        m.total += share * room.total[w][g];
        m.values[0] += share * room.values[w][g * HS + c];
    }
    return m;
}

/* Where a part leaves its results for a head: sums, then the largest score and the total. */
static __device__ __forceinline__ size_t
part_floats(int HS) {
    return (size_t)HS + 2;
}

/* All parts' results, to out. `parts`: of the first part; the others are `step` apart. */
static __device__ void merge_parts(struct room *room, float *out, const float *parts, size_t step,
                                   const struct task &t, int HS) {
    for (int i = threadIdx.x; i < t.heads * t.splits; i += ATTEND_THREADS) {
        const float *head = parts + i % t.splits * step + i / t.splits * part_floats(HS);
        room->part_largest[i] = __ldcg(head + HS);
        room->part_total[i] = __ldcg(head + HS + 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < t.heads * HS; i += ATTEND_THREADS) {
        const float *largests = room->part_largest + i / HS * t.splits;
        const float *totals = room->part_total + i / HS * t.splits;
        const float *values = parts + i / HS * part_floats(HS) + i % HS;
        float largest = -INFINITY, total = 0.0f, value = 0.0f;
        for (int s = 0; s < t.splits; s++) {
            largest = fmaxf(largest, largests[s]);
        }
#pragma unroll 16
        for (int s = 0; s < t.splits; s++) {
            float share = exp2f(largests[s] - largest);
            total += share * totals[s];
            value += share * __ldcg(values + s * step);
        }
        out[i] = value / total;
    }
}

/* Whether this block is the last of its heads to be done; its results are seen by the others. */
static __device__ __forceinline__ bool done_last(struct room *room, unsigned *counter, int splits) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        room->last = atomicAdd(counter, 1u) == (unsigned)splits - 1;
    }
    __syncthreads();
    __threadfence();
    return room->last;
}

template <int GROUP>
static __device__ void finish(struct room *room, const struct attend &p, const struct task &t) {
    int HS = (int)p.a.HS;
    unsigned bundle = blockIdx.x % p.bundles;
    float *out = p.a.out + (size_t)t.head * HS;
    size_t step = GROUP * part_floats(HS);
    float *parts = p.partial + (size_t)bundle * p.splits * step;
    for (int i = threadIdx.x; i < t.heads * HS; i += ATTEND_THREADS) {
        int g = i / HS, c = i % HS;
        struct mix<1> m = merge_warps(*room, g, HS, c);
        float *own = parts + t.split * step + g * part_floats(HS);
        if (t.splits == 1) {
            out[i] = m.values[0] / m.total;
        } else {
            own[c] = m.values[0];
        }
        if (t.splits > 1 && c == 0) {
            own[HS] = m.largest, own[HS + 1] = m.total;
        }
    }
    if (t.splits > 1 && done_last(room, p.counters + bundle, t.splits)) {
        merge_parts(room, out, parts, step, t, HS);
    }
}

/* ---- The kernel ---- */

/*
 * Grid: splits * bundles, bundles innermost. Blocks of parts that are not there end at once.
 * Bytes: 2 * (*position + 1) * KVH * HS * sizeof(E).
 *
 * Earlier rows of the cache were written by kernels in front of this call's product. That lets this
 * kernel begin only when it has waited for them (product.late), so the rows may be read before the
 * product is done. The same goes for *position.
 */
template <typename E, int LANES, int CHUNKS, bool VECTOR, int GROUP>
static __global__ void __launch_bounds__(ATTEND_THREADS, 2) attend_kernel(struct attend p) {
    typedef struct stream<E, LANES, CHUNKS, VECTOR, GROUP> S;
    __shared__ struct room room;
    struct task t = task_of<GROUP>(p);
    launch_dependent_grids();
    if (t.split >= t.splits) {
        wait_on_dependent_grids(); /* what comes behind relies on it */
        return;
    }
    S s(p.a, t);
    s.ask(t.first);
    for (int i = threadIdx.x; i < (int)p.a.HS / 2; i += ATTEND_THREADS) {
        room.angles[i] = angle_of(i, *p.a.position, (int)p.a.HS, p.log2_theta);
    }
    __syncthreads();
    wait_on_dependent_grids();
    prepare<E>(&room, p, t);
    __syncthreads();

    float q[GROUP][S::CHANNELS];
    struct mix<S::CHANNELS> m[GROUP];
    begin_heads<S, GROUP>(q, m, room, t.heads, (int)p.a.HS);
    take_context<S, LANES, GROUP>(m, q, &s, t);
    if (t.newest && threadIdx.x < 32) {
        take_newest<S, LANES, GROUP>(m, q, room, (int)p.a.HS);
    }
    leave_results<S, LANES, GROUP>(&room, m, t.heads, (int)p.a.HS);
    __syncthreads();
    finish<GROUP>(&room, p, t);
}
#endif
