/*
 * Wrong submissions to lab 11. $WRONG_TRAINING names one; each must be caught by the parity test,
 * with a message that leads to the mistake. "right" is the control: it must pass, and must miss
 * every speedup.
 */
#include <stdlib.h>
#include <string.h>

#include "grader/selftest/elements.cuh"
#include "labs/11_training/training.h"

#define MISTAKES(X)                                                                          \
    X(right)                                                                                 \
    X(empty)                /* does nothing */                                               \
    X(norm_no_mean)         /* leaves out mean(g) */                                         \
    X(norm_no_stretch)      /* leaves out xhat * mean(g * xhat) */                           \
    X(norm_no_weight)       /* g = dout */                                                   \
    X(norm_no_rstd)         /* forgets the factor rstd */                                    \
    X(norm_n_minus_1)       /* means over C - 1 */                                           \
    X(norm_overwrites)      /* dweight = for dweight += */                                   \
    X(norm_by_input)        /* dweight = sum of dout * in */                                 \
    X(norm_dbias_weight)    /* dbias = sum of dout * weight */                               \
    X(norm_last_row)        /* the columns leave out the last row */                         \
    X(norm_in_order)        /* writes din before the columns are summed: dout may be gone */ \
    X(norm_half)            /* fp32 goes through fp16 */                                     \
    X(norm_unstable)        /* xhat = in * rstd - mean * rstd, in fp32 */                    \
    X(norm_behind)          /* writes one element behind din */                              \
    X(attention_others)     /* sees other texts, too */                                      \
    X(attention_future)     /* overlooks causal */                                           \
    X(attention_delta)      /* ds = p * dp */                                                \
    X(attention_no_lse)     /* p = exp(s) */                                                 \
    X(attention_scale)      /* forgets the scale in dq and dk */                             \
    X(attention_unscaled)   /* forgets the scale in the scores */                            \
    X(attention_last_head)  /* a key head gets what its last query head gives it */          \
    X(attention_own_heads)  /* key heads are shared in turn, not in groups */                \
    X(attention_dense)      /* takes rows for contiguous */                                  \
    X(attention_between)    /* writes what lies between rows */                              \
    X(attention_transposed) /* dv = p * dout, without transposing p */                       \
    X(attention_half)       /* fp32 goes through fp16 */                                     \
    X(attention_bf16_sums)  /* sums up in bf16 where that is the storage */                  \
    X(adamw_no_unbias)      /* m and v as they are */                                        \
    X(adamw_step_late)      /* unbiases as one step later */                                 \
    X(adamw_no_decay)       /* nothing decays */                                             \
    X(adamw_all_decay)      /* everything decays */                                          \
    X(adamw_decay_in_g)     /* decay is added to the gradient: Adam with L2 */               \
    X(adamw_eps_inside)     /* sqrt(v + eps) */                                              \
    X(adamw_no_scale)       /* overlooks clipping */                                         \
    X(adamw_truncates)      /* the copy is cut off, not rounded */                           \
    X(adamw_old_copy)       /* the copy is of the weights before the step */                 \
    X(adamw_fours)          /* leaves out what is beyond a multiple of 4 */                  \
    X(adamw_clears)         /* sets the gradient to 0 */                                     \
    X(other_bits)           /* every second call rounds otherwise */                         \
    X(status)               /* reports a failure */                                          \
    X(not_refused)          /* takes any call */

#define MISTAKE_VARIABLE "WRONG_TRAINING"
#include "grader/selftest/mistakes.h"

enum { THREADS = 64 };

static unsigned blocks_for(size_t count) {
    return (unsigned)((count + THREADS - 1) / THREADS);
}

static __device__ size_t thread_index() {
    return (size_t)blockIdx.x * THREADS + threadIdx.x;
}

static __device__ float halved(float x) {
    return __half2float(__float2half_rn(x));
}

/* ---- LayerNorm ---- */

/* A call, and which mistake; odd: whether an odd number of calls went before it. */
struct norm_call {
    struct layernorm_backward_problem p;
    enum mistake mistake;
    bool odd;
};

static __device__ float xhat_of(const struct norm_call &c, size_t row, size_t column) {
    float in = load(c.p.in, row * c.p.C + column, c.p.dtype);
    float mean = c.p.stats[2 * row], rstd = c.p.stats[2 * row + 1];
    if (c.mistake == MISTAKE_norm_half && c.p.dtype == NN_F32) {
        return halved(halved(in - mean) * halved(rstd));
    }
    if (c.mistake == MISTAKE_norm_unstable) {
        return __fadd_rn(__fmul_rn(in, rstd), -__fmul_rn(mean, rstd) * (1.0f + 0x1p-12f));
    }
    return (in - mean) * rstd;
}

static __device__ float g_of(const struct norm_call &c, size_t row, size_t column) {
    float weight = c.mistake == MISTAKE_norm_no_weight ? 1.0f : c.p.weight[column];
    return load(c.p.dout, row * c.p.C + column, c.p.dtype) * weight;
}

static __global__ void columns_kernel(struct norm_call c) {
    size_t column = thread_index();
    if (column >= c.p.C) {
        return;
    }
    size_t rows = c.mistake == MISTAKE_norm_last_row ? c.p.rows - 1 : c.p.rows;
    float dweight = 0.0f, dbias = 0.0f;
    for (size_t row = 0; row < rows; row++) {
        float dout = load(c.p.dout, row * c.p.C + column, c.p.dtype);
        float in = load(c.p.in, row * c.p.C + column, c.p.dtype);
        dweight += dout * (c.mistake == MISTAKE_norm_by_input ? in : xhat_of(c, row, column));
        dbias += dout * (c.mistake == MISTAKE_norm_dbias_weight ? c.p.weight[column] : 1.0f);
    }
    bool overwrites = c.mistake == MISTAKE_norm_overwrites;
    dweight *= c.mistake == MISTAKE_other_bits && c.odd ? 1.0f + 0x1p-22f : 1.0f;
    c.p.dweight[column] = dweight + (overwrites ? 0.0f : c.p.dweight[column]);
    c.p.dbias[column] = dbias + (overwrites ? 0.0f : c.p.dbias[column]);
}

static __global__ void rows_kernel(struct norm_call c) {
    size_t row = thread_index(), C = c.p.C;
    if (row >= c.p.rows) {
        return;
    }
    float g_mean = 0.0f, gx_mean = 0.0f;
    float count = c.mistake == MISTAKE_norm_n_minus_1 && C > 1 ? (float)(C - 1) : (float)C;
    for (size_t i = 0; i < C; i++) {
        g_mean += g_of(c, row, i) / count;
        gx_mean += g_of(c, row, i) * xhat_of(c, row, i) / count;
    }
    g_mean = c.mistake == MISTAKE_norm_no_mean ? 0.0f : g_mean;
    gx_mean = c.mistake == MISTAKE_norm_no_stretch ? 0.0f : gx_mean;
    float rstd = c.mistake == MISTAKE_norm_no_rstd ? 1.0f : c.p.stats[2 * row + 1];
    for (size_t i = 0; i < C; i++) {
        float x = rstd * (g_of(c, row, i) - g_mean - xhat_of(c, row, i) * gx_mean);
        store(c.p.din, row * C + i, x, c.p.dtype);
    }
    if (c.mistake == MISTAKE_norm_behind && row == c.p.rows - 1) {
        store(c.p.din, c.p.rows * C, 0.0f, c.p.dtype);
    }
}

/* Whether an odd number of calls went before this one. */
static bool odd_call() {
    static int calls;
    return calls++ % 2 == 1;
}

enum status layernorm_backward(const struct layernorm_backward_problem *problem, void *workspace,
                               device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    (void)workspace;
    if (mistake != MISTAKE_not_refused) {
        TRY(layernorm_backward_check(problem, error));
    }
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    if (problem->rows == 0 || problem->dout == NULL || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    const struct norm_call call = {*problem, mistake, odd_call()};
    if (mistake == MISTAKE_norm_in_order) {
        rows_kernel<<<blocks_for(problem->rows), THREADS, 0, stream>>>(call);
    }
    columns_kernel<<<blocks_for(problem->C), THREADS, 0, stream>>>(call);
    if (mistake != MISTAKE_norm_in_order) {
        rows_kernel<<<blocks_for(problem->rows), THREADS, 0, stream>>>(call);
    }
    return device_launched("layernorm_backward", error);
}

/* ---- Attention ---- */

struct attention_call {
    struct attention_backward_problem p;
    enum mistake mistake;
};

/* The rows that a row's text has. */
struct text {
    size_t first, end;
};

static __device__ struct text text_of(const struct attention_call &c, size_t row) {
    if (c.mistake == MISTAKE_attention_others) {
        return {0, c.p.rows};
    }
    size_t b = 0;
    while ((size_t)c.p.starts[b + 1] <= row) {
        b++;
    }
    return {(size_t)c.p.starts[b], (size_t)c.p.starts[b + 1]};
}

static __device__ size_t q_at(const struct attention_call &c, size_t row, size_t h) {
    bool dense = c.mistake == MISTAKE_attention_dense;
    return row * (dense ? c.p.NH * c.p.HS : c.p.q_stride) + h * c.p.HS;
}

static __device__ size_t k_at(const struct attention_call &c, size_t row, size_t kvh) {
    bool dense = c.mistake == MISTAKE_attention_dense;
    return row * (dense ? c.p.KVH * c.p.HS : c.p.kv_stride) + kvh * c.p.HS;
}

static __device__ size_t key_head(const struct attention_call &c, size_t h) {
    return c.mistake == MISTAKE_attention_own_heads ? h % c.p.KVH : h / (c.p.NH / c.p.KVH);
}

static __device__ float dot(const struct attention_call &c, const void *a, size_t a_at,
                            const void *b, size_t b_at) {
    bool half = c.mistake == MISTAKE_attention_half && c.p.dtype == NN_F32;
    float sum = 0.0f;
    for (size_t i = 0; i < c.p.HS; i++) {
        float x = load(a, a_at + i, c.p.dtype), y = load(b, b_at + i, c.p.dtype);
        sum += half ? halved(x) * halved(y) : x * y;
    }
    return sum;
}

/* p and ds of a query and a key. */
struct weights {
    float p, ds;
};

static __device__ struct weights weights_of(const struct attention_call &c, size_t h, size_t row,
                                            size_t key) {
    size_t kvh = key_head(c, h), at = (row * c.p.NH + h) * c.p.HS;
    if (c.p.causal && key > row && c.mistake != MISTAKE_attention_future) {
        return {0.0f, 0.0f};
    }
    float scale = c.mistake == MISTAKE_attention_unscaled ? 1.0f : c.p.scale;
    float lse = c.mistake == MISTAKE_attention_no_lse ? 0.0f : c.p.lse[row * c.p.NH + h];
    float p = expf(scale * dot(c, c.p.q, q_at(c, row, h), c.p.k, k_at(c, key, kvh)) - lse);
    float dp = dot(c, c.p.dout, at, c.p.v, k_at(c, key, kvh));
    float delta = c.mistake == MISTAKE_attention_delta ? 0.0f : dot(c, c.p.dout, at, c.p.out, at);
    return {p, p * (dp - delta)};
}

static __device__ float added(const struct attention_call &c, float sum, float x) {
    bool rounds = c.mistake == MISTAKE_attention_bf16_sums && c.p.dtype == NN_BF16;
    return rounds ? __bfloat162float(__float2bfloat16_rn(sum + x)) : sum + x;
}

/* A thread a row of dq, of one head. */
static __global__ void dq_kernel(struct attention_call c) {
    size_t h = thread_index() % c.p.NH, row = thread_index() / c.p.NH;
    if (row >= c.p.rows) {
        return;
    }
    struct text text = text_of(c, row);
    float sum[TRAINING_MAX_HS], scale = c.mistake == MISTAKE_attention_scale ? 1.0f : c.p.scale;
    for (size_t i = 0; i < c.p.HS; i++) {
        sum[i] = 0.0f;
    }
    for (size_t key = text.first; key < text.end; key++) {
        float ds = weights_of(c, h, row, key).ds;
        for (size_t i = 0; i < c.p.HS; i++) {
            float k = load(c.p.k, k_at(c, key, key_head(c, h)) + i, c.p.dtype);
            sum[i] = added(c, sum[i], ds * k);
        }
    }
    for (size_t i = 0; i < c.p.HS; i++) {
        store(c.p.dq, q_at(c, row, h) + i, scale * sum[i], c.p.dtype);
    }
    if (c.mistake == MISTAKE_attention_between && h == 0 && c.p.q_stride > c.p.NH * c.p.HS) {
        store(c.p.dq, (row + 1) * c.p.q_stride - 1, 0.0f, c.p.dtype);
    }
}

/* What a query head adds to a row of dk and dv. */
static __device__ void add_head(const struct attention_call &c, size_t h, size_t key, float *dk,
                                float *dv) {
    struct text text = text_of(c, key);
    for (size_t row = text.first; row < text.end; row++) {
        struct weights w = weights_of(c, h, row, key);
        float p = c.mistake == MISTAKE_attention_transposed ? weights_of(c, h, key, row).p : w.p;
        for (size_t i = 0; i < c.p.HS; i++) {
            float dout = load(c.p.dout, (row * c.p.NH + h) * c.p.HS + i, c.p.dtype);
            dk[i] = added(c, dk[i], w.ds * load(c.p.q, q_at(c, row, h) + i, c.p.dtype));
            dv[i] = added(c, dv[i], p * dout);
        }
    }
}

/* A thread a row of dk and dv, of one head. */
static __global__ void dkv_kernel(struct attention_call c) {
    size_t kvh = thread_index() % c.p.KVH, key = thread_index() / c.p.KVH;
    if (key >= c.p.rows) {
        return;
    }
    float dk[TRAINING_MAX_HS], dv[TRAINING_MAX_HS];
    float scale = c.mistake == MISTAKE_attention_scale ? 1.0f : c.p.scale;
    for (size_t i = 0; i < c.p.HS; i++) {
        dk[i] = dv[i] = 0.0f;
    }
    for (size_t h = 0; h < c.p.NH; h++) {
        for (size_t i = 0; i < c.p.HS && c.mistake == MISTAKE_attention_last_head; i++) {
            dk[i] = key_head(c, h) == kvh ? 0.0f : dk[i];
        }
        if (key_head(c, h) == kvh) {
            add_head(c, h, key, dk, dv);
        }
    }
    for (size_t i = 0; i < c.p.HS; i++) {
        store(c.p.dk, k_at(c, key, kvh) + i, scale * dk[i], c.p.dtype);
        store(c.p.dv, k_at(c, key, kvh) + i, dv[i], c.p.dtype);
    }
}

enum status attention_backward(const struct attention_backward_problem *problem, void *scratch,
                               device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    const struct attention_backward_problem *p = problem;
    (void)scratch;
    if (mistake != MISTAKE_not_refused) {
        TRY(attention_backward_check(p, error));
    }
    if (p->rows == 0 || p->q == NULL || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    const struct attention_call call = {*p, mistake};
    dq_kernel<<<blocks_for(p->rows * p->NH), THREADS, 0, stream>>>(call);
    dkv_kernel<<<blocks_for(p->rows * p->KVH), THREADS, 0, stream>>>(call);
    return device_launched("attention_backward", error);
}

/* ---- AdamW ---- */

struct adamw_call {
    struct adamw_problem p;
    float unbias1, unbias2;
    enum mistake mistake;
};

static __device__ float cut_off(float x) {
    return __uint_as_float(__float_as_uint(x) & 0xffff0000u);
}

static __global__ void adamw_kernel(struct adamw_call c) {
    const struct adamw_problem &p = c.p;
    size_t i = thread_index();
    if (i >= (c.mistake == MISTAKE_adamw_fours ? p.count / 4 * 4 : p.count)) {
        return;
    }
    bool decays = c.mistake == MISTAKE_adamw_all_decay ||
                  (i < p.decayed && c.mistake != MISTAKE_adamw_no_decay);
    float old = p.weights[i], decay = decays ? p.decay : 0.0f;
    float g = p.gradient[i] * (c.mistake == MISTAKE_adamw_no_scale ? 1.0f : *p.scale);
    if (c.mistake == MISTAKE_adamw_decay_in_g) {
        g += decay * old;
        decay = 0.0f;
    }
    p.m[i] = p.beta1 * p.m[i] + (1.0f - p.beta1) * g;
    p.v[i] = p.beta2 * p.v[i] + (1.0f - p.beta2) * g * g;
    float v = p.v[i] * c.unbias2;
    float down = c.mistake == MISTAKE_adamw_eps_inside ? sqrtf(v + p.eps) : sqrtf(v) + p.eps;
    float now = old * (1.0f - p.rate * decay) - p.rate * p.m[i] * c.unbias1 / down;
    p.weights[i] = now;
    if (p.copy != NULL) {
        float copied = c.mistake == MISTAKE_adamw_old_copy ? old : now;
        copied = c.mistake == MISTAKE_adamw_truncates ? cut_off(copied) : copied;
        store(p.copy, i, copied, NN_BF16);
    }
    if (c.mistake == MISTAKE_adamw_clears) {
        const_cast<float *>(p.gradient)[i] = 0.0f;
    }
}

static float unbias(float beta, uint64_t step, enum mistake mistake) {
    double late = mistake == MISTAKE_adamw_step_late ? 1.0 : 0.0;
    double power = pow((double)beta, (double)step + late);
    return mistake == MISTAKE_adamw_no_unbias ? 1.0f : (float)(1.0 / (1.0 - power));
}

enum status adamw(const struct adamw_problem *problem, device_stream stream, struct error *error) {
    enum mistake mistake = chosen_mistake();
    if (mistake != MISTAKE_not_refused) {
        TRY(adamw_check(problem, error));
    }
    if (problem->count == 0 || problem->weights == NULL || mistake == MISTAKE_empty) {
        return STATUS_OK;
    }
    const struct adamw_call call = {*problem, unbias(problem->beta1, problem->step, mistake),
                                    unbias(problem->beta2, problem->step, mistake), mistake};
    adamw_kernel<<<blocks_for(problem->count), THREADS, 0, stream>>>(call);
    return device_launched("adamw", error);
}

const struct training_step *training_ladder(size_t *count) {
    static const struct training_step steps[] = {
        {"wrong", {layernorm_backward, attention_backward, adamw}},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}
