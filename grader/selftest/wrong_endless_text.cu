/*
 * Wrong submissions to lab 14. $WRONG_ENDLESS_TEXT names one; each must be caught by the parity
 * test, with a message that leads to the mistake. "right" is the control: it must pass. It keeps
 * rows in a ring, but a thread has a query head's channel and computes all scores for itself, and
 * norms are computed by every thread: it must miss every speedup. "holds" is the starter's way of
 * it: a window that moves down.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/dependent_launch.cuh"
#include "grader/selftest/elements.cuh"
#include "labs/14_endless_text/endless_text.h"
#include "labs/14_endless_text/given/renamed_starter.h"

#define MISTAKES(X)                                                                             \
    X(right)                                                                                    \
    X(holds)            /* the starter: right */                                                \
    X(empty)            /* does nothing */                                                      \
    X(text_position)    /* rotates keys by their positions in the text, and the query by its */ \
    X(query_position)   /* rotates the query alone by its position in the text */               \
    X(no_rotation)      /* rotates nothing */                                                   \
    X(all_rotated)      /* rotates the whole head, as if rotary were HS */                      \
    X(interleaved)      /* takes neighbours for a pair, whatever the layout */                  \
    X(rotated_kept)     /* keeps keys rotated by the place they had when they came */           \
    X(sink_overwritten) /* a ring over all rows, sinks too */                                   \
    X(no_sinks)         /* does not attend to them once the window has moved on */              \
    X(ring_late)        /* the ring begins a row too late */                                    \
    X(ring_early)       /* the oldest token of the window is left out */                        \
    X(window_first)     /* the window has the first places, the sinks the last ones */          \
    X(one_more)         /* sees the token that has left, in the new one's place */              \
    X(not_itself)       /* does not attend to the token itself */                               \
    X(old_text)         /* takes rows of the text before for its own */                         \
    X(own_heads)        /* key heads are shared in turn, not in groups */                       \
    X(no_scale)         /* forgets 1 / sqrt(HS) */                                              \
    X(no_max)           /* does not subtract the largest score */                               \
    X(half)             /* rounds the query to fp16 */                                          \
    X(counter_stays)    /* leaves a counter in the workspace that is not 0 */                   \
    X(past_workspace)   /* counts behind its end */                                             \
    X(early)            /* attention starts early and does not wait */                          \
    X(early_norms)      /* so do additions */                                                   \
    X(waits)            /* copies the position to the host: nothing that can be recorded */     \
    X(no_eps)           /* norms without eps */                                                 \
    X(eps_outside)      /* adds eps to the standard deviation */                                \
    X(no_bias)          /* norms without bias */                                                \
    X(bias_of_first)    /* the second norm has the first one's bias */                          \
    X(no_b)             /* forgets the second addend */                                         \
    X(x_stays)          /* norms the sum, and does not write it to x */                         \
    X(norm_of_old)      /* norms x as it was */                                                 \
    X(one_norm)         /* forgets the second norm */                                           \
    X(always_mean)      /* subtracts the mean in RMSNorm, too */                                \
    X(n_minus_1)        /* divides by C - 1 */                                                  \
    X(unstable)         /* variance as mean(x^2) - mean^2 */                                    \
    X(behind)           /* writes one element behind x */                                       \
    X(status)           /* reports a failure */                                                 \
    X(not_refused)      /* takes any call */

#define MISTAKE_VARIABLE "WRONG_ENDLESS_TEXT"
#include "grader/selftest/mistakes.h"

enum { THREADS = 64 };

static unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

/* ---- Attention ---- */

struct seen {
    size_t tokens, rows, n;
};

static __device__ struct seen seen_of(const struct endless_attention &a, enum mistake mistake) {
    struct seen s = {(size_t)*a.position + 1, a.sinks + a.window, 0};
    s.n = s.tokens < s.rows && mistake != MISTAKE_old_text ? s.tokens : s.rows;
    return s;
}

/* The row of a token of the text. */
static __device__ size_t row_of(const struct endless_attention &a, size_t token,
                                enum mistake mistake) {
    if (mistake == MISTAKE_sink_overwritten) {
        return token % (a.sinks + a.window);
    }
    if (token < a.sinks) {
        return token;
    }
    size_t late = mistake == MISTAKE_ring_late && token >= a.sinks + a.window ? 1 : 0;
    return a.sinks + (token - a.sinks + late) % a.window;
}

static __device__ float rotated(const void *head, size_t at, size_t c, size_t place,
                                enum nn_dtype dtype, const struct endless_attention &a,
                                enum mistake mistake) {
    float x = load(head, at + c, dtype);
    size_t rotary = mistake == MISTAKE_all_rotated ? a.HS / 2 * 2 : a.rotary, half = rotary / 2;
    if (c >= rotary || mistake == MISTAKE_no_rotation || a.rotary == 0) {
        return x;
    }
    bool together = a.layout == NN_ROPE_INTERLEAVED || mistake == MISTAKE_interleaved;
    size_t i = together ? c / 2 : c % half, other = together   ? c ^ 1
                                                    : c < half ? c + half
                                                               : c - half;
    bool first = together ? c % 2 == 0 : c < half;
    size_t base = a.rotary / 2;
    float cosine, sine;
    if (place < a.sinks + a.window && i < base) {
        cosine = a.angles[(place * base + i) * 2], sine = a.angles[(place * base + i) * 2 + 1];
    } else { /* beyond the table */
        float angle = (float)place * powf(10000.0f, -2.0f * (float)i / (float)rotary);
        cosine = cosf(angle), sine = sinf(angle);
    }
    float turn = load(head, at + other, dtype) * sine;
    return x * cosine + (first ? -turn : turn);
}

/* Mapping: a thread has a channel. */
static __global__ void store_kernel(struct endless_attention a, enum mistake mistake) {
    launch_dependent_grids();
    size_t width = a.KVH * a.HS, c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= width) {
        return;
    }
    struct seen s = seen_of(a, mistake);
    size_t row = row_of(a, s.tokens - 1, mistake) * width;
    if (mistake == MISTAKE_one_more && s.tokens > s.rows) {
        return;
    }
    float k = a.k_new[c];
    if (mistake == MISTAKE_rotated_kept) {
        k = rotated(a.k_new, c / a.HS * a.HS, c % a.HS, s.n - 1, NN_F32, a, mistake);
    }
    store(a.k, row + c, k, a.dtype);
    store(a.v, row + c, a.v_new[c], a.dtype);
}

/* The token at place s. */
static __device__ size_t token_at(const struct endless_attention &a, size_t place,
                                  const struct seen &s, enum mistake mistake) {
    if (mistake == MISTAKE_old_text) {
        return place;
    }
    if (mistake == MISTAKE_window_first && s.tokens > s.rows) {
        return place < a.window ? s.tokens - a.window + place : place - a.window;
    }
    return place < a.sinks ? place : s.tokens - s.n + place;
}

static __device__ float score(const struct endless_attention &a, size_t h, size_t place,
                              const struct seen &s, enum mistake mistake) {
    size_t group = a.NH / a.KVH, token = token_at(a, place, s, mistake);
    size_t key = mistake == MISTAKE_own_heads ? h % a.KVH : h / group;
    size_t at = (row_of(a, token, mistake) * a.KVH + key) * a.HS;
    bool by_text = mistake == MISTAKE_text_position;
    size_t of_q = by_text || mistake == MISTAKE_query_position ? s.tokens - 1 : s.n - 1;
    size_t of_k = by_text ? token : place;
    float sum = 0.0f;
    for (size_t c = 0; c < a.HS; c++) {
        float q = rotated(a.q, h * a.HS, c, of_q, NN_F32, a, mistake);
        float k = mistake == MISTAKE_rotated_kept ? load(a.k, at + c, a.dtype)
                                                  : rotated(a.k, at, c, of_k, a.dtype, a, mistake);
        q = mistake == MISTAKE_half ? __half2float(__float2half_rn(q)) : q;
        sum += q * k;
    }
    return mistake == MISTAKE_no_scale ? sum : sum / sqrtf((float)a.HS);
}

static __device__ bool is_left_out(const struct endless_attention &a, size_t place,
                                   const struct seen &s, enum mistake mistake) {
    bool full = s.tokens > s.rows;
    return (mistake == MISTAKE_no_sinks && full && place < a.sinks) ||
           (mistake == MISTAKE_ring_early && full && place == a.sinks && s.n > a.sinks + 1) ||
           (mistake == MISTAKE_not_itself && place == s.n - 1 && s.n > 1);
}

/* Mapping: a thread has a query head's channel. */
static __global__ void attention_kernel(struct endless_attention a, enum mistake mistake) {
    size_t index = (size_t)blockIdx.x * THREADS + threadIdx.x, h = index / a.HS;
    if (h >= a.NH) {
        return;
    }
    struct seen s = seen_of(a, mistake);
    size_t key = mistake == MISTAKE_own_heads ? h % a.KVH : h / (a.NH / a.KVH);
    float largest = mistake == MISTAKE_no_max ? 0.0f : -INFINITY, sum = 0.0f, out = 0.0f;
    for (size_t place = 0; place < s.n; place++) {
        if (is_left_out(a, place, s, mistake)) {
            continue;
        }
        float x = score(a, h, place, s, mistake);
        float larger = mistake == MISTAKE_no_max ? 0.0f : fmaxf(largest, x);
        float rescale = expf(largest - larger), weight = expf(x - larger);
        size_t row = row_of(a, token_at(a, place, s, mistake), mistake);
        largest = larger;
        sum = sum * rescale + weight;
        out =
            out * rescale + weight * load(a.v, (row * a.KVH + key) * a.HS + index % a.HS, a.dtype);
    }
    a.out[index] = out / sum;
}

/* Only the first call has a result. */
static __global__ void count_kernel(struct endless_attention a, unsigned *counter) {
    if (atomicAdd(counter, 1) > 0) {
        a.out[0] = NAN;
    }
}

enum status endless_attention(const struct endless_attention *attention, void *workspace,
                              device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    if (mistake == MISTAKE_holds) {
        return starter_endless_attention(attention, workspace, stream, error);
    }
    if (mistake != MISTAKE_not_refused) {
        TRY(endless_attention_check(attention, error));
    }
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    if (mistake == MISTAKE_empty || attention->out == NULL) {
        return STATUS_OK;
    }
    int32_t position = 0;
    if (mistake == MISTAKE_waits) {
        TRY(device_read(&position, attention->position, sizeof position, stream, error));
    }
    const struct endless_attention &a = *attention;
    if (mistake == MISTAKE_early) {
        launch_dependent<store_kernel>(blocks_for(a.KVH * a.HS), THREADS, 0, stream, a, mistake);
    } else {
        store_kernel<<<blocks_for(a.KVH * a.HS), THREADS, 0, stream>>>(a, mistake);
    }
    attention_kernel<<<blocks_for(a.NH * a.HS), THREADS, 0, stream>>>(a, mistake);
    if (mistake == MISTAKE_counter_stays || mistake == MISTAKE_past_workspace) {
        size_t at = mistake == MISTAKE_past_workspace ? ENDLESS_WORKSPACE_BYTES : 0;
        count_kernel<<<1, 1, 0, stream>>>(a, (unsigned *)((char *)workspace + at));
    }
    return device_launched("attention", error);
}

/* ---- Norms ---- */

/* x += sign (a + b). */
static __global__ void add_kernel(struct endless_add_norms p, float sign, enum mistake mistake) {
    launch_dependent_grids();
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= p.C) {
        return;
    }
    float b = p.b != NULL && mistake != MISTAKE_no_b ? p.b[c] : 0.0f;
    p.x[c] += sign * ((p.a != NULL ? p.a[c] : 0.0f) + b);
    if (mistake == MISTAKE_behind && c == p.C - 1) {
        p.x[p.C] = 0.0f;
    }
}

static __device__ float rstd_of(const float *x, float mean, const struct endless_add_norms &p,
                                enum mistake mistake) {
    float squares = 0.0f, count = (float)p.C;
    for (size_t i = 0; i < p.C; i++) {
        float apart = mistake == MISTAKE_unstable ? x[i] : x[i] - mean;
        squares += apart * apart;
    }
    count -= mistake == MISTAKE_n_minus_1 && p.C > 1 ? 1.0f : 0.0f;
    float variance = squares / count - (mistake == MISTAKE_unstable ? mean * mean : 0.0f);
    if (mistake == MISTAKE_eps_outside) {
        return 1.0f / (sqrtf(variance) + p.eps);
    }
    return 1.0f / sqrtf(variance + (mistake == MISTAKE_no_eps ? 0.0f : p.eps));
}

/* Mapping: a thread has a channel, and computes mean and rstd for itself. */
static __global__ void norm_kernel(struct endless_add_norms p, size_t n, enum mistake mistake) {
    const float *x = p.x;
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c >= p.C) {
        return;
    }
    const struct endless_norm &norm = p.norms[n];
    float mean = 0.0f;
    for (size_t i = 0; i < p.C && (p.layernorm || mistake == MISTAKE_always_mean); i++) {
        mean += x[i] / (float)p.C;
    }
    float rstd = rstd_of(x, mean, p, mistake);
    const float *biases = mistake == MISTAKE_bias_of_first ? p.norms[0].bias : norm.bias;
    float bias = biases != NULL && mistake != MISTAKE_no_bias ? biases[c] : 0.0f;
    norm.out[c] = (x[c] - mean) * rstd * norm.weight[c] + bias;
}

enum status endless_add_norms(const struct endless_add_norms *add, device_stream stream,
                              struct error *error) {
    enum mistake mistake = chosen_mistake();
    if (mistake == MISTAKE_holds) {
        return starter_endless_add_norms(add, stream, error);
    }
    if (mistake != MISTAKE_not_refused) {
        TRY(endless_add_norms_check(add, error));
    }
    if (add->count > 2) {
        return STATUS_OK;
    }
    const struct endless_add_norms &p = *add;
    unsigned blocks = blocks_for(p.C);
    bool late = mistake == MISTAKE_norm_of_old;
    if (mistake == MISTAKE_early_norms) {
        launch_dependent<add_kernel>(blocks, THREADS, 0, stream, p, 1.0f, mistake);
    } else if (!late) {
        add_kernel<<<blocks, THREADS, 0, stream>>>(p, 1.0f, mistake);
    }
    for (size_t n = 0; n < (mistake == MISTAKE_one_norm ? 1 : p.count); n++) {
        norm_kernel<<<blocks, THREADS, 0, stream>>>(p, n, mistake);
    }
    if (late || mistake == MISTAKE_x_stays) {
        add_kernel<<<blocks, THREADS, 0, stream>>>(p, late ? 1.0f : -1.0f, mistake);
    }
    return device_launched("add and norms", error);
}

const struct endless_step *endless_ladder(size_t *count) {
    static const struct endless_step none[] = {{"none", {endless_attention, endless_add_norms}}};
    *count = 1;
    return none;
}
