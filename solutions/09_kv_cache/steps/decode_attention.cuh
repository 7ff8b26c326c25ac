/**
 * @file decode_attention.cuh
 * @brief Rotary embedding, the cache's new row and attention in one launch, steps v4 to v6.
 *
 * A block has up to GROUP query heads of one key head and a split of the context, so that keys and
 * values are read once for all of them. A team of LANES lanes shares a key, 16 bytes (or less, in
 * short heads) a lane. Each team has an online softmax of its own; at the end the teams' results
 * are merged in the warp, then in the block, and with split-KV by the block that is done last.
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_DECODE_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_DECODE_ATTENTION_CUH_

#include "solutions/09_kv_cache/steps/gemv.cuh"

enum {
    ATTEND_THREADS = 256,
    ATTEND_WARPS = ATTEND_THREADS / 32,
    ATTEND_CHANNELS = 1024,    /* of all heads of a block */
    ATTEND_GROUP = 4,          /* most heads of a block */
    ATTEND_SPLIT_KEYS = 64,    /* fewest keys of a split */
    ATTEND_UNSPLIT_KEYS = 128, /* contexts up to this length are not split */
    ATTEND_SPLITS = 64,        /* most splits */
};

/* A launch's plan: the workspace's layout and the grid's. A bundle is a set of query heads that one
 * block has. */
struct attend {
    struct kv_attention a;
    double log2_theta;
    float *qkv;         /* ((NH + 2 KVH) * HS): the product, not rotated */
    unsigned *counters; /* (bundles): splits that are done; initially 0 */
    float
        *partial; /* (bundles, splits, GROUP, HS + 2): outputs, running max and sum of each split */
    unsigned splits;  /* of the longest context */
    unsigned bundles; /* blocks of a split: KVH times the bundles of a key head */
};

/* Online softmax state of one head: running max, running sum and P V, for one team or several
 * merged. */
template <int CHANNELS> struct online_softmax { float max, sum, values[CHANNELS]; };

/* Merges the state of the lane `step` away; scores are in units of log 2. */
template <int CHANNELS>
static __device__ __forceinline__ void merge_lanes(struct online_softmax<CHANNELS> *a, int step) {
    float other = __shfl_xor_sync(~0u, a->max, step);
    float largest = fmaxf(a->max, other);
    float rescale = largest == -INFINITY ? 0.0f : exp2f(a->max - largest);
    a->max = largest;
    a->sum *= rescale;
    a->sum += __shfl_xor_sync(~0u, a->sum, step);
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        a->values[c] *= rescale;
        a->values[c] += __shfl_xor_sync(~0u, a->values[c], step);
    }
}

/* Shared memory of a block. */
struct attend_shared {
    float2 angles[KV_MAX_HS / 2];
    float q[ATTEND_CHANNELS], k[KV_MAX_HS], v[KV_MAX_HS];
    float values[ATTEND_WARPS][ATTEND_CHANNELS];
    float max[ATTEND_WARPS][ATTEND_GROUP], sum[ATTEND_WARPS][ATTEND_GROUP];
    float split_max[ATTEND_GROUP * ATTEND_SPLITS], split_sum[ATTEND_GROUP * ATTEND_SPLITS];
    bool last;
};

/* A block's work. */
struct task {
    int head, heads; /* query heads: the first, and their number */
    int key_head;
    int first, end;     /* earlier rows of the cache */
    int split, splits;  /* splits that have rows */
    bool has_newest;    /* whether the token's own row is in this split */
    bool writes_newest; /* whether this block writes it to the cache */
};

template <int GROUP> static __device__ __forceinline__ struct task task_of(const struct attend &p) {
    unsigned group = (unsigned)p.a.NH / (unsigned)p.a.KVH, bundle = blockIdx.x % p.bundles;
    unsigned bundles_a_key = p.bundles / (unsigned)p.a.KVH, part = bundle % bundles_a_key;
    int position = *p.a.position, most = (int)p.splits;
    int keys = max((position + most) / most, (int)ATTEND_SPLIT_KEYS); /* of position + 1 */
    keys = position < ATTEND_UNSPLIT_KEYS ? (int)ATTEND_UNSPLIT_KEYS : keys;
    struct task t;
    t.key_head = (int)(bundle / bundles_a_key);
    t.head = t.key_head * (int)group + (int)part * GROUP;
    t.heads = min(GROUP, (int)(group - part * GROUP));
    t.split = (int)(blockIdx.x / p.bundles);
    t.splits = (position + keys) / keys;
    t.first = t.split * keys;
    t.end = min(t.first + keys, position);
    t.has_newest = t.split == t.splits - 1;
    t.writes_newest = t.has_newest && part == 0;
    return t;
}

/* ---- The token's own queries, key and value ---- */

/* shared->q = the queries, rotated and scaled. If the split has the token's own row, rounds its
 * rotated key and its value into shared memory and, in one block, into the cache. */
template <typename E>
static __device__ void prepare(struct attend_shared *shared, const struct attend &p,
                               const struct task &t) {
    const struct kv_attention &a = p.a;
    int HS = (int)a.HS, half = HS / 2;
    float scale = 1.44269504f / sqrtf((float)HS); /* 2^x instead of e^x */
    for (int i = threadIdx.x; i < t.heads * half; i += ATTEND_THREADS) {
        struct pair at = pair_of(i % half, a);
        const float *q = p.qkv + (size_t)(t.head + i / half) * HS;
        float2 x = rotated(q[at.first], q[at.second], shared->angles[i % half]);
        float *to = shared->q + i / half * HS;
        to[at.first] = x.x * scale, to[at.second] = x.y * scale;
    }
    if (!t.has_newest) {
        return;
    }
    size_t row = ((size_t)*a.position * a.KVH + t.key_head) * HS;
    const float *k = p.qkv + (a.NH + t.key_head) * HS, *v = k + a.KVH * HS;
    for (int i = threadIdx.x; i < half; i += ATTEND_THREADS) {
        struct pair at = pair_of(i, a);
        float2 x = rotated(k[at.first], k[at.second], shared->angles[i]);
        E stored[4];
        store_rounded(&stored[0], x.x), store_rounded(&stored[1], x.y);
        store_rounded(&stored[2], v[at.first]), store_rounded(&stored[3], v[at.second]);
        shared->k[at.first] = to_float(stored[0]), shared->k[at.second] = to_float(stored[1]);
        shared->v[at.first] = to_float(stored[2]), shared->v[at.second] = to_float(stored[3]);
        if (t.writes_newest) {
            E *keys = (E *)a.k + row, *values = (E *)a.v + row;
            keys[at.first] = stored[0], keys[at.second] = stored[1];
            values[at.first] = stored[2], values[at.second] = stored[3];
        }
    }
}

/* ---- The context ---- */

/*
 * A thread's stream of its team's keys: KEYS of them at a time, TEAMS apart, CHUNKS times 16 bytes
 of each key and value. The next ones are in flight into registers while the current ones are
 computed. Heads that are not 16-byte aligned are loaded when needed.

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

    /* The first channel of the lane's chunk `chunk` of a head. */
    static __device__ __forceinline__ int channel(int chunk) {
        return (int)(threadIdx.x % LANES + chunk * LANES) * WIDE;
    }

    /* The team's key i of those from `first` on. */
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

    __device__ __forceinline__ void load_next(int first) {
        if (VECTOR) {
            load(keys, k, stride, HS, first, end);
            load(values, v, stride, HS, first, end);
        }
    }

    /* Channels of key i and its value; zeros beyond the last key or channel. */
    __device__ __forceinline__ void unpack_key(float key_to[CHANNELS], float value_to[CHANNELS],
                                               int first, int i) const {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (VECTOR) {
                unpack(keys[i][c], key_to + c * WIDE, E());
                unpack(values[i][c], value_to + c * WIDE, E());
            }
#pragma unroll
            for (int j = 0; !VECTOR && j < WIDE; j++) {
                bool valid = key(first, i) < end && channel(c) + j < HS;
                size_t at = key(first, i) * stride + channel(c) + j;
                key_to[c * WIDE + j] = valid ? to_float(k[at]) : 0.0f;
                value_to[c * WIDE + j] = valid ? to_float(v[at]) : 0.0f;
            }
        }
    }
};

/* Online softmax update of one head by those of KEYS keys that are `valid`. */
template <int LANES, int KEYS, int CHANNELS>
static __device__ __forceinline__ void
update(struct online_softmax<CHANNELS> *state, const float q[CHANNELS],
       const float k[KEYS][CHANNELS], const float v[KEYS][CHANNELS], const bool valid[KEYS]) {
    float scores[KEYS], largest = state->max;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float sum = 0.0f;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            sum += q[c] * k[i][c];
        }
        sum = warp_sum<LANES>(sum);
        scores[i] = valid[i] ? sum : -INFINITY;
        largest = fmaxf(largest, scores[i]);
    }
    if (largest == -INFINITY) {
        return;
    }
    float rescale = exp2f(state->max - largest);
    state->max = largest;
    state->sum *= rescale;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        state->values[c] *= rescale;
    }
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        float weight = exp2f(scores[i] - largest);
        state->sum += weight;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            state->values[c] += weight * v[i][c];
        }
    }
}

/* The lane's channels of the block's queries, and empty softmax states. */
template <typename S, int GROUP>
static __device__ __forceinline__ void
init_heads(float (*q)[S::CHANNELS], struct online_softmax<S::CHANNELS> state[GROUP],
           const struct attend_shared &shared, int heads, int HS) {
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        state[g].max = -INFINITY, state[g].sum = 0.0f;
#pragma unroll
        for (int c = 0; c < S::CHANNELS; c++) {
            int channel = S::channel(c / S::WIDE) + c % S::WIDE;
            bool valid = g < heads && channel < HS;
            q[g][c] = valid ? shared.q[g * HS + channel] : 0.0f;
            state[g].values[c] = 0.0f;
        }
    }
}

/* Attention over the task's earlier rows of the cache, whose first loads have been issued. */
template <typename S, int LANES, int GROUP>
static __device__ __forceinline__ void
attend_context(struct online_softmax<S::CHANNELS> state[GROUP], const float (*q)[S::CHANNELS], S *s,
               const struct task &t) {
    for (int first = t.first; first < t.end; first += S::STEP) {
        float k[S::KEYS][S::CHANNELS], v[S::KEYS][S::CHANNELS];
        bool valid[S::KEYS];
#pragma unroll
        for (int i = 0; i < S::KEYS; i++) {
            s->unpack_key(k[i], v[i], first, i);
            valid[i] = S::key(first, i) < t.end;
        }
        s->load_next(first + S::STEP); /* in flight during the update */
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            update<LANES, S::KEYS, S::CHANNELS>(&state[g], q[g], k, v, valid);
        }
    }
}

/* ---- Merging ---- */

/* Attention over the token's own key. A whole warp calls it, for its shuffles; only its first
 * team's lanes are valid. */
template <typename S, int LANES, int GROUP>
static __device__ __forceinline__ void
attend_newest(struct online_softmax<S::CHANNELS> state[GROUP], const float (*q)[S::CHANNELS],
              const struct attend_shared &shared, int HS) {
    float k[1][S::CHANNELS], v[1][S::CHANNELS];
    bool valid[1] = {threadIdx.x < LANES};
#pragma unroll
    for (int c = 0; c < S::CHANNELS; c++) {
        int channel = S::channel(c / S::WIDE) + c % S::WIDE;
        k[0][c] = channel < HS ? shared.k[channel] : 0.0f;
        v[0][c] = channel < HS ? shared.v[channel] : 0.0f;
    }
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
        update<LANES, 1, S::CHANNELS>(&state[g], q[g], k, v, valid);
    }
}

/* Merges a warp's teams and stores the warp's results in shared memory. */
template <typename S, int LANES, int GROUP>
static __device__ __forceinline__ void
store_results(struct attend_shared *shared, struct online_softmax<S::CHANNELS> state[GROUP],
              int heads, int HS) {
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int g = 0; g < GROUP; g++) {
#pragma unroll
        for (int step = LANES; step < 32; step *= 2) {
            merge_lanes(&state[g], step);
        }
        if (g < heads && threadIdx.x % 32 < LANES) {
#pragma unroll
            for (int c = 0; c < S::CHANNELS; c++) {
                int channel = S::channel(c / S::WIDE) + c % S::WIDE;
                if (channel < HS) {
                    shared->values[warp][g * HS + channel] = state[g].values[c];
                }
            }
            shared->max[warp][g] = state[g].max;
            shared->sum[warp][g] = state[g].sum;
        }
    }
}

/* Merges the warps' results for head g and channel c. */
static __device__ __forceinline__ struct online_softmax<1>
merge_warps(const struct attend_shared &shared, int g, int HS, int c) {
    struct online_softmax<1> state = {};
    state.max = -INFINITY;
    for (int w = 0; w < ATTEND_WARPS; w++) {
        state.max = fmaxf(state.max, shared.max[w][g]);
    }
    for (int w = 0; w < ATTEND_WARPS; w++) {
        float share = shared.max[w][g] == -INFINITY ? 0.0f : exp2f(shared.max[w][g] - state.max);
        state.sum += share * shared.sum[w][g];
        state.values[0] += share * shared.values[w][g * HS + c];
    }
    return state;
}

/* Floats of a split's partial result for a head: outputs, then running max and running sum. */
static __device__ __forceinline__ size_t
partial_floats(int HS) {
    return (size_t)HS + 2;
}

/* Merges all splits' partial results into out. @param partials of the first split; the others are
 * `step` apart */
static __device__ void merge_splits(struct attend_shared *shared, float *out, const float *partials,
                                    size_t step, const struct task &t, int HS) {
    for (int i = threadIdx.x; i < t.heads * t.splits; i += ATTEND_THREADS) {
        const float *head = partials + i % t.splits * step + i / t.splits * partial_floats(HS);
        shared->split_max[i] = __ldcg(head + HS);
        shared->split_sum[i] = __ldcg(head + HS + 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < t.heads * HS; i += ATTEND_THREADS) {
        const float *maxima = shared->split_max + i / HS * t.splits;
        const float *sums = shared->split_sum + i / HS * t.splits;
        const float *values = partials + i / HS * partial_floats(HS) + i % HS;
        float max = -INFINITY, sum = 0.0f, value = 0.0f;
        for (int s = 0; s < t.splits; s++) {
            max = fmaxf(max, maxima[s]);
        }
#pragma unroll 16
        for (int s = 0; s < t.splits; s++) {
            float share = exp2f(maxima[s] - max);
            sum += share * sums[s];
            value += share * __ldcg(values + s * step);
        }
        out[i] = value / sum;
    }
}

/* Publishes the block's partial results. @return whether it is its heads' last block to do so */
static __device__ __forceinline__ bool is_last_split(struct attend_shared *shared,
                                                     unsigned *counter, int splits) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        shared->last = atomicAdd(counter, 1u) == (unsigned)splits - 1;
    }
    __syncthreads();
    __threadfence();
    return shared->last;
}

template <int GROUP>
static __device__ void attend_epilogue(struct attend_shared *shared, const struct attend &p,
                                       const struct task &t) {
    int HS = (int)p.a.HS;
    unsigned bundle = blockIdx.x % p.bundles;
    float *out = p.a.out + (size_t)t.head * HS;
    size_t step = GROUP * partial_floats(HS);
    float *partials = p.partial + (size_t)bundle * p.splits * step;
    for (int i = threadIdx.x; i < t.heads * HS; i += ATTEND_THREADS) {
        int g = i / HS, c = i % HS;
        struct online_softmax<1> state = merge_warps(*shared, g, HS, c);
        float *own = partials + t.split * step + g * partial_floats(HS);
        if (t.splits == 1) {
            out[i] = state.values[0] / state.sum;
        } else {
            own[c] = state.values[0];
        }
        if (t.splits > 1 && c == 0) {
            own[HS] = state.max, own[HS + 1] = state.sum;
        }
    }
    if (t.splits > 1 && is_last_split(shared, p.counters + bundle, t.splits)) {
        merge_splits(shared, out, partials, step, t, HS);
    }
}

/* ---- The kernel ---- */

/*
 * Grid: splits * bundles, bundles innermost. Blocks of splits without rows end at once.
 * Bytes: 2 * (*position + 1) * KVH * HS * sizeof(E).
 *
 * Earlier rows of the cache were written by kernels before this call's product, which lets this
 kernel start only after it has waited for them itself (KV_ORDERS). So the rows may be read
 before the product is done, and so may *position.

 */
template <typename E, int LANES, int CHUNKS, bool VECTOR, int GROUP>
static __global__ void __launch_bounds__(ATTEND_THREADS, 2) attend_kernel(struct attend p) {
    typedef struct stream<E, LANES, CHUNKS, VECTOR, GROUP> S;
    __shared__ struct attend_shared shared;
    struct task t = task_of<GROUP>(p);
    launch_dependent_grids();
    if (t.split >= t.splits) {
        wait_on_dependent_grids(); /* kernels after this one rely on it */
        return;
    }
    S s(p.a, t);
    s.load_next(t.first);
    for (int i = threadIdx.x; i < (int)p.a.HS / 2; i += ATTEND_THREADS) {
        shared.angles[i] = angle_of(i, *p.a.position, (int)p.a.HS, p.log2_theta);
    }
    __syncthreads();
    wait_on_dependent_grids();
    prepare<E>(&shared, p, t);
    __syncthreads();

    float q[GROUP][S::CHANNELS];
    struct online_softmax<S::CHANNELS> state[GROUP];
    init_heads<S, GROUP>(q, state, shared, t.heads, (int)p.a.HS);
    attend_context<S, LANES, GROUP>(state, q, &s, t);
    if (t.has_newest && threadIdx.x < 32) {
        attend_newest<S, LANES, GROUP>(state, q, shared, (int)p.a.HS);
    }
    store_results<S, LANES, GROUP>(&shared, state, t.heads, (int)p.a.HS);
    __syncthreads();
    attend_epilogue<GROUP>(&shared, p, t);
}
#endif
