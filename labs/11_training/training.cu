/**
 * @file training.cu
 * @brief Lab 11: YOUR FILE. Make the three functions fast and keep them right.
 *
 * What they must do is in training.h, how to go about it in README.md. Everything in this file may
 * change; the functions of training.h must stay. Check and measure with
 *
 *     bazel test //grader:11_training_parity //grader:11_training_speedup
 *     bazel run //labs/11_training:bench
 */
#include "labs/11_training/training.h"

#include <cuda_bf16.h>
#include <limits.h>
#include <math.h>

enum { THREADS = 128 };

static __device__ float load(const void *tensor, size_t index, enum nn_dtype dtype) {
    return dtype == NN_BF16 ? __bfloat162float(((const __nv_bfloat16 *)tensor)[index])
                            : ((const float *)tensor)[index];
}

static __device__ void store(void *tensor, size_t index, float x, enum nn_dtype dtype) {
    if (dtype == NN_BF16) {
        ((__nv_bfloat16 *)tensor)[index] = __float2bfloat16_rn(x);
    } else {
        ((float *)tensor)[index] = x;
    }
}

static __device__ size_t thread_index() {
    return (size_t)blockIdx.x * THREADS + threadIdx.x;
}

/* Blocks for a thread an element. @return STATUS_INVALID_ARGUMENT: more than a grid has */
static enum status count_blocks(const char *what, size_t threads, unsigned *blocks,
                                struct error *error) {
    size_t count = (threads + THREADS - 1) / THREADS;
    if (count > INT_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s: %zu threads are too many", what,
                         threads);
    }
    *blocks = (unsigned)count;
    return STATUS_OK;
}

/* LayerNorm: a thread a column goes through all rows. */
static __global__ void layernorm_columns_v1(struct layernorm_backward_problem p) {
    size_t c = thread_index();
    if (c >= p.C) {
        return;
    }
    float dweight = 0.0f, dbias = 0.0f;
    for (size_t row = 0; row < p.rows; row++) {
        float dout = load(p.dout, row * p.C + c, p.dtype);
        float xhat = (load(p.in, row * p.C + c, p.dtype) - p.stats[2 * row]) * p.stats[2 * row + 1];
        dweight += dout * xhat;
        dbias += dout;
    }
    p.dweight[c] += dweight;
    p.dbias[c] += dbias;
}

/* A thread a row goes through all columns, once for the two means and once more. */
static __global__ void layernorm_rows_v1(struct layernorm_backward_problem p) {
    size_t row = thread_index(), first = row * p.C;
    if (row >= p.rows) {
        return;
    }
    float mean = p.stats[2 * row], rstd = p.stats[2 * row + 1], g_mean = 0.0f, gx_mean = 0.0f;
    for (size_t c = 0; c < p.C; c++) {
        float g = load(p.dout, first + c, p.dtype) * p.weight[c];
        g_mean += g;
        gx_mean += g * (load(p.in, first + c, p.dtype) - mean) * rstd;
    }
    g_mean /= (float)p.C;
    gx_mean /= (float)p.C;
    for (size_t c = 0; c < p.C; c++) {
        float g = load(p.dout, first + c, p.dtype) * p.weight[c];
        float xhat = (load(p.in, first + c, p.dtype) - mean) * rstd;
        store(p.din, first + c, rstd * (g - g_mean - xhat * gx_mean), p.dtype);
    }
}

/* The columns come first: din may be dout. */
static enum status layernorm_backward_v1(const struct layernorm_backward_problem *p,
                                         void *workspace, device_stream stream,
                                         struct error *error) {
    unsigned columns = 0, rows = 0;
    (void)workspace;
    TRY(layernorm_backward_check(p, error));
    TRY(count_blocks("layernorm_backward", p->C, &columns, error));
    TRY(count_blocks("layernorm_backward", p->rows, &rows, error));
    if (rows == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    layernorm_columns_v1<<<columns, THREADS, 0, stream>>>(*p);
    TRY(device_launched("layernorm_columns_v1", error));
    layernorm_rows_v1<<<rows, THREADS, 0, stream>>>(*p);
    return device_launched("layernorm_rows_v1", error);
}

/* The matrices that attention's gradient needs, of each head: p and ds, (NH, rows, longest). */
struct matrices {
    float *p, *ds;
};

/* One element of a matrix: query t of head h in its sequence, and a key of the same. */
struct pair {
    size_t h, row, key; /* rows of q and k */
    size_t index;       /* in the matrices */
};

/* The first row of the row's sequence. */
static __device__ size_t first_row(const struct attention_backward_problem &p, size_t row) {
    size_t b = 0;
    while ((size_t)p.starts[b + 1] <= row) {
        b++;
    }
    return (size_t)p.starts[b];
}

/* The row behind the last one of the row's sequence. */
static __device__ size_t end_row(const struct attention_backward_problem &p, size_t row) {
    size_t b = 0;
    while ((size_t)p.starts[b + 1] <= row) {
        b++;
    }
    return (size_t)p.starts[b + 1];
}

/* @return whether there is such an element: sequences may be shorter than the longest */
static __device__ bool find_pair(const struct attention_backward_problem &p, struct pair *pair) {
    pair->index = thread_index();
    pair->row = pair->index / p.longest % p.rows;
    pair->h = pair->index / p.longest / p.rows;
    if (pair->h >= p.NH) {
        return false;
    }
    pair->key = first_row(p, pair->row) + pair->index % p.longest;
    return pair->key < end_row(p, pair->row) && (!p.causal || pair->key <= pair->row);
}

/* a . b over HS channels, from these elements on. */
static __device__ float dot(const void *a, size_t a_first, const void *b, size_t b_first, size_t HS,
                            enum nn_dtype dtype) {
    float sum = 0.0f;
    for (size_t c = 0; c < HS; c++) {
        sum += load(a, a_first + c, dtype) * load(b, b_first + c, dtype);
    }
    return sum;
}

static __device__ size_t key_head(const struct attention_backward_problem &p, size_t h) {
    return h / (p.NH / p.KVH) * p.HS;
}

/* p = exp(scale * q . k - lse): a thread an element. */
static __global__ void attention_p_v1(struct attention_backward_problem p, struct matrices m) {
    struct pair pair;
    if (find_pair(p, &pair)) {
        float score = dot(p.q, pair.row * p.q_stride + pair.h * p.HS, p.k,
                          pair.key * p.kv_stride + key_head(p, pair.h), p.HS, p.dtype);
        m.p[pair.index] = expf(p.scale * score - p.lse[pair.row * p.NH + pair.h]);
    }
}

/* ds = p * (dout . v - dout . out): a thread an element. */
static __global__ void attention_ds_v1(struct attention_backward_problem p, struct matrices m) {
    struct pair pair;
    if (find_pair(p, &pair)) {
        size_t first = (pair.row * p.NH + pair.h) * p.HS;
        float dp =
            dot(p.dout, first, p.v, pair.key * p.kv_stride + key_head(p, pair.h), p.HS, p.dtype);
        float delta = dot(p.dout, first, p.out, first, p.HS, p.dtype);
        m.ds[pair.index] = m.p[pair.index] * (dp - delta);
    }
}

/* dq = scale * ds * k: a thread an element. */
static __global__ void attention_dq_v1(struct attention_backward_problem p, struct matrices m) {
    size_t i = thread_index(), c = i % p.HS, h = i / p.HS % p.NH, row = i / p.HS / p.NH;
    if (row >= p.rows) {
        return;
    }
    size_t start = first_row(p, row), end = p.causal ? row + 1 : end_row(p, row);
    const float *ds = m.ds + (h * p.rows + row) * p.longest;
    float sum = 0.0f;
    for (size_t key = start; key < end; key++) {
        sum += ds[key - start] * load(p.k, key * p.kv_stride + key_head(p, h) + c, p.dtype);
    }
    store(p.dq, row * p.q_stride + h * p.HS + c, p.scale * sum, p.dtype);
}

/* dk = scale * ds^T * q and dv = p^T * dout: a thread an element of both. */
static __global__ void attention_dkv_v1(struct attention_backward_problem p, struct matrices m) {
    size_t i = thread_index(), c = i % p.HS, kvh = i / p.HS % p.KVH, key = i / p.HS / p.KVH;
    if (key >= p.rows) {
        return;
    }
    size_t start = first_row(p, key), end = end_row(p, key), group = p.NH / p.KVH;
    float dk = 0.0f, dv = 0.0f;
    for (size_t h = kvh * group; h < (kvh + 1) * group; h++) {
        for (size_t row = p.causal ? key : start; row < end; row++) {
            size_t index = (h * p.rows + row) * p.longest + key - start;
            dk += m.ds[index] * load(p.q, row * p.q_stride + h * p.HS + c, p.dtype);
            dv += m.p[index] * load(p.dout, (row * p.NH + h) * p.HS + c, p.dtype);
        }
    }
    size_t to = key * p.kv_stride + kvh * p.HS + c;
    store(p.dk, to, p.scale * dk, p.dtype);
    store(p.dv, to, dv, p.dtype);
}

static enum status attention_backward_v1(const struct attention_backward_problem *p, void *scratch,
                                         device_stream stream, struct error *error) {
    unsigned pairs = 0, queries = 0, keys = 0;
    TRY(attention_backward_check(p, error));
    size_t elements = p->NH * p->rows * p->longest;
    const struct matrices m = {(float *)scratch, (float *)scratch + elements};
    TRY(count_blocks("attention_backward", elements, &pairs, error));
    TRY(count_blocks("attention_backward", p->rows * p->NH * p->HS, &queries, error));
    TRY(count_blocks("attention_backward", p->rows * p->KVH * p->HS, &keys, error));
    if (pairs == 0 || queries == 0) {
        return STATUS_OK;
    }
    attention_p_v1<<<pairs, THREADS, 0, stream>>>(*p, m);
    TRY(device_launched("attention_p_v1", error));
    attention_ds_v1<<<pairs, THREADS, 0, stream>>>(*p, m);
    TRY(device_launched("attention_ds_v1", error));
    attention_dq_v1<<<queries, THREADS, 0, stream>>>(*p, m);
    TRY(device_launched("attention_dq_v1", error));
    attention_dkv_v1<<<keys, THREADS, 0, stream>>>(*p, m);
    return device_launched("attention_dkv_v1", error);
}

/* AdamW: each line of the formula is a kernel. Decay comes first. */
static __global__ void adamw_decay_v1(struct adamw_problem p) {
    size_t i = thread_index();
    if (i < p.decayed) {
        p.weights[i] *= 1.0f - p.rate * p.decay;
    }
}

static __global__ void adamw_m_v1(struct adamw_problem p) {
    size_t i = thread_index();
    if (i < p.count) {
        p.m[i] = p.beta1 * p.m[i] + (1.0f - p.beta1) * (*p.scale * p.gradient[i]);
    }
}

static __global__ void adamw_v_v1(struct adamw_problem p) {
    size_t i = thread_index();
    if (i < p.count) {
        float g = *p.scale * p.gradient[i];
        p.v[i] = p.beta2 * p.v[i] + (1.0f - p.beta2) * g * g;
    }
}

/* unbias1, unbias2: 1 / (1 - beta^step) */
static __global__ void adamw_weights_v1(struct adamw_problem p, float unbias1, float unbias2) {
    size_t i = thread_index();
    if (i < p.count) {
        p.weights[i] -= p.rate * (p.m[i] * unbias1) / (sqrtf(p.v[i] * unbias2) + p.eps);
    }
}

static __global__ void adamw_copy_v1(struct adamw_problem p) {
    size_t i = thread_index();
    if (i < p.count) {
        store(p.copy, i, p.weights[i], NN_BF16);
    }
}

static float unbias(float beta, uint64_t step) {
    return (float)(1.0 / (1.0 - pow((double)beta, (double)step)));
}

static enum status adamw_v1(const struct adamw_problem *p, device_stream stream,
                            struct error *error) {
    unsigned blocks = 0;
    TRY(adamw_check(p, error));
    TRY(count_blocks("adamw", p->count, &blocks, error));
    if (blocks == 0) {
        return STATUS_OK;
    }
    adamw_decay_v1<<<blocks, THREADS, 0, stream>>>(*p);
    TRY(device_launched("adamw_decay_v1", error));
    adamw_m_v1<<<blocks, THREADS, 0, stream>>>(*p);
    TRY(device_launched("adamw_m_v1", error));
    adamw_v_v1<<<blocks, THREADS, 0, stream>>>(*p);
    TRY(device_launched("adamw_v_v1", error));
    float unbias1 = unbias(p->beta1, p->step), unbias2 = unbias(p->beta2, p->step);
    adamw_weights_v1<<<blocks, THREADS, 0, stream>>>(*p, unbias1, unbias2);
    TRY(device_launched("adamw_weights_v1", error));
    if (p->copy == NULL) {
        return STATUS_OK;
    }
    adamw_copy_v1<<<blocks, THREADS, 0, stream>>>(*p);
    return device_launched("adamw_copy_v1", error);
}

/*
 * The versions the bench compares, in the order you wrote them; the last is your best.
 * Keep a version when you write the next one, and the bench shows what each one gained.
 */
const struct training_step *training_ladder(size_t *count) {
    static const struct training_step steps[] = {
        {"v1_plain", {layernorm_backward_v1, attention_backward_v1, adamw_v1}},
    };
    *count = sizeof steps / sizeof *steps;
    return steps;
}

/* What training and the grader call: the functions of the last version. */
static const struct training_functions *best() {
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    return &steps[count - 1].functions;
}

enum status layernorm_backward(const struct layernorm_backward_problem *problem, void *workspace,
                               device_stream stream, struct error *error) {
    return best()->layernorm_backward(problem, workspace, stream, error);
}

enum status attention_backward(const struct attention_backward_problem *problem, void *scratch,
                               device_stream stream, struct error *error) {
    return best()->attention_backward(problem, scratch, stream, error);
}

enum status adamw(const struct adamw_problem *problem, device_stream stream, struct error *error) {
    return best()->adamw(problem, stream, error);
}
