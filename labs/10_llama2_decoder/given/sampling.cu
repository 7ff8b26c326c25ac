/**
 * @file sampling.cu
 * @brief Given: draws a token. Two launches, and no sort.
 *
 * A token's weight is e = exp(logit / temperature - largest), in 0 .. 1, and the bits of e as a
 * number are its key: keys rise with weights. Sums of weights are integers (e times a power of two
 * such that V of them do not overflow), so they do not depend on the order, and threads may add
 * atomically.
 *
 * Top-k and top-p need a cutoff in the list of tokens by descending weight, equal ones by number:
 * the first token at which the count, or the mass, passes a target. A radix search finds it without
 * a sort: a histogram over the key's upper ten bits gives the bin, one over the next ten bits the
 * bin inside that one, one over the last ten the key; then tokens of equal keys are counted in
 * order.
 *
 * The generator is xorshift64* (Vigna 2016) and the coin its upper 24 of 32 bits, as in
 * common/models/sampler.c.
 */
#include "labs/10_llama2_decoder/given/sampling.h"

#include <limits.h>

#include "common/cuda/dependent_launch.cuh"
#include "common/cuda/warp.cuh"

typedef unsigned long long u64;

static constexpr unsigned BEST_THREADS = 256, MAX_BLOCKS = 128; /* of the first launch */
static constexpr unsigned THREADS = 1024,
                          WARPS = THREADS / 32; /* of the second, which has one block */
static constexpr unsigned BINS = 1024;          /* ten bits, one a thread */
static constexpr unsigned DIGITS = 3;

/* ---- The largest logit ---- */

/* Orders logits as unsigned numbers, then lower tokens before higher ones. NaN ranks highest. */
static __device__ __forceinline__ u64 rank_of(float x, size_t i) {
    unsigned bits = __float_as_uint(x + 0.0f); /* -0 becomes 0 */
    unsigned key = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    if (x != x) {
        key = ~0u;
    }
    return (u64)key << 32 | (unsigned)~i;
}

/* Whether the highest rank is of a finite logit: then none is NaN, and the largest is finite. */
static __device__ __forceinline__ bool is_usable(u64 best) {
    const unsigned key = (unsigned)(best >> 32);
    const unsigned infinite = 0x7f800000u; /* as bits of a float */
    return key > ~(infinite | 0x80000000u) && key < (infinite | 0x80000000u);
}

static __device__ __forceinline__ size_t token_of_rank(u64 rank) {
    return (unsigned)~(unsigned)rank;
}

static __device__ __forceinline__ u64 larger_of(u64 a, u64 b) {
    return a > b ? a : b;
}

/* block_bests[block] = the largest of every gridDim.x-th chunk of BEST_THREADS logits. */
static __global__ void __launch_bounds__(BEST_THREADS)
    sample_best(u64 *block_bests, const float *logits, size_t V) {
    __shared__ u64 of_warp[BEST_THREADS / 32];
    dependent_launch_begin();
    u64 best = 0;
    for (size_t i = (size_t)blockIdx.x * BEST_THREADS + threadIdx.x; i < V;
         i += (size_t)gridDim.x * BEST_THREADS) {
        best = larger_of(best, rank_of(logits[i], i));
    }
    best = warp_max<32>(best);
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = best;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        best = warp_max<32>(threadIdx.x < BEST_THREADS / 32 ? of_warp[threadIdx.x] : 0);
        if (threadIdx.x == 0) {
            block_bests[blockIdx.x] = best;
        }
    }
}

/* ---- The draw ---- */

/* The block's shared memory. */
struct draw {
    unsigned low[BINS], high[BINS]; /* of the mass */
    unsigned count[BINS];           /* only with drawing.counts */
    u64 warp_mass[WARPS], warp_count[WARPS];
    u64 best;
    u64 found_mass, found_count; /* before the bin found */
    unsigned found;              /* the bin */
    unsigned token;
    size_t begin, end; /* range of tokens that has the one searched for */
};

/* Constants of a draw. */
struct drawing {
    struct draw *s;
    unsigned *keys; /* (V) */
    size_t V;
    float scale; /* of a weight as an integer, a power of two */
    bool counts; /* whether histograms count tokens, too, for top-k */
};

/* A cutoff in the list by descending weight: token is the last one of this key that is kept. */
struct cutoff {
    unsigned key;
    size_t token;
    u64 mass; /* of the list up to and including this token */
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
    __syncthreads(); /* earlier values of of_warp have been read */
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

/* Two 32-bit atomics, because a 64-bit one in shared memory is a compare-and-swap loop. */
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

/* Softmax weights as keys, and the first histogram. @return the mass of all; 0 if the temperature
 * is so low that a quotient overflowed */
static __device__ u64 compute_weights(const struct drawing *d, const float *logits, float largest,
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

/* The histogram of a digit over the keys whose upper digits are those of `key`. */
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

/* Finds the bin, from the highest down, at which the running sum passes the target; if none does,
 * the lowest bin that is not empty. */
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

/* The warp's range of tokens, a multiple of 32. */
static __device__ __forceinline__ size_t warp_range(size_t V, size_t *end) {
    size_t each = (V + THREADS - 1) / THREADS * 32;
    size_t begin = threadIdx.x / 32 * each;
    *end = begin + each < V ? begin + each : V;
    return begin < V ? begin : V;
}

/*
 * The first token, by number, at which the running sum of `value(key, token)` passes the target; V
 - 1 if it never does. Values are integers up to the whole mass.

 */
template <typename VALUE>
static __device__ size_t first_past(const struct drawing *d, u64 target, const VALUE &value) {
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
    if (lane == 0 && warp_to > target && warp_from <= target) { /* true in at most one warp */
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

/* The cutoff where the count or the mass passes a target below the whole; its token only with
 * TOKEN. @param counted whether the first digit's histogram is in shared memory */
template <bool BY_MASS, bool TOKEN>
static __device__ struct cutoff find_cutoff(const struct drawing *d, u64 target, bool counted) {
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
    u64 before =
        BY_MASS ? (target - mass) / each : target - count; /* tokens of equal key before it */
    struct cutoff cutoff = {key, 0, mass + (before + 1) * each};
    if (TOKEN) {
        cutoff.token = first_past(d, before, [=](unsigned k, size_t) { return (u64)(k == key); });
    }
    return cutoff;
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

/* coin * mass, rounded down; less than mass, because the coin has 24 bits and is less than 1. */
static __device__ __forceinline__ u64 share_of(float coin, u64 mass) {
    u64 bits = (u64)(coin * 16777216.0f);
    return (mass >> 24) * bits + ((mass & 0xffffff) * bits >> 24);
}

/* The token; for quotients that overflowed the same one as sampler.c's. */
static __device__ size_t draw_token(const struct drawing *d, const struct sampling *how, float coin,
                                    u64 all) {
    bool nucleus = how->top_p > 0.0f && how->top_p < 1.0f && d->V > 1;
    if (all == 0) {
        return nucleus ? 0 : d->V - 1;
    }
    struct cutoff last = {0, d->V - 1, all};
    bool counted = true;
    if (how->top_k > 0 && how->top_k < d->V) {
        last = find_cutoff<false, true>(d, how->top_k - 1, counted);
        counted = false;
    }
    if (!nucleus) {
        float scale = d->scale;
        return first_past(d, share_of(coin, last.mass), [=](unsigned key, size_t token) {
            bool kept = key > last.key || (key == last.key && token <= last.token);
            return kept ? mass_of(key, scale) : 0;
        });
    }
    u64 target = (u64)((double)how->top_p * (double)last.mass);
    if (target < last.mass) {
        last = find_cutoff<true, false>(d, target, counted);
    }
    return find_cutoff<true, true>(d, share_of(coin, last.mass), false).token;
}

static __device__ u64 best_of_blocks(struct draw *s, const u64 *block_bests, unsigned count) {
    if (threadIdx.x < 32) {
        u64 best = 0;
        for (unsigned i = threadIdx.x; i < count; i += 32) {
            best = larger_of(best, block_bests[i]);
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
                const u64 *block_bests, unsigned count, unsigned *keys, float scale) {
    __shared__ struct draw shared;
    dependent_launch_begin();
    const u64 rank = best_of_blocks(&shared, block_bests, count);
    const size_t best = token_of_rank(rank);
    const float temperature = sampling->temperature;
    size_t drawn = best;
    if (!is_usable(rank)) { /* uniform over the block, as the next condition */
        drawn = 0;
        if (threadIdx.x == 0) {
            sampling->state = 0;
        }
    } else if (temperature != 0.0f) {
        const struct sampling how = *sampling;
        struct sampling next = how;
        const struct drawing d = {&shared, keys, V, scale, how.top_k > 0 && how.top_k < V};
        float coin = next_coin(&next);
        u64 all = compute_weights(&d, logits, logits[best] / temperature, temperature);
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

/* The workspace: the blocks' best tokens, then the keys, 256-byte aligned. */
static constexpr size_t BESTS_BYTES = MAX_BLOCKS * sizeof(u64);

size_t sample_workspace_bytes(size_t V) {
    return BESTS_BYTES + V * sizeof(unsigned);
}

/* The largest power of two with which the sum of V weights of 1 stays below 2^62. */
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
                         "drawing a token: V = %zu; it must be 1 to %d", V, INT32_MAX);
    }
    size_t wanted = (V + BEST_THREADS - 1) / BEST_THREADS;
    unsigned count = (unsigned)(wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS);
    u64 *block_bests = (u64 *)workspace;
    unsigned *keys = (unsigned *)((char *)workspace + BESTS_BYTES);
    launch_dependent<sample_best>(count, BEST_THREADS, 0, stream, block_bests, logits, V);
    TRY(device_launched("sample_best", error));
    launch_dependent<sample_draw>(1, THREADS, 0, stream, sampling, logits, V, token,
                                  (const u64 *)block_bests, count, keys, weight_scale(V));
    return device_launched("sample_draw", error);
}
