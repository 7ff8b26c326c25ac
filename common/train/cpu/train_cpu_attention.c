/**
 * @file train_cpu_attention.c
 * @brief Attention's gradient, and rotary positions.
 *
 * Forward is cpu_attention(). Backward, for each key head of a sequence and QUERIES queries at a
 * time: P = exp(scale Q K^T - lse), dP = dO V^T, dS = scale P (dP - rows' dots of dO and O); then
 * dQ = dS K, dK += dS^T Q, dV += P^T dO: five products of tiles (tile.h), whose right operands are
 * packed in panels of 32 columns. One thread sums a key head, always in the same order.
 */
#include <math.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/cpu/pack.h"
#include "common/cpu/parallel.h"
#include "common/cpu/tile.h"
#include "common/cpu/vector_math.h"
#include "common/train/cpu/train_cpu_internal.h"

enum { QUERIES = 24, PANEL = 32 };

enum status train_cpu_attention(void *context, void *out, void *lse,
                                const struct train_attention *a) {
    struct train_cpu *cpu = context;
    const struct nn_attention call = {
        .q = a->q,
        .k = a->k,
        .v = a->v,
        .B = a->B,
        .T = a->longest,
        .S = a->longest,
        .NH = a->NH,
        .KVH = a->KVH,
        .HS = a->HS,
        .q_stride = a->q_stride,
        .kv_stride = a->kv_stride,
        .causal = a->causal,
        .scale = a->scale,
    };
    int threads = train_cpu_threads(cpu, a->rows * a->longest * a->NH, a->HS);
    return cpu_attention(threads, &cpu->scratch, out, lse, &call, a->host_starts);
}

/* ---- Backward ---- */

struct call {
    const struct train_attention *a;
    const struct train_attention_gradient *gradient;
    const float *dout, *out, *lse;
    float *memory;
    size_t floats; /* of a thread's workspace */
};

static size_t padded(size_t count) {
    return ceil_div(count, PANEL) * PANEL;
}

/* One thread's memory for one key head. Panels are of 32 columns. */
struct workspace {
    float *keys_t, *values_t; /* K^T and V^T: panels of (HS, 32), S columns */
    float *keys;              /* K: panels of (S, 32), HS columns */
    float *dk, *dv;           /* (S, HS padded) */
    float *queries, *douts;   /* Q and dO of the present queries: panels of (QUERIES, 32) */
    float *p, *ds;            /* (QUERIES, S padded) */
    float *dq;                /* (QUERIES, HS padded) */
};

static enum status workspace_floats(const struct train_attention *a, size_t *floats) {
    size_t S = padded(a->longest), HS = padded(a->HS), of_keys;
    if (!checked_multiply(S, 5 * HS + 2 * QUERIES, &of_keys) ||
        !checked_add(of_keys, 3 * QUERIES * HS, floats)) {
        return STATUS_OVERFLOW;
    }
    return STATUS_OK;
}

static struct workspace workspace_of(float *memory, const struct train_attention *a) {
    size_t S = padded(a->longest), HS = padded(a->HS);
    struct workspace w = {.keys_t = memory};
    w.values_t = w.keys_t + S * HS;
    w.keys = w.values_t + S * HS;
    w.dk = w.keys + S * HS;
    w.dv = w.dk + S * HS;
    w.p = w.dv + S * HS;
    w.ds = w.p + QUERIES * S;
    w.queries = w.ds + QUERIES * S;
    w.douts = w.queries + QUERIES * HS;
    w.dq = w.douts + QUERIES * HS;
    return w;
}

/* One sequence's key head. */
struct head {
    const struct call *call;
    struct workspace w;
    size_t first, length; /* rows of the sequence */
    size_t kv_head;
};

/* Panels of a matrix (rows, columns): of its columns, or of its rows, that is, transposed. */
static void pack_columns(float *to, const float *x, size_t stride, size_t rows, size_t columns) {
    for (size_t c = 0; c < columns; c += PANEL, to += rows * PANEL) {
        size_t count = columns - c < PANEL ? columns - c : PANEL;
        cpu_pack_panel(to, (struct strided){x + c, stride, 1}, rows, count, PANEL);
    }
}

static void pack_rows(float *to, const float *x, size_t stride, size_t rows, size_t columns) {
    for (size_t r = 0; r < rows; r += PANEL, to += columns * PANEL) {
        size_t count = rows - r < PANEL ? rows - r : PANEL;
        cpu_pack_panel(to, (struct strided){x + r * stride, 1, stride}, columns, count, PANEL);
    }
}

/* out (rows, columns) = a (rows, depth) * b, whose panels are panel_rows deep in memory. */
CPU_CLONES
static void multiply(struct tile tile, size_t rows, size_t columns, size_t panel_rows,
                     size_t lanes) {
    tile.b_stride = PANEL;
    for (size_t c = 0; c < columns; c += PANEL) {
        tile_rows(&tile, rows, lanes);
        tile.b += panel_rows * PANEL;
        tile.out += PANEL;
    }
}

/* p and ds (keys) from scores and dP: see above. Beyond `keys` both become 0. */
CPU_CLONES
static void scores_backward(float *p, float *ds, float scale, float lse, float dot, size_t keys,
                            size_t all) {
#pragma omp simd
    for (size_t u = 0; u < keys; u++) {
        float weight = vector_exp(scale * p[u] - lse);
        ds[u] = scale * weight * (ds[u] - dot);
        p[u] = weight;
    }
    memset(p + keys, 0, (all - keys) * sizeof *p);
    memset(ds + keys, 0, (all - keys) * sizeof *ds);
}

CPU_CLONES
static float dot(const float *a, const float *b, size_t count) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Some queries of one head: rows first .. first + rows - 1 of the sequence. */
struct queries {
    size_t head, first, rows, keys;
};

/* P and dS of the queries. */
static void weights_backward(const struct head *h, const struct queries *some) {
    const struct train_attention *a = h->call->a;
    const struct workspace *w = &h->w;
    size_t S = padded(h->length), lanes = cpu_vector_floats();
    size_t row = h->first + some->first;
    const float *q = (const float *)a->q + row * a->q_stride + some->head * a->HS;
    const float *dout = h->call->dout + (row * a->NH + some->head) * a->HS;
    const float *out = h->call->out + (row * a->NH + some->head) * a->HS;
    struct tile scores = {.a = q,
                          .a_row = a->q_stride,
                          .a_depth = 1,
                          .b = w->keys_t,
                          .depth = a->HS,
                          .out = w->p,
                          .out_stride = S};
    multiply(scores, some->rows, some->keys, a->HS, lanes);
    scores.a = dout, scores.a_row = a->NH * a->HS;
    scores.b = w->values_t, scores.out = w->ds;
    multiply(scores, some->rows, some->keys, a->HS, lanes);
    for (size_t r = 0; r < some->rows; r++) {
        size_t seen = a->causal ? some->first + r + 1 : h->length, at = r * a->NH * a->HS;
        float lse = h->call->lse[(row + r) * a->NH + some->head];
        scores_backward(w->p + r * S, w->ds + r * S, a->scale, lse, dot(dout + at, out + at, a->HS),
                        seen, some->keys);
    }
}

/* dq of the queries, and what they add to dk and dv. */
static void products_backward(const struct head *h, const struct queries *some) {
    const struct train_attention *a = h->call->a;
    const struct workspace *w = &h->w;
    size_t S = padded(h->length), HS = padded(a->HS), lanes = cpu_vector_floats();
    size_t row = h->first + some->first;
    const float *q = (const float *)a->q + row * a->q_stride + some->head * a->HS;
    float *dq = (float *)h->call->gradient->dq + row * a->q_stride + some->head * a->HS;
    pack_columns(w->queries, q, a->q_stride, some->rows, a->HS);
    pack_columns(w->douts, h->call->dout + (row * a->NH + some->head) * a->HS, a->NH * a->HS,
                 some->rows, a->HS);
    const struct tile of_keys = {.a = w->ds,
                                 .a_row = 1,
                                 .a_depth = S,
                                 .b = w->queries,
                                 .depth = some->rows,
                                 .out = w->dk,
                                 .out_stride = HS,
                                 .add = true};
    struct tile of_values = of_keys;
    of_values.a = w->p, of_values.b = w->douts, of_values.out = w->dv;
    multiply(of_keys, some->keys, a->HS, some->rows, lanes);
    multiply(of_values, some->keys, a->HS, some->rows, lanes);
    const struct tile of_queries = {.a = w->ds,
                                    .a_row = S,
                                    .a_depth = 1,
                                    .b = w->keys,
                                    .depth = some->keys,
                                    .out = w->dq,
                                    .out_stride = HS};
    multiply(of_queries, some->rows, a->HS, h->length, lanes);
    for (size_t r = 0; r < some->rows; r++) {
        memcpy(dq + r * a->q_stride, w->dq + r * HS, a->HS * sizeof *dq);
    }
}

static void store_rows(float *to, size_t stride, const float *from, size_t width, size_t rows,
                       size_t columns) {
    for (size_t r = 0; r < rows; r++) {
        memcpy(to + r * stride, from + r * width, columns * sizeof *to);
    }
}

static void head_backward(const struct head *h) {
    const struct train_attention *a = h->call->a;
    const struct workspace *w = &h->w;
    size_t kv = h->first * a->kv_stride + h->kv_head * a->HS, HS = padded(a->HS);
    size_t group = a->NH / a->KVH, length = h->length;
    pack_rows(w->keys_t, (const float *)a->k + kv, a->kv_stride, length, a->HS);
    pack_rows(w->values_t, (const float *)a->v + kv, a->kv_stride, length, a->HS);
    pack_columns(w->keys, (const float *)a->k + kv, a->kv_stride, length, a->HS);
    memset(w->dk, 0, length * HS * sizeof *w->dk);
    memset(w->dv, 0, length * HS * sizeof *w->dv);
    for (size_t i = 0; i < group; i++) {
        for (size_t t = 0; t < length; t += QUERIES) {
            struct queries some = {.head = h->kv_head * group + i, .first = t};
            some.rows = length - t < QUERIES ? length - t : QUERIES;
            some.keys = a->causal ? t + some.rows : length;
            weights_backward(h, &some);
            products_backward(h, &some);
        }
    }
    store_rows((float *)h->call->gradient->dk + kv, a->kv_stride, w->dk, HS, length, a->HS);
    store_rows((float *)h->call->gradient->dv + kv, a->kv_stride, w->dv, HS, length, a->HS);
}

/* An item is one key head of one sequence. */
static void items_backward(void *arguments, int thread, size_t begin, size_t end) {
    const struct call *call = arguments;
    const struct train_attention *a = call->a;
    struct workspace w = workspace_of(call->memory + (size_t)thread * call->floats, a);
    for (size_t item = begin; item < end; item++) {
        size_t b = item / a->KVH, first = (size_t)a->host_starts[b];
        const struct head h = {.call = call,
                               .w = w,
                               .first = first,
                               .length = (size_t)a->host_starts[b + 1] - first,
                               .kv_head = item % a->KVH};
        head_backward(&h);
    }
}

enum status train_cpu_attention_backward(void *context,
                                         const struct train_attention_gradient *gradient,
                                         const void *dout, const void *out, const void *lse,
                                         const struct train_attention *a) {
    struct train_cpu *cpu = context;
    struct call call = {.a = a, .gradient = gradient, .dout = dout, .out = out, .lse = lse};
    int threads = train_cpu_threads(cpu, a->rows * a->longest * a->NH, a->HS);
    TRY(workspace_floats(a, &call.floats));
    TRY(cpu_scratch_reserve(&cpu->scratch, (size_t)threads, call.floats));
    call.memory = cpu->scratch.memory;
    cpu_parallel_for(threads, a->B * a->KVH, 1, items_backward, &call);
    return STATUS_OK;
}

/* ---- Positions ---- */

struct rope {
    const struct cpu_rope_table *table;
    float *x;
    const int32_t *positions;
    size_t heads, stride;
    enum nn_rope_layout layout;
    bool back;
};

static void rope_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct rope *r = arguments;
    (void)thread;
    for (size_t row = begin; row < end; row++) {
        cpu_rope_token(r->table, r->x + row * r->stride, r->heads, (size_t)r->positions[row],
                       r->layout, r->back);
    }
}

enum status train_cpu_rope(void *context, void *x, const int32_t *positions, size_t rows,
                           size_t heads, size_t HS, size_t stride, float theta,
                           enum nn_rope_layout layout, bool back) {
    struct train_cpu *cpu = context;
    size_t last = 0;
    for (size_t row = 0; row < rows; row++) {
        last = (size_t)positions[row] > last ? (size_t)positions[row] : last;
    }
    if (rows == 0 || HS < 2) {
        return STATUS_OK;
    }
    TRY(cpu_rope_reserve(&cpu->rope, HS, theta, last + 1));
    struct rope r = {&cpu->rope, x, positions, heads, stride, layout, back};
    cpu_parallel_for(train_cpu_threads(cpu, rows * heads * HS, 4), rows, 16, rope_rows, &r);
    return STATUS_OK;
}
