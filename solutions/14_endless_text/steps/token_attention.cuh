/**
 * @file token_attention.cuh
 * @brief v6: attention of a head over a split of its ring, whose keys and values are in the
 * pipeline.
 *
 * A block has the same rows of the cache for every token. The row that the new token gets is
 * overwritten where it lies, in the stage that arrived with the token that leaves. A lane has a
 * part of a key; the part with the rotated pairs is multiplied with the query turned by the
 * distance to the key: q k cos + (partner) sin, with the angle composed from two tables.
 */
#ifndef WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_ATTENTION_CUH_
#define WARPBOOK_SOLUTIONS_14_ENDLESS_TEXT_STEPS_TOKEN_ATTENTION_CUH_

#include <math.h>

#include "solutions/14_endless_text/steps/token_products.cuh"

/* Below any score of a key, and finite, so that differences are. */
#define TOKEN_NO_SCORE (-1e30f)

/* Angles of distances 0 to 15, then of 0, 16, 32 and so on; (cosine, sine) of each pair. */
struct token_angles {
    const float2 *near, *far;
};

/* Of distance d, pair i. */
template <int HALF>
static __device__ __forceinline__ float2 angle_at(const struct token_angles &t, unsigned d, int i) {
    float2 a = t.near[d % TOKEN_DISTANCES * HALF + i], b = t.far[d / TOKEN_DISTANCES * HALF + i];
    return make_float2(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y);
}

/* One value, polled. */
static __device__ __forceinline__ float wait_value(struct flagged_mailbox box, size_t i,
                                                   unsigned flag) {
    unsigned bits;
    do {
        bits = read_value(box, i);
    } while (!has_flag(bits, flag));
    return __uint_as_float(bits);
}

/* How far the newest token is from the one in `row`; -1: there is none. */
static __device__ __forceinline__ int distance_of(const struct token_plan *plan, unsigned row,
                                                  const struct token_arguments &p) {
    unsigned rows = p.sinks + p.window;
    if (row >= plan->seen || row >= rows) {
        return -1;
    }
    if (row < p.sinks || plan->seen < rows) {
        return (int)(plan->seen - 1 - row);
    }
    return (int)(plan->row >= row ? plan->row - row : plan->row + p.window - row);
}

/* The lane's part of its key's score, from registers. */
template <int HS, int ROUNDS>
static __device__ __forceinline__ float part_score(const float k[ROUNDS * 8], const float *q,
                                                   const struct token_angles &angles,
                                                   unsigned distance, bool rotated) {
    constexpr int HALF = token_shape<HS, ROUNDS>::HALF;
    float sum = 0.0f;
#pragma unroll
    for (int i = 2 * HALF; i < ROUNDS * 8; i++) {
        sum += q[i] * k[i];
    }
    if (!rotated) {
#pragma unroll
        for (int i = 0; i < 2 * HALF; i++) {
            sum += q[i] * k[i];
        }
        return sum;
    }
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        float2 angle = angle_at<HALF>(angles, distance, i);
        sum += angle.x * (q[i] * k[i] + q[i + HALF] * k[i + HALF]) +
               angle.y * (q[i] * k[i + HALF] - q[i + HALF] * k[i]);
    }
    return sum;
}

/* A warp's online softmax: sums of P V of the lane's 8 channels over its group's values, the
   running max, and the lane's part of the running sum. */
struct token_softmax {
    float out[8], max, sum;
};

/* Adds the keys of one slice; @p stages addresses of its keys and its values. */
template <typename E, int HS, int ROUNDS>
static __device__ __forceinline__ void
attend_slice(struct token_softmax *s, unsigned keys, unsigned values, const float *q,
             const struct token_angles &angles, int distance) {
    typedef token_shape<HS, ROUNDS> shape;
    unsigned lane = threadIdx.x % 32, part = lane % shape::KEY_LANES;
    unsigned group = lane / shape::PIECES, piece = lane % shape::PIECES;
    float k[ROUNDS * 8];
#pragma unroll
    for (int i = 0; i < ROUNDS; i++) {
        unpack(token_read(keys + (lane * ROUNDS + i) * 16), k + 8 * i, E());
    }
    float score = part_score<HS, ROUNDS>(k, q + part * (ROUNDS * 8), angles,
                                         distance < 0 ? 0 : distance, part == 0);
#pragma unroll
    for (int step = 1; step < shape::KEY_LANES; step *= 2) {
        score += __shfl_xor_sync(~0u, score, step);
    }
    score = distance < 0 ? -INFINITY : score;
    float max = fmaxf(s->max, warp_max(score)), rescale = exp2f(s->max - max);
    float weight = exp2f(score - max);
    s->max = max;
    s->sum = s->sum * rescale + (part == 0 ? weight : 0.0f);
#pragma unroll
    for (int c = 0; c < 8; c++) {
        s->out[c] *= rescale;
    }
#pragma unroll
    for (int j = 0; j < (shape::KEYS + shape::GROUPS - 1) / shape::GROUPS; j++) {
        int key = j * shape::GROUPS + (int)group;
        bool there = key < shape::KEYS && group < shape::GROUPS;
        float w = __shfl_sync(~0u, weight, (there ? key : 0) * shape::KEY_LANES);
        if (there) {
            float v[8];
            unpack(token_read(values + (key * shape::PIECES + piece) * 16), v, E());
#pragma unroll
            for (int c = 0; c < 8; c++) {
                s->out[c] += w * v[c];
            }
        }
    }
}

/* The block's query, and the newest token's key and value, into shared memory; these also into the
   cache. */
template <typename E, int HS>
static __device__ __forceinline__ void fetch_newest(const struct token_plan *plan, unsigned l,
                                                    float *q, E *newest, unsigned flag,
                                                    const struct token_arguments &p) {
    unsigned c = threadIdx.x % HS, which = threadIdx.x / HS;
    if (which == 0) {
        q[c] = wait_value(p.qkv, plan->head * HS + c, flag) * (1.44269504f / sqrtf((float)HS));
    } else if (which <= 2 && plan->owns) {
        E x = from_float<E>(wait_value(p.qkv, which * p.C + plan->head * HS + c, flag));
        unsigned char *cache = (unsigned char *)plan->layers[l].streams[STREAM_KEYS] +
                               plan->head * p.head_bytes + (which == 2 ? p.key_to_value : 0);
        newest[(which - 1) * HS + c] = x;
        ((E *)cache)[plan->row * HS + c] = x;
    }
    __syncthreads();
}

/* Attention of layer l over the block's split, published as a partial result.
   @param scratch shared memory: token_attention_floats() */
template <typename E, int HS, int ROUNDS>
static __device__ __forceinline__ void attend(struct token_ring *ring, unsigned l, float *scratch,
                                              const struct token_angles &angles, unsigned flag,
                                              const struct token_arguments &p) {
    typedef token_shape<HS, ROUNDS> shape;
    const struct token_plan *plan = ring->plan;
    if (!plan->active) {
        return;
    }
    float *q = scratch, *out = scratch + 2 * HS, *max = out + TOKEN_WARPS * shape::GROUPS * HS;
    float *sum = max + TOKEN_WARPS;
    E *newest = (E *)(scratch + HS);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    struct token_softmax s = {{}, TOKEN_NO_SCORE, 0.0f};
    fetch_newest<E, HS>(plan, l, q, newest, flag, p);
#pragma unroll 1
    for (unsigned slice = warp; slice < plan->parts[TOKEN_KEYS].slices; slice += TOKEN_WARPS) {
        unsigned first = plan->split * p.split_rows + slice * shape::KEYS;
        cp_async_wait<TOKEN_STAGES - 2>();
        __syncwarp();
        unsigned keys = token_stage<ROUNDS>(ring, 0), values = token_stage<ROUNDS>(ring, 1);
        unsigned fresh = plan->row - first; /* huge where the row is in front */
        if (plan->owns && fresh < shape::KEYS) {
            if (lane < shape::PIECES) {
                unsigned at = (fresh * shape::PIECES + lane) * 16;
                token_write(keys + at, ((const uint4 *)newest)[lane]);
                token_write(values + at, ((const uint4 *)(newest + HS))[lane]);
            }
            __syncwarp();
        }
        attend_slice<E, HS, ROUNDS>(&s, keys, values, q, angles,
                                    distance_of(plan, first + lane / shape::KEY_LANES, p));
        __syncwarp(); /* the stages have been read */
        token_release<ROUNDS>(ring, false, p);
        token_release<ROUNDS>(ring, false, p);
    }
    if (lane / shape::PIECES < shape::GROUPS) {
        float *to =
            out + (warp * shape::GROUPS + lane / shape::PIECES) * HS + lane % shape::PIECES * 8;
#pragma unroll
        for (int c = 0; c < 8; c++) {
            to[c] = s.out[c];
        }
    }
    float all = warp_sum(s.sum);
    if (lane == 0) {
        max[warp] = s.max, sum[warp] = all;
    }
    __syncthreads();
    if (threadIdx.x < HS) {
        struct flagged_mailbox to = {p.partial.values +
                                     (size_t)(plan->head * p.splits + plan->split) * (HS + 2)};
        float largest = max[0], total = 0.0f, value = 0.0f;
#pragma unroll
        for (int i = 1; i < TOKEN_WARPS; i++) {
            largest = fmaxf(largest, max[i]);
        }
        /* as it is published, with the flag in its lowest bit */
        largest = with_flag(largest, flag);
#pragma unroll
        for (int i = 0; i < TOKEN_WARPS; i++) {
            float rescale = max[i] > TOKEN_NO_SCORE ? exp2f(max[i] - largest) : 0.0f;
            float one = 0.0f;
#pragma unroll
            for (int g = 0; g < shape::GROUPS; g++) {
                one += out[(i * shape::GROUPS + g) * HS + threadIdx.x];
            }
            value += rescale * one;
            total += rescale * sum[i];
        }
        publish(to, threadIdx.x, value, flag);
        if (threadIdx.x == 0) {
            publish(to, HS, largest, flag);
            publish(to, HS + 1, total, flag);
        }
    }
}

/* The block with split 0 merges all splits of its head, and publishes the result. */
template <int HS>
static __device__ __forceinline__ void merge_heads(const struct token_plan *plan, unsigned flag,
                                                   const struct token_arguments &p) {
    if (!plan->active || plan->split != 0 || threadIdx.x >= HS) {
        return;
    }
    float values[TOKEN_MOST_SPLITS], maxes[TOKEN_MOST_SPLITS], sums[TOKEN_MOST_SPLITS];
    float largest = TOKEN_NO_SCORE, value = 0.0f, total = 0.0f;
    for (bool ready = false; !ready;) {
        uint3 bits[TOKEN_MOST_SPLITS];
        ready = true;
#pragma unroll
        for (unsigned i = 0; i < TOKEN_MOST_SPLITS; i++) {
            size_t first = (size_t)(plan->head * p.splits + (i < p.splits ? i : 0)) * (HS + 2);
            bits[i] = {read_value(p.partial, first + threadIdx.x),
                       read_value(p.partial, first + HS), read_value(p.partial, first + HS + 1)};
        }
#pragma unroll
        for (unsigned i = 0; i < TOKEN_MOST_SPLITS; i++) {
            ready = ready && has_flag(bits[i].x, flag) && has_flag(bits[i].y, flag) &&
                    has_flag(bits[i].z, flag);
            values[i] = __uint_as_float(bits[i].x);
            maxes[i] = __uint_as_float(bits[i].y), sums[i] = __uint_as_float(bits[i].z);
        }
    }
#pragma unroll
    for (unsigned i = 0; i < TOKEN_MOST_SPLITS; i++) {
        largest = fmaxf(largest, maxes[i]);
    }
#pragma unroll
    for (unsigned i = 0; i < TOKEN_MOST_SPLITS; i++) {
        float rescale = i < p.splits ? exp2f(maxes[i] - largest) : 0.0f;
        value += rescale * values[i];
        total += rescale * sums[i];
    }
    publish(p.heads, plan->head * HS + threadIdx.x, value / total, flag);
}

#endif
