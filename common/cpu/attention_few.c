/**
 * @file attention_few.c
 * @brief Attention of a few queries, above all of the one of decoding: straight from the cache.
 */
#include <math.h>
#include <string.h>

#include "common/cpu/attention_internal.h"
#include "common/cpu/vector_math.h"

CPU_CLONES
float cpu_attention_exponentiate(float *scores, float scale, size_t keys, float *largest) {
    float max = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : max)
    for (size_t s = 0; s < keys; s++) {
        scores[s] *= scale;
        max = scores[s] > max ? scores[s] : max;
    }
    max = max == -INFINITY ? 0.0f : max;
    *largest = max;
#pragma omp simd reduction(+ : sum)
    for (size_t s = 0; s < keys; s++) {
        float e = vector_exp(scores[s] - max);
        scores[s] = e;
        sum += e;
    }
    return sum;
}

typedef float vec8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int index8 __attribute__((vector_size(32)));

/* (a0+a1, a2+a3, b0+b1, b2+b3) in each half: two rounds of it sum eight lanes of four vectors. */
CPU_INLINE vec8 add_pairs(vec8 a, vec8 b) {
    return __builtin_shuffle(a, b, (index8){0, 2, 8, 10, 4, 6, 12, 14}) +
           __builtin_shuffle(a, b, (index8){1, 3, 9, 11, 5, 7, 13, 15});
}

/* scores[i] = q . k[i] for four keys; HS is a multiple of 8. */
CPU_INLINE void four_scores(float *scores, const float *q, const float *k, size_t stride,
                            size_t HS) {
    vec8 sum[4] = {0};
    for (size_t c = 0; c < HS; c += 8) {
        vec8 query = *(const vec8 *)(q + c);
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            sum[i] += query * *(const vec8 *)(k + i * stride + c);
        }
    }
    vec8 all = add_pairs(add_pairs(sum[0], sum[1]), add_pairs(sum[2], sum[3]));
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        scores[i] = all[i] + all[i + 4];
    }
}

CPU_INLINE float dot(const float *a, const float *b, size_t count) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

CPU_CLONES
static void compute_scores(float *scores, const float *q, const float *k, size_t keys,
                           const struct nn_attention *a) {
    size_t s = 0;
    for (; a->HS % 8 == 0 && s + 4 <= keys; s += 4) {
        four_scores(scores + s, q, k + s * a->kv_stride, a->kv_stride, a->HS);
    }
    for (; s < keys; s++) {
        scores[s] = dot(q, k + s * a->kv_stride, a->HS);
    }
}

/* out (8) = sum of weights[s] v[s]; four sums, so that additions do not wait for each other. */
CPU_INLINE void eight_channels(float *out, const float *weights, const float *v, size_t stride,
                               size_t keys) {
    vec8 sum[4] = {0};
    size_t s = 0;
    for (; s + 4 <= keys; s += 4) {
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            sum[i] += weights[s + i] * *(const vec8 *)(v + (s + i) * stride);
        }
    }
    for (; s < keys; s++) {
        sum[0] += weights[s] * *(const vec8 *)(v + s * stride);
    }
    *(vec8 *)out = (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

CPU_CLONES
static void multiply_values(float *out, const float *weights, const float *v, size_t keys,
                            const struct nn_attention *a) {
    size_t c = 0;
    for (; c + 8 <= a->HS; c += 8) {
        eight_channels(out + c, weights, v + c, a->kv_stride, keys);
    }
    for (; c < a->HS; c++) {
        out[c] = 0.0f;
        for (size_t s = 0; s < keys; s++) {
            out[c] += weights[s] * v[s * a->kv_stride + c];
        }
    }
}

/* As multiply_values() where keys are masked: not even a NaN in their values may enter the sum. */
static void multiply_seen_values(float *out, const float *weights, const float *v, size_t keys,
                                 const uint8_t *mask, const struct nn_attention *a) {
    memset(out, 0, a->HS * sizeof *out);
    for (size_t s = 0; s < keys; s++) {
        for (size_t c = 0; mask[s] != 0 && c < a->HS; c++) {
            out[c] += weights[s] * v[s * a->kv_stride + c];
        }
    }
}

static void attend_one(float *scores, const struct sequence *s, size_t head, size_t kv_head,
                       size_t t) {
    const struct nn_attention *a = s->a;
    const float *k = s->k + kv_head * a->HS, *v = s->v + kv_head * a->HS;
    float *out = s->out + (t * a->NH + head) * a->HS;
    size_t keys = a->causal ? s->S - s->T + t + 1 : s->S;
    compute_scores(scores, s->q + t * a->q_stride + head * a->HS, k, keys, a);
    for (size_t i = 0; s->mask != NULL && i < keys; i++) {
        scores[i] = s->mask[i] != 0 ? scores[i] : -INFINITY;
    }
    float max, sum = cpu_attention_exponentiate(scores, a->scale, keys, &max);
    if (s->lse != NULL) {
        s->lse[t * a->NH + head] = max + logf(sum);
    }
    if (s->mask != NULL) {
        multiply_seen_values(out, scores, v, keys, s->mask, a);
    } else {
        multiply_values(out, scores, v, keys, a);
    }
    for (size_t c = 0; c < a->HS; c++) {
        out[c] = sum == 0.0f ? 0.0f : out[c] / sum;
    }
}

void cpu_attend_few(float *scores, const struct sequence *s, size_t kv_head) {
    size_t group = s->a->NH / s->a->KVH;
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (size_t t = 0; t < s->T; t++) {
            attend_one(scores, s, head, kv_head, t);
        }
    }
}
