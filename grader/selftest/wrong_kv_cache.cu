/*
 * Wrong submissions to lab 09. $WRONG_KV_CACHE names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. It keeps a cache,
 * but has a thread a row and a thread a channel, and must miss the speedup of products, also as
 * "idle_blocks", the same beside idle blocks;
 * "recomputes", which is the starter, those of a late token and of decoding.
 */
#include <stdlib.h>
#include <string.h>

#include "grader/selftest/elements.cuh"
#include "labs/09_kv_cache/given/renamed_starter.h"
#include "labs/09_kv_cache/kv_cache.h"

#define MISTAKES(X)                                                                       \
    X(right)                                                                              \
    X(recomputes)     /* keys and values of all earlier tokens, each time: right */       \
    X(idle_blocks)    /* right, products beside many blocks that do nothing */            \
    X(empty)          /* does nothing */                                                  \
    X(zeros)          /* writes zeros */                                                  \
    X(no_norm_weight) /* divides by the root mean square, and no more */                  \
    X(no_eps)         /* forgets eps in the norm */                                       \
    X(no_norm)        /* takes in as it is */                                             \
    X(no_residual)    /* forgets the residual */                                          \
    X(eights)         /* leaves out what K has beyond a multiple of 8 */                  \
    X(odd_rows)       /* leaves out the last row when there is an odd number */           \
    X(aligned)        /* loads 16 bytes at once, wherever they lie */                     \
    X(half)           /* rounds what it multiplies to fp16, fp32 or not */                \
    X(behind)         /* writes one element behind out */                                 \
    X(changes_input)  /* changes in */                                                    \
    X(stale)          /* attends to the new key and value, but does not write them */     \
    X(no_rope_key)    /* does not rotate keys */                                          \
    X(no_rope)        /* does not rotate queries */                                       \
    X(interleaved)    /* rotates neighbours, whatever the layout */                       \
    X(late)           /* rotates as at the next position */                               \
    X(early)          /* does not attend to the token itself */                           \
    X(own_heads)      /* key heads are shared in turn, not in groups */                   \
    X(row_behind)     /* also writes the row behind the position's */                     \
    X(no_max)         /* does not subtract the largest score */                           \
    X(no_rescale)     /* adds up parts as if they had the same largest score */           \
    X(no_scale)       /* forgets 1 / sqrt(HS) */                                          \
    X(longest)        /* takes longest - 1 for the position */                            \
    X(waits)          /* copies the position to the host: nothing that can be recorded */ \
    X(status)         /* reports a failure */                                             \
    X(not_refused)    /* takes any call */

#define MISTAKE_VARIABLE "WRONG_KV_CACHE"
#include "grader/selftest/mistakes.h"

enum { THREADS = 64, PART = 16 /* keys */ };

static unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* What in is multiplied with, but for the norm's weight. */
static __device__ float norm_factor(const float *in, size_t K, float eps, enum mistake mistake) {
    float squares = 0.0f;
    for (size_t k = 0; k < K; k++) {
        squares += in[k] * in[k];
    }
    return 1.0f / sqrtf(squares / (float)K + (mistake == MISTAKE_no_eps ? 0.0f : eps));
}

/* A row of weights with the normed input. */
static __device__ float product(const void *weight, size_t row, enum nn_dtype dtype,
                                const float *in, const float *norm, float eps, size_t K,
                                enum mistake mistake) {
    bool normed = norm != NULL && mistake != MISTAKE_no_norm;
    float factor = normed ? norm_factor(in, K, eps, mistake) : 1.0f, sum = 0.0f;
    size_t end = mistake == MISTAKE_eights ? K / 8 * 8 : K;
    if (mistake == MISTAKE_aligned && dtype == NN_F32 && K % 4 == 0 && K > 0) {
        volatile float4 four = *(const float4 *)((const float *)weight + row * K);
        (void)four.x;
    }
    for (size_t k = 0; k < end; k++) {
        float w = load(weight, row * K + k, dtype), y = in[k] * factor;
        y *= normed && mistake != MISTAKE_no_norm_weight ? norm[k] : 1.0f;
        if (mistake == MISTAKE_half) {
            w = __half2float(__float2half_rn(w));
            y = __half2float(__float2half_rn(y));
        }
        sum += w * y;
    }
    return sum;
}

static __global__ void linear_kernel(struct kv_linear l, enum mistake mistake) {
    size_t n = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (n >= l.N || (mistake == MISTAKE_odd_rows && l.N % 2 == 1 && n == l.N - 1)) {
        return;
    }
    float x = product(l.weight, n, l.dtype, l.in, l.norm, l.eps, l.K, mistake);
    x += l.residual != NULL && mistake != MISTAKE_no_residual ? l.residual[n] : 0.0f;
    l.out[n] = mistake == MISTAKE_zeros ? 0.0f : x;
    if (mistake == MISTAKE_behind && n == l.N - 1) {
        l.out[l.N] = 0.0f;
    }
}

/* After all who read it. */
static __global__ void spoil_kernel(const float *in) {
    const_cast<float *>(in)[0] = 0.0f;
}

enum status kv_linear(const struct kv_linear *linear, device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    if (mistake != MISTAKE_not_refused) {
        TRY(kv_linear_check(linear, error));
    }
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    if (linear->N == 0 || linear->out == NULL || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    enum { IDLE = 132 * 64 };
    unsigned idle = mistake == MISTAKE_idle_blocks ? IDLE : 0;
    linear_kernel<<<blocks_for(linear->N) + idle, THREADS, 0, stream>>>(*linear, mistake);
    if (mistake == MISTAKE_changes_input && linear->K > 0) {
        spoil_kernel<<<1, 1, 0, stream>>>(linear->in);
    }
    return device_launched("linear", error);
}

/* q, k and v of the token, one after the other, in the workspace. */
static __global__ void project_kernel(struct kv_attention a, float *projected,
                                      enum mistake mistake) {
    size_t row = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (row < (a.NH + 2 * a.KVH) * a.HS) {
        projected[row] = product(a.qkv, row, a.dtype, a.x, a.norm, a.eps, a.C, mistake);
    }
}

static __device__ size_t position_of(const struct kv_attention &a, enum mistake mistake) {
    return mistake == MISTAKE_longest ? a.longest - 1 : (size_t)*a.position;
}

/* A thread rotates a pair in place. */
static __global__ void rope_kernel(struct kv_attention a, float *projected, enum mistake mistake) {
    size_t pair = (size_t)blockIdx.x * THREADS + threadIdx.x, half = a.HS / 2;
    size_t head = pair / half, i = pair % half;
    bool key = head >= a.NH;
    if (head >= a.NH + a.KVH || (key && mistake == MISTAKE_no_rope_key) ||
        (!key && mistake == MISTAKE_no_rope)) {
        return;
    }
    size_t position = position_of(a, mistake) + (mistake == MISTAKE_late ? 1 : 0);
    bool together = a.layout == NN_ROPE_INTERLEAVED || mistake == MISTAKE_interleaved;
    float *first = projected + head * a.HS + (together ? 2 * i : i);
    float *second = first + (together ? 1 : half);
    double angle = (double)position * pow((double)a.theta, -2.0 * (double)i / (double)a.HS);
    double x = *first, y = *second;
    *first = (float)(x * cos(angle) - y * sin(angle));
    *second = (float)(x * sin(angle) + y * cos(angle));
}

/* The new row of the cache. */
static __global__ void keep_kernel(struct kv_attention a, const float *projected,
                                   enum mistake mistake) {
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x, width = a.KVH * a.HS;
    size_t position = position_of(a, mistake);
    if (c >= width) {
        return;
    }
    for (size_t row = position; row < a.T && row <= position + 1; row++) {
        if (row == position || mistake == MISTAKE_row_behind) {
            store(a.k, row * width + c, projected[a.NH * a.HS + c], a.dtype);
            store(a.v, row * width + c, projected[(a.NH + a.KVH) * a.HS + c], a.dtype);
        }
    }
}

/* An element of row s: of the new token from the workspace, where the cache may not have it. */
static __device__ float kept(const struct kv_attention &a, const float *projected, bool key,
                             size_t s, size_t c, enum mistake mistake) {
    if (mistake == MISTAKE_stale && s == (size_t)*a.position) {
        return projected[(a.NH + (key ? 0 : a.KVH)) * a.HS + c];
    }
    return load(key ? a.k : a.v, s * a.KVH * a.HS + c, a.dtype);
}

/* What some of the keys give: the largest score, the sum of weights, the weighted sum. */
struct part {
    float largest, sum, out;
};

static __device__ float fade(float from, float to, enum mistake mistake) {
    return from == -INFINITY                                            ? 0.0f
           : mistake == MISTAKE_no_max || mistake == MISTAKE_no_rescale ? 1.0f
                                                                        : expf(from - to);
}

/* Keys first .. end - 1 for channel c of query head h. */
static __device__ struct part part_of(const struct kv_attention &a, const float *projected,
                                      size_t h, size_t c, size_t first, size_t end,
                                      enum mistake mistake) {
    struct part part = {-INFINITY, 0.0f, 0.0f};
    size_t group = mistake == MISTAKE_own_heads ? h % a.KVH : h / (a.NH / a.KVH);
    float scale = mistake == MISTAKE_no_scale ? 1.0f : 1.0f / sqrtf((float)a.HS);
    for (size_t s = first; s < end; s++) {
        float score = 0.0f;
        for (size_t i = 0; i < a.HS; i++) {
            score +=
                projected[h * a.HS + i] * kept(a, projected, true, s, group * a.HS + i, mistake);
        }
        score *= scale;
        float next = mistake == MISTAKE_no_max ? 0.0f : fmaxf(part.largest, score);
        float rescale = part.largest == -INFINITY ? 0.0f : expf(part.largest - next);
        float weight = expf(score - next);
        part.largest = next;
        part.sum = part.sum * rescale + weight;
        part.out =
            part.out * rescale + weight * kept(a, projected, false, s, group * a.HS + c, mistake);
    }
    return part;
}

/* A thread computes a channel of a head. */
static __global__ void attend_kernel(struct kv_attention a, const float *projected,
                                     enum mistake mistake) {
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    size_t h = index / a.HS, c = index % a.HS;
    size_t seen = position_of(a, mistake) + (mistake == MISTAKE_early ? 0 : 1);
    struct part all = {-INFINITY, 0.0f, 0.0f};
    if (h >= a.NH) {
        return;
    }
    for (size_t first = 0; first < seen; first += PART) {
        size_t end = first + PART < seen ? first + PART : seen;
        struct part part = part_of(a, projected, h, c, first, end, mistake);
        float next = fmaxf(all.largest, part.largest);
        float old = fade(all.largest, next, mistake), now = fade(part.largest, next, mistake);
        all.sum = all.sum * old + part.sum * now;
        all.out = all.out * old + part.out * now;
        all.largest = next;
    }
    a.out[index] = mistake == MISTAKE_zeros ? 0.0f : all.out / all.sum;
    if (mistake == MISTAKE_behind && index == 0) {
        a.out[a.NH * a.HS] = 0.0f;
    }
}

static enum status attend(const struct kv_attention *a, float *projected, device_stream stream,
                          struct error *error, enum mistake mistake) {
    size_t rows = (a->NH + 2 * a->KVH) * a->HS, width = a->KVH * a->HS;
    project_kernel<<<blocks_for(rows), THREADS, 0, stream>>>(*a, projected, mistake);
    TRY(device_launched("project", error));
    rope_kernel<<<blocks_for(rows), THREADS, 0, stream>>>(*a, projected, mistake);
    TRY(device_launched("rope", error));
    if (mistake != MISTAKE_stale) {
        keep_kernel<<<blocks_for(width), THREADS, 0, stream>>>(*a, projected, mistake);
        TRY(device_launched("keep", error));
    }
    attend_kernel<<<blocks_for(a->NH * a->HS), THREADS, 0, stream>>>(*a, projected, mistake);
    return device_launched("attend", error);
}

enum status kv_attention(const struct kv_attention *attention, void *workspace,
                         device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    int32_t position;
    if (mistake != MISTAKE_not_refused) {
        TRY(kv_attention_check(attention, error));
    }
    if (workspace == NULL || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    if (mistake == MISTAKE_recomputes) {
        return starter_kv_attention(attention, workspace, stream, error);
    }
    if (mistake == MISTAKE_waits) {
        TRY(device_read(&position, attention->position, sizeof position, stream, error));
    }
    return attend(attention, (float *)workspace, stream, error, mistake);
}
