/*
 * Wrong submissions to lab 07. $WRONG_ATTENTION names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass. It is a softmax
 * that goes along with the keys, a thread a query, and must miss the speedup; so must
 * "idle_blocks", the same beside idle blocks.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "grader/selftest/elements.cuh"
#include "labs/07_attention/attention.h"

#define MISTAKES(X)                                                                    \
    X(right)                                                                           \
    X(idle_blocks)   /* right, beside many blocks that do nothing */                   \
    X(empty)         /* does nothing */                                                \
    X(zeros)         /* writes zeros */                                                \
    X(no_mask)       /* ignores the mask */                                            \
    X(adds_mask)     /* masks the score, but multiplies the masked value with zero */  \
    X(unstable)      /* does not subtract the largest score */                         \
    X(no_rescale)    /* does not correct what it summed up when the largest changes */ \
    X(late)          /* causal: sees one key too many */                               \
    X(early)         /* causal: sees one key too few */                                \
    X(square)        /* causal: takes S for T */                                       \
    X(odd_queries)   /* leaves out the last query when there is an odd number */       \
    X(neighbours)    /* packed sequences see the one before them */                    \
    X(padded)        /* packed sequences are taken for padded ones */                  \
    X(own_heads)     /* every query head has key heads of its own */                   \
    X(all_hidden)    /* divides by zero where no key is seen */                        \
    X(contiguous)    /* ignores the strides */                                         \
    X(no_scale)      /* ignores the scale */                                           \
    X(half)          /* sums up in 16 bits */                                          \
    X(aligned)       /* loads 16 bytes at once, wherever they lie */                   \
    X(behind)        /* writes one element behind the output */                        \
    X(changes_input) /* changes q */                                                   \
    X(status)        /* reports a failure */                                           \
    X(not_refused)   /* takes any call */

#define MISTAKE_VARIABLE "WRONG_ATTENTION"
#include "grader/selftest/mistakes.h"

enum { THREADS = 32, MOST_HS = (int)ATTENTION_MAX_HS };

/* What a thread's query sees. */
struct view {
    size_t q, kv, out, q_stride, kv_stride;
    long first, end; /* keys, counted from kv */
    const uint8_t *mask;
};

/* @return whether there is such a query */
static __device__ bool find_view(const struct attention_problem &p, enum mistake mistake,
                                 struct view *view) {
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x;
    size_t h = index % p.NH, t = index / p.NH % p.T, b = index / p.NH / p.T;
    if (b >= p.B) {
        return false;
    }
    size_t T = p.T, S = p.S, q_token = b * p.T + t, kv_token = b * p.S;
    view->first = 0;
    if (p.starts != NULL && mistake != MISTAKE_padded) {
        T = S = (size_t)(p.starts[b + 1] - p.starts[b]);
        kv_token = (size_t)p.starts[b];
        q_token = kv_token + t;
        if (mistake == MISTAKE_neighbours && b > 0) {
            view->first = (long)p.starts[b - 1] - (long)p.starts[b];
        }
    }
    bool packed_stride = mistake == MISTAKE_contiguous;
    size_t head = mistake == MISTAKE_own_heads ? h % p.KVH : h / (p.NH / p.KVH);
    view->q_stride = packed_stride ? p.NH * p.HS : p.q_stride;
    view->kv_stride = packed_stride ? p.KVH * p.HS : p.kv_stride;
    view->q = q_token * view->q_stride + h * p.HS;
    view->kv = kv_token * view->kv_stride + head * p.HS;
    view->out = q_token * p.out_stride + h * p.HS;
    view->end = (long)S;
    if (p.causal) {
        long shift = mistake == MISTAKE_late ? 1 : mistake == MISTAKE_early ? -1 : 0;
        long seen = (long)((mistake == MISTAKE_square ? 0 : S - T) + t + 1) + shift;
        view->end = seen < (long)S ? seen : (long)S;
    }
    view->mask = p.mask != NULL && mistake != MISTAKE_no_mask ? p.mask + b * p.S : NULL;
    return t < T && !(mistake == MISTAKE_odd_queries && T % 2 == 1 && t == T - 1);
}

static __device__ float score_of(const struct attention_problem &p, const struct view &view, long s,
                                 enum mistake mistake) {
    float sum = 0.0f;
    size_t c = 0;
    if (mistake == MISTAKE_aligned && p.dtype == NN_F32) {
        for (; c + 4 <= p.HS; c += 4) {
            float4 k = *(const float4 *)((const float *)p.k + view.kv + s * view.kv_stride + c);
            const float parts[4] = {k.x, k.y, k.z, k.w};
            for (int i = 0; i < 4; i++) {
                sum += ((const float *)p.q)[view.q + c + i] * parts[i];
            }
        }
    }
    for (; c < p.HS; c++) {
        sum +=
            load(p.q, view.q + c, p.dtype) * load(p.k, view.kv + s * view.kv_stride + c, p.dtype);
        sum = mistake == MISTAKE_half ? __half2float(__float2half_rn(sum)) : sum;
    }
    return mistake == MISTAKE_no_scale ? sum : p.scale * sum;
}

static __global__ void query_kernel(struct attention_problem p, enum mistake mistake) {
    struct view view;
    if (!find_view(p, mistake, &view)) {
        return;
    }
    float out[MOST_HS], largest = -INFINITY, sum = 0.0f;
    for (size_t c = 0; c < p.HS; c++) {
        out[c] = 0.0f;
    }
    for (long s = view.first; s < view.end; s++) {
        bool masked = view.mask != NULL && view.mask[s] == 0;
        if (masked && mistake != MISTAKE_adds_mask) {
            continue;
        }
        float score = masked ? -INFINITY : score_of(p, view, s, mistake);
        float now = mistake == MISTAKE_unstable ? 0.0f : fmaxf(largest, score);
        float rescale =
            largest == -INFINITY || mistake == MISTAKE_unstable ? 1.0f : expf(largest - now);
        rescale = mistake == MISTAKE_no_rescale ? 1.0f : rescale;
        float weight = score == -INFINITY ? 0.0f : expf(score - now);
        largest = now;
        sum = sum * rescale + weight;
        for (size_t c = 0; c < p.HS; c++) {
            out[c] =
                out[c] * rescale + weight * load(p.v, view.kv + s * view.kv_stride + c, p.dtype);
        }
    }
    for (size_t c = 0; c < p.HS; c++) {
        float x = sum == 0.0f && mistake != MISTAKE_all_hidden ? 0.0f : out[c] / sum;
        store(p.out, view.out + c, mistake == MISTAKE_zeros ? 0.0f : x, p.dtype);
    }
    if (mistake == MISTAKE_changes_input) {
        store(const_cast<void *>(p.q), view.q, 0.0f, p.dtype);
    }
    if (mistake == MISTAKE_behind && blockIdx.x == gridDim.x - 1) {
        store(p.out, p.B * p.T * p.out_stride, 0.0f, p.dtype);
    }
}

static enum status run(const struct attention_problem *p, device_stream stream,
                       struct error *error) {
    enum mistake mistake = chosen_mistake();
    enum status status = mistake == MISTAKE_not_refused ? STATUS_OK : attention_check(p, error);
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    size_t queries = p->B * p->T * p->NH;
    if (status != STATUS_OK || queries * p->HS == 0 || mistake == MISTAKE_empty || p->q == NULL) {
        return status;
    }
    enum { IDLE = 132 * 64 };
    unsigned idle = mistake == MISTAKE_idle_blocks ? IDLE : 0;
    query_kernel<<<(unsigned)((queries + THREADS - 1) / THREADS) + idle, THREADS, 0, stream>>>(
        *p, mistake);
    return device_launched("query_kernel", error);
}

const struct attention_step *attention_ladder(size_t *count) {
    static const struct attention_step step = {"query", run};
    *count = 1;
    return &step;
}

enum status attention(const struct attention_problem *problem, device_stream stream,
                      struct error *error) {
    return run(problem, stream, error);
}
