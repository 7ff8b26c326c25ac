/**
 * @file sampling.cu
 * @brief Draws a token: given. Two launches, and no sort.
 *
 * A token's weight is e = exp(logit / temperature - largest), in 0 .. 1, and the bits of e as a
 * number are its key: keys rise with weights. Sums of weights are integers (e times a power of two
 * that the sum of V of them does not overflow), so they are the same in any order, and threads may
 * add as they come.
 *
 * What top-k and top-p ask for is a place in the list of tokens by falling weight, equal ones by
 * number: the first at which the count, or the mass, passes a target. It is found without the list:
 * a histogram over the key's upper ten bits says in which bin, one over the next ten bits in that
 * bin where, one over the last ten, and then equal keys are counted off in order.
 *
 * The generator is xorshift64* (Vigna 2016) and the coin its upper 24 of 32 bits, as in
 * common/models/sampler.c.
 */
#include "labs/10_llama2_decoder/given/sampling.h"

#include <limits.h>

#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/warp.cuh"

typedef unsigned long long u64;

static constexpr unsigned PART_THREADS = 256, MOST_PARTS = 128; /* of the first launch */
static constexpr unsigned THREADS = 1024, WARPS = THREADS / 32; /* of the second, one block */
static constexpr unsigned BINS = 1024;                          /* ten bits, one a thread */
static constexpr unsigned DIGITS = 3;

/* ---- The largest logit ---- */

/* Orders logits as unsigned numbers, then lower tokens before higher ones. A logit that is not a
   number loses against all, but as the first one wins: as a comparison from left to right does. */
static __device__ __forceinline__ u64 rank_of(float x, size_t i) {
    unsigned bits = __float_as_uint(x + 0.0f); /* -0 becomes 0 */
    unsigned key = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    if (x != x) {
        key = i == 0 ? ~0u : 0u;
    }
    return (u64)key << 32 | (unsigned)~i;
}

static __device__ __forceinline__ size_t token_of_rank(u64 rank) {
    return (unsigned)~(unsigned)rank;
}

static __device__ __forceinline__ u64 larger_of(u64 a, u64 b) {
    return a > b ? a : b;
}

/* parts[block] = the largest of every gridDim.x-th piece of PART_THREADS logits. */
static __global__ void __launch_bounds__(PART_THREADS)
    sample_largest(u64 *parts, const float *logits, size_t V) {
    __shared__ u64 of_warp[PART_THREADS / 32];
    chained_begin();
    u64 best = 0;
    for (size_t i = (size_t)blockIdx.x * PART_THREADS + threadIdx.x; i < V;
         i += (size_t)gridDim.x * PART_THREADS) {
        best = larger_of(best, rank_of(logits[i], i));
    }
    best = warp_max<32>(best);
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = best;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        best = warp_max<32>(threadIdx.x < PART_THREADS / 32 ? of_warp[threadIdx.x] : 0);
        if (threadIdx.x == 0) {
            parts[blockIdx.x] = best;
        }
    }
}

/* ---- The draw ---- */

/* What the block knows together; shared memory. */
struct draw {
    unsigned low[BINS], high[BINS]; /* of the mass */
    unsigned count[BINS];           /* only where counts are wanted */
    u64 warp_mass[WARPS], warp_count[WARPS];
    u64 best;
    u64 found_mass, found_count; /* before the bin found */
    unsigned found;              /* the bin */
    unsigned token;
    size_t begin, end; /* tokens among which the one looked for is */
};

/* What does not change. */
struct drawing {
    struct draw *s;
    unsigned *keys; /* (V) */
    size_t V;
    float scale; /* of a weight as an integer, a power of two */
    bool counts; /* whether histograms count tokens, too: top-k asks for that */
};

/* A place in the list by falling weight: token is the last one of key that still belongs. */
struct place {
    unsigned key;
    size_t token;
    u64 mass; /* of the list up to here, this token with it */
};

static __device__ __forceinline__ u64 mass_of(unsigned key, float scale) {
    return __float2ull_rn(__uint_as_float(key) * scale);
}

/* Inclusive sums over the lanes. */
static __device__ __forceinline__ u64 warp_scan(u64 x) {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned offset = 1; offset < 32; offset *= 2) {
        u64 other = __shfl_up_sync(~0u, x, offset);
        x += lane >= offset ? other : 0;
    }
    return x;
}

/* Inclusive sums over the block's threads, and the sum of all. All call it; `of_warp` (WARPS) is
   shared memory. */
static __device__ u64 block_scan(u64 x, u64 *of_warp, u64 *all) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_scan(x);
    __syncthreads(); /* what was there has been read */
    if (lane == 31) {
        of_warp[warp] = x;
    }
    __syncthreads();
    u64 of_lane = warp_scan(of_warp[lane]);
    u64 before = __shfl_sync(~0u, of_lane, warp == 0 ? 0 : warp - 1);
    *all = __shfl_sync(~0u, of_lane, 31);
    return x + (warp == 0 ? 0 : before);
}

/* Ten bits of the key, the upper ones first; 1.0f, the largest key, has no more than 30. */
static __device__ __forceinline__ unsigned digit_of(unsigned key, unsigned digit) {
    return key >> (10 * (DIGITS - 1 - digit)) & (BINS - 1);
}

/* The digits above this one. */
static __device__ __forceinline__ unsigned upper_of(unsigned key, unsigned digit) {
    return digit == 0 ? 0 : key >> (10 * (DIGITS - digit));
}

static __device__ void clear_bins(struct draw *s) {
    __syncthreads();
    s->low[threadIdx.x] = s->high[threadIdx.x] = 0;
    s->count[threadIdx.x] = 0;
    __syncthreads();
}

/* Shared memory adds 32 bits at once, but 64 only in a loop that tries again: two halves. */
static __device__ __forceinline__ void count_in(const struct drawing *d, unsigned key,
                                                unsigned digit) {
    unsigned bin = digit_of(key, digit);
    u64 mass = mass_of(key, d->scale);
    unsigned low = (unsigned)mass, high = (unsigned)(mass >> 32);
    if (low != 0 && atomicAdd(&d->s->low[bin], low) > ~low) {
        high++;
    }
    if (high != 0) {
        atomicAdd(&d->s->high[bin], high);
    }
    if (d->counts) {
        atomicAdd(&d->s->count[bin], 1u);
    }
}

static __device__ __forceinline__ u64 mass_in(const struct draw *s, unsigned bin) {
    return (u64)s->high[bin] << 32 | s->low[bin];
}

/* Keys from logits, and the first histogram. @return the mass of all; 0 where a logit was not a
   number or the largest not finite */
static __device__ u64 weigh_all(const struct drawing *d, const float *logits, float largest,
                                float temperature) {
    clear_bins(d->s);
    bool bad = false;
    for (size_t i = threadIdx.x; i < d->V; i += THREADS) {
        float e = expf(logits[i] / temperature - largest);
        bool good = e >= 0.0f && e <= 1.0f;
        bad |= !good;
        unsigned key = __float_as_uint(good ? e : 0.0f);
        d->keys[i] = key;
        count_in(d, key, 0);
    }
    bool any_bad = __syncthreads_or(bad) != 0;
    u64 all;
    (void)block_scan(mass_in(d->s, threadIdx.x), d->s->warp_mass, &all);
    return any_bad ? 0 : all;
}

/* The histogram of a digit over the keys that begin as `key` does. */
static __device__ void count_below(const struct drawing *d, unsigned key, unsigned digit) {
    clear_bins(d->s);
    for (size_t i = threadIdx.x; i < d->V; i += THREADS) {
        unsigned k = d->keys[i];
        if (upper_of(k, digit) == upper_of(key, digit)) {
            count_in(d, k, digit);
        }
    }
    __syncthreads();
}

/* Finds the bin, from the highest, at which the sum with what lies before passes the target; the
   lowest bin with anything in it where none does. */
template <bool BY_MASS>
static __device__ void find_bin(struct draw *s, u64 mass_before, u64 count_before, u64 target) {
    unsigned bin = BINS - 1 - threadIdx.x;
    u64 mass = mass_in(s, bin), count = s->count[bin];
    u64 all, mass_to = mass_before + block_scan(mass, s->warp_mass, &all);
    u64 count_to = count_before + block_scan(count, s->warp_count, &all);
    u64 to = BY_MASS ? mass_to : count_to, own = BY_MASS ? mass : count;
    if (own > 0 && to > target && to - own <= target) {
        s->found = bin;
        s->found_mass = mass_to - mass;
        s->found_count = count_to - count;
    }
    __syncthreads();
}

/* Ranges of tokens for warps: each has one, of whole 32s. */
static __device__ __forceinline__ size_t warp_range(size_t V, size_t *end) {
    size_t each = (V + THREADS - 1) / THREADS * 32;
    size_t begin = threadIdx.x / 32 * each;
    *end = begin + each < V ? begin + each : V;
    return begin < V ? begin : V;
}

/*
 * The first token, by number, at which the sum of `value(key, token)` passes the target; V - 1
 * where it does not. Values are integers of any size up to the whole mass.
 */
template <typename VALUE>
static __device__ size_t walk(const struct drawing *d, u64 target, const VALUE &value) {
    unsigned lane = threadIdx.x % 32;
    size_t end, begin = warp_range(d->V, &end);
    u64 sum = 0;
    for (size_t i = begin + lane; i < end; i += 32) {
        sum += value(d->keys[i], i);
    }
    u64 all, to = block_scan(sum, d->s->warp_mass, &all);
    u64 warp_to = __shfl_sync(~0u, to, 31), warp_from = __shfl_sync(~0u, to - sum, 0);
    if (threadIdx.x == 0) {
        d->s->token = (unsigned)(d->V - 1);
        d->s->begin = d->s->end = 0;
    }
    __syncthreads();
    if (lane == 0 && warp_to > target && warp_from <= target) { /* of one warp at most */
        d->s->begin = begin;
        d->s->end = end;
        d->s->found_mass = warp_from;
    }
    __syncthreads();
    u64 before = d->s->found_mass;
    begin = d->s->begin;
    end = d->s->end;
    for (; begin < end && before <= target; begin += THREADS) {
        size_t i = begin + threadIdx.x;
        u64 own = i < end ? value(d->keys[i], i) : 0;
        u64 here = before + block_scan(own, d->s->warp_mass, &all);
        if (own > 0 && here > target && here - own <= target) {
            d->s->token = (unsigned)i;
        }
        before += all;
    }
    __syncthreads();
    return d->s->token;
}

/* The place, by falling weight, where the count or the mass passes a target below the whole; its
   token only where it is wanted. The first digit's histogram is counted unless it is there. */
template <bool BY_MASS, bool TOKEN>
static __device__ struct place find_place(const struct drawing *d, u64 target, bool counted) {
    unsigned key = 0;
    u64 mass = 0, count = 0;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        if (digit > 0 || !counted) {
            count_below(d, key, digit);
        }
        find_bin<BY_MASS>(d->s, mass, count, target);
        key |= d->s->found << (10 * (DIGITS - 1 - digit));
        mass = d->s->found_mass;
        count = d->s->found_count;
    }
    u64 each = mass_of(key, d->scale);
    u64 before = BY_MASS ? (target - mass) / each : target - count; /* equal ones before it */
    struct place place = {key, 0, mass + (before + 1) * each};
    if (TOKEN) {
        place.token = walk(d, before, [=](unsigned k, size_t) { return (u64)(k == key); });
    }
    return place;
}

static __device__ float next_coin(struct sampling *sampling) {
    u64 s = sampling->state;
    s ^= s >> 12;
    s ^= s << 25;
    s ^= s >> 27;
    sampling->state = s;
    unsigned bits = (unsigned)(s * 0x2545f4914f6cdd1dull >> 32);
    return (float)(bits >> 8) / 16777216.0f;
}

/* coin * mass, rounded down: below mass, for the coin is a number of 24 bits below 1. */
static __device__ __forceinline__ u64 share_of(float coin, u64 mass) {
    u64 bits = (u64)(coin * 16777216.0f);
    return (mass >> 24) * bits + ((mass & 0xffffff) * bits >> 24);
}

/* As sampler.c: what a nucleus and what the whole list give where logits are not numbers. */
static __device__ size_t draw_token(const struct drawing *d, const struct sampling *how, float coin,
                                    u64 all) {
    bool nucleus = how->top_p > 0.0f && how->top_p < 1.0f && d->V > 1;
    if (all == 0) {
        return nucleus ? 0 : d->V - 1;
    }
    struct place last = {0, d->V - 1, all};
    bool counted = true;
    if (how->top_k > 0 && how->top_k < d->V) {
        last = find_place<false, true>(d, how->top_k - 1, counted);
        counted = false;
    }
    if (!nucleus) {
        float scale = d->scale;
        return walk(d, share_of(coin, last.mass), [=](unsigned key, size_t token) {
            bool kept = key > last.key || (key == last.key && token <= last.token);
            return kept ? mass_of(key, scale) : 0;
        });
    }
    u64 target = (u64)((double)how->top_p * (double)last.mass);
    if (target < last.mass) {
        last = find_place<true, false>(d, target, counted);
    }
    return find_place<true, true>(d, share_of(coin, last.mass), false).token;
}

static __device__ u64 best_of_parts(struct draw *s, const u64 *parts, unsigned count) {
    if (threadIdx.x < 32) {
        u64 best = 0;
        for (unsigned i = threadIdx.x; i < count; i += 32) {
            best = larger_of(best, parts[i]);
        }
        best = warp_max<32>(best);
        if (threadIdx.x == 0) {
            s->best = best;
        }
    }
    __syncthreads();
    return s->best;
}

static __global__ void __launch_bounds__(THREADS)
    sample_draw(struct sampling *sampling, const float *logits, size_t V, int32_t *token,
                const u64 *parts, unsigned count, unsigned *keys, float scale) {
    __shared__ struct draw shared;
    chained_begin();
    const size_t best = token_of_rank(best_of_parts(&shared, parts, count));
    const float temperature = sampling->temperature;
    size_t drawn = best;
    if (temperature != 0.0f) { /* the same for all threads */
        const struct sampling how = *sampling;
        struct sampling next = how;
        const struct drawing d = {&shared, keys, V, scale, how.top_k > 0 && how.top_k < V};
        float coin = next_coin(&next);
        u64 all = weigh_all(&d, logits, logits[best] / temperature, temperature);
        drawn = draw_token(&d, &how, coin, all);
        __syncthreads();
        if (threadIdx.x == 0) {
            sampling->state = next.state;
        }
    }
    if (threadIdx.x == 0) {
        *token = (int32_t)drawn;
    }
}

/* ---- Launches ---- */

/* Parts come first, 256-byte aligned keys behind them. */
static constexpr size_t PARTS_BYTES = MOST_PARTS * sizeof(u64);

size_t sample_workspace_bytes(size_t V) {
    return PARTS_BYTES + V * sizeof(unsigned);
}

/* The largest power of two with which V weights of 1 sum up below 2^62. */
static float weight_scale(size_t V) {
    float scale = 4611686018427387904.0f;
    for (size_t most = 1; most < V; most *= 2) {
        scale *= 0.5f;
    }
    return scale;
}

enum status sample_token(struct sampling *sampling, const float *logits, size_t V, int32_t *token,
                         void *workspace, device_stream stream, struct error *error) {
    if (V == 0 || V > INT32_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "drawing a token: a vocabulary of %zu, 1 to %d are allowed", V, INT32_MAX);
    }
    size_t wanted = (V + PART_THREADS - 1) / PART_THREADS;
    unsigned count = (unsigned)(wanted < MOST_PARTS ? wanted : MOST_PARTS);
    u64 *parts = (u64 *)workspace;
    unsigned *keys = (unsigned *)((char *)workspace + PARTS_BYTES);
    launch_chained<sample_largest>(count, PART_THREADS, 0, stream, parts, logits, V);
    TRY(device_launched("sample_largest", error));
    launch_chained<sample_draw>(1, THREADS, 0, stream, sampling, logits, V, token,
                                (const u64 *)parts, count, keys, weight_scale(V));
    return device_launched("sample_draw", error);
}
