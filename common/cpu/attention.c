/**
 * @file attention.c
 * @brief softmax(scale q k^T) v for one sequence and one key head at a time.
 *
 * Keys are packed transposed and values as they are, in panels of 32 columns, so that both products
 * are tiles in registers. Keys that the mask leaves out are not packed at all. The scores of
 * QUERIES queries stay in L2 between the products. With few queries packing would cost more than it
 * saves: attention_few.c.
 */
#include <math.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/cpu/attention_internal.h"
#include "common/cpu/pack.h"
#include "common/cpu/parallel.h"
#include "common/cpu/tile.h"
#include "common/cpu/vector_math.h"

enum { QUERIES = 24, PANEL = 32 };

/* Where one thread works; the sizes are those of attention_floats(). */
struct workspace {
    float *keys;     /* (ceil(S / 32), HS, 32) */
    float *values;   /* (ceil(HS / 32), S, 32) */
    float *scores;   /* (QUERIES, S rounded up to 32) */
    float *out;      /* (QUERIES, HS rounded up to 32) */
    int32_t *number; /* (S): the keys that are packed */
};

static size_t panels(size_t count) {
    return ceil_div(count, PANEL);
}

/* Floats of a workspace, from which also S integers are taken. */
static enum status attention_floats(const struct nn_attention *a, size_t *floats) {
    size_t S = panels(a->S) * PANEL, HS = panels(a->HS) * PANEL, a_key, both;
    if (!checked_add(2 * HS, QUERIES + 1, &a_key) || !checked_multiply(a_key, S, &both) ||
        !checked_add(both, QUERIES * HS, floats)) {
        return STATUS_OVERFLOW;
    }
    return STATUS_OK;
}

static struct workspace workspace_of(float *memory, const struct nn_attention *a) {
    size_t S = panels(a->S) * PANEL, HS = panels(a->HS) * PANEL;
    struct workspace w = {.keys = memory};
    w.values = w.keys + S * HS;
    w.scores = w.values + S * HS;
    w.out = w.scores + QUERIES * S;
    w.number = (int32_t *)(w.out + QUERIES * HS);
    return w;
}

/* @return how many keys the mask leaves */
static size_t number_keys(const struct workspace *w, const struct sequence *s) {
    size_t count = 0;
    for (size_t key = 0; key < s->S; key++) {
        w->number[count] = (int32_t)key;
        count += s->mask == NULL || s->mask[key] != 0;
    }
    return count;
}

/* Transposes the keys of one panel. What is beyond the last key is 0. */
static void pack_keys(float *to, const float *k, const int32_t *number, size_t count,
                      const struct nn_attention *a) {
    count = count < PANEL ? count : PANEL;
    if ((size_t)(number[count - 1] - number[0]) + 1 == count) { /* none between is masked */
        const struct strided keys = {k + (size_t)number[0] * a->kv_stride, 1, a->kv_stride};
        cpu_pack_panel(to, keys, a->HS, count, PANEL);
        return;
    }
    for (size_t i = 0; i < PANEL; i++) {
        const float *key = i < count ? k + (size_t)number[i] * a->kv_stride : NULL;
        for (size_t c = 0; c < a->HS; c++) {
            to[c * PANEL + i] = key != NULL ? key[c] : 0.0f;
        }
    }
}

static void pack_values(float *to, const float *v, const int32_t *number, size_t count,
                        const struct nn_attention *a) {
    for (size_t first = 0; first < a->HS; first += PANEL) {
        size_t width = a->HS - first < PANEL ? a->HS - first : PANEL;
        for (size_t i = 0; i < count; i++, to += PANEL) {
            memcpy(to, v + (size_t)number[i] * a->kv_stride + first, width * sizeof *to);
            memset(to + width, 0, (PANEL - width) * sizeof *to);
        }
    }
}

static void pack(const struct workspace *w, const struct sequence *s, size_t keys, size_t kv_head) {
    const float *k = s->k + kv_head * s->a->HS, *v = s->v + kv_head * s->a->HS;
    for (size_t key = 0; key < keys; key += PANEL) {
        pack_keys(w->keys + key * s->a->HS, k, w->number + key, keys - key, s->a);
    }
    pack_values(w->values, v, w->number, keys, s->a);
}

/* P V: the first `keys` columns of the scores times the values. */
CPU_CLONES
static void multiply_values(const struct workspace *w, const struct nn_attention *a, size_t rows,
                            size_t keys, size_t stride, size_t packed, size_t lanes) {
    for (size_t panel = 0; panel < panels(a->HS); panel++) {
        const struct tile tile = {.a = w->scores,
                                  .a_row = stride,
                                  .a_depth = 1,
                                  .b = w->values + panel * packed * PANEL,
                                  .b_stride = PANEL,
                                  .depth = keys,
                                  .out = w->out + panel * PANEL,
                                  .out_stride = panels(a->HS) * PANEL};
        tile_rows(&tile, rows, lanes);
    }
}

CPU_CLONES
static void multiply_keys(const struct workspace *w, const struct nn_attention *a, const float *q,
                          size_t rows, size_t keys, size_t stride, size_t lanes) {
    for (size_t panel = 0; panel < panels(keys); panel++) {
        const struct tile tile = {.a = q,
                                  .a_row = a->q_stride,
                                  .a_depth = 1,
                                  .b = w->keys + panel * PANEL * a->HS,
                                  .b_stride = PANEL,
                                  .depth = a->HS,
                                  .out = w->scores + panel * PANEL,
                                  .out_stride = stride};
        tile_rows(&tile, rows, lanes);
    }
}

/* @return how many of the packed keys query t sees */
static size_t seen_keys(const struct workspace *w, const struct sequence *s, size_t keys,
                        size_t t) {
    size_t end = s->S - s->T + t + 1;
    while (s->a->causal && keys > 0 && (size_t)w->number[keys - 1] >= end) {
        keys--;
    }
    return keys;
}

/* Queries first .. first + rows - 1 of one head. */
static void attend_rows(const struct workspace *w, const struct sequence *s, size_t head,
                        size_t first, size_t rows, size_t packed) {
    const struct nn_attention *a = s->a;
    size_t lanes = cpu_vector_floats(), keys = seen_keys(w, s, packed, first + rows - 1);
    size_t stride = panels(s->S) * PANEL, width = panels(a->HS) * PANEL;
    float sums[QUERIES], max;
    multiply_keys(w, a, s->q + first * a->q_stride + head * a->HS, rows, keys, stride, lanes);
    for (size_t r = 0; r < rows; r++) {
        float *scores = w->scores + r * stride;
        size_t seen = seen_keys(w, s, keys, first + r);
        sums[r] = cpu_attention_exponentiate(scores, a->scale, seen, &max);
        if (s->lse != NULL) {
            s->lse[(first + r) * a->NH + head] = max + logf(sums[r]);
        }
        memset(scores + seen, 0, (keys - seen) * sizeof *scores);
    }
    multiply_values(w, a, rows, keys, stride, packed, lanes);
    for (size_t r = 0; r < rows; r++) {
        float *out = s->out + ((first + r) * a->NH + head) * a->HS;
        float scale = sums[r] == 0.0f ? 0.0f : 1.0f / sums[r];
        for (size_t c = 0; c < a->HS; c++) {
            out[c] = w->out[r * width + c] * scale;
        }
    }
}

static void attend_packed(float *memory, const struct sequence *s, size_t kv_head) {
    const struct nn_attention *a = s->a;
    struct workspace w = workspace_of(memory, a);
    size_t keys = number_keys(&w, s), group = a->NH / a->KVH;
    pack(&w, s, keys, kv_head);
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (size_t t = 0; t < s->T; t += QUERIES) {
            attend_rows(&w, s, head, t, s->T - t < QUERIES ? s->T - t : QUERIES, keys);
        }
    }
}

/* ---- All sequences ---- */

struct attention_call {
    const struct nn_attention *a;
    const int32_t *starts;
    float *out, *lse, *memory;
    size_t floats; /* of one thread's workspace */
};

static struct sequence sequence_of(const struct attention_call *call, size_t b) {
    const struct nn_attention *a = call->a;
    bool packed = call->starts != NULL;
    size_t first = packed ? (size_t)call->starts[b] : b * a->T;
    size_t first_key = packed ? first : b * a->S;
    size_t length = packed ? (size_t)call->starts[b + 1] - first : 0;
    return (struct sequence){
        .a = a,
        .q = a->q + first * a->q_stride,
        .k = a->k + first_key * a->kv_stride,
        .v = a->v + first_key * a->kv_stride,
        .mask = a->mask != NULL ? a->mask + b * a->S : NULL,
        .T = packed ? length : a->T,
        .S = packed ? length : a->S,
        .out = call->out + first * a->NH * a->HS,
        .lse = call->lse != NULL ? call->lse + first * a->NH : NULL,
    };
}

/* An item is one key head of one sequence. */
static void attend_items(void *arguments, int thread, size_t begin, size_t end) {
    const struct attention_call *call = arguments;
    float *memory = call->memory + (size_t)thread * call->floats;
    for (size_t item = begin; item < end; item++) {
        struct sequence s = sequence_of(call, item / call->a->KVH);
        size_t kv_head = item % call->a->KVH;
        if (s.T * (call->a->NH / call->a->KVH) < ATTENTION_FEW) {
            cpu_attend_few(memory, &s, kv_head);
        } else {
            attend_packed(memory, &s, kv_head);
        }
    }
}

enum status cpu_attention(int threads, struct cpu_scratch *scratch, float *out, float *lse,
                          const struct nn_attention *a, const int32_t *starts) {
    struct attention_call call = {.a = a, .starts = starts, .out = out, .lse = lse};
    TRY(attention_floats(a, &call.floats));
    TRY(cpu_scratch_reserve(scratch, (size_t)threads, call.floats));
    call.memory = scratch->memory;
    cpu_parallel_for(threads, a->B * a->KVH, 1, attend_items, &call);
    return STATUS_OK;
}
