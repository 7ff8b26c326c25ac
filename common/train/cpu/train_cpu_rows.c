/**
 * @file train_cpu_rows.c
 * @brief Rows of tables and of activations, and the softmax cross-entropy.
 */
#include <math.h>
#include <string.h>

#include "common/cpu/parallel.h"
#include "common/cpu/vector_math.h"
#include "common/train/cpu/train_cpu_internal.h"

enum { CHEAP = 2, EXPONENTIAL = 24 };

enum status train_cpu_embedding(void *context, void *out, const void *table, const int32_t *ids,
                                size_t rows, size_t C, bool accumulate) {
    int threads = train_cpu_threads(context, rows * C, CHEAP);
    cpu_embedding(threads, out, table, ids, rows, C, accumulate);
    return STATUS_OK;
}

enum status train_cpu_gather(void *context, void *out, const void *in, const int32_t *index,
                             size_t count, size_t C) {
    return train_cpu_embedding(context, out, in, index, count, C, false);
}

/* Rows of dout by id, or rows of in by index. */
struct rows {
    float *out;
    const float *in;
    const struct train_occurrences *occurrences;
    const int32_t *index;
    size_t C;
};

static void embedding_ids(void *arguments, int thread, size_t begin, size_t end) {
    const struct rows *r = arguments;
    const struct train_occurrences *o = r->occurrences;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        float *entry = r->out + (size_t)o->ids[i] * r->C;
        size_t last = (size_t)o->pieces[o->firsts[i + 1]];
        for (size_t at = (size_t)o->pieces[o->firsts[i]]; at < last; at++) {
            cpu_residual(1, entry, entry, r->in + (size_t)o->rows[at] * r->C, r->C);
        }
    }
}

enum status train_cpu_embedding_backward(void *context, void *dtable, const void *dout,
                                         const struct train_occurrences *o, size_t C) {
    struct rows r = {.out = dtable, .in = dout, .occurrences = o, .C = C};
    cpu_parallel_for(train_cpu_threads(context, o->count * C, CHEAP), o->id_count, 1, embedding_ids,
                     &r);
    return STATUS_OK;
}

static void scatter_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct rows *r = arguments;
    (void)thread;
    for (size_t i = begin; i < end; i++) {
        float *out = r->out + (size_t)r->index[i] * r->C;
        cpu_residual(1, out, out, r->in + i * r->C, r->C);
    }
}

enum status train_cpu_scatter(void *context, void *out, const void *in, const int32_t *index,
                              size_t count, size_t C) {
    struct rows r = {.out = out, .in = in, .index = index, .C = C};
    cpu_parallel_for(train_cpu_threads(context, count * C, CHEAP), count, 16, scatter_rows, &r);
    return STATUS_OK;
}

/* ---- Cross-entropy ---- */

struct loss {
    float *logits, *losses; /* (M, V), (M) */
    const int32_t *labels;
    float scale;
    size_t V;
};

/* logits (V) become scale * (softmax - one at label). @return -log p[label] */
CPU_CLONES
static float cross_entropy(float *logits, size_t label, float scale, size_t V) {
    float max = -INFINITY;
    double sum = 0.0;
    float right = logits[label];
#pragma omp simd reduction(max : max)
    for (size_t i = 0; i < V; i++) {
        max = logits[i] > max ? logits[i] : max;
    }
#pragma omp simd reduction(+ : sum)
    for (size_t i = 0; i < V; i++) {
        float e = vector_exp(logits[i] - max);
        logits[i] = e;
        sum += (double)e;
    }
    float factor = (float)((double)scale / sum);
#pragma omp simd
    for (size_t i = 0; i < V; i++) {
        logits[i] *= factor;
    }
    logits[label] -= scale;
    return (float)((double)max - (double)right + log(sum));
}

static void cross_entropy_rows(void *arguments, int thread, size_t begin, size_t end) {
    const struct loss *l = arguments;
    (void)thread;
    for (size_t m = begin; m < end; m++) {
        float *row = l->logits + m * l->V;
        l->losses[m] = 0.0f;
        if (l->labels[m] == -1) {
            memset(row, 0, l->V * sizeof *row);
        } else {
            l->losses[m] = cross_entropy(row, (size_t)l->labels[m], l->scale, l->V);
        }
    }
}

enum status train_cpu_cross_entropy(void *context, void *logits, void *loss, const int32_t *labels,
                                    float scale, size_t M, size_t V) {
    struct train_cpu *cpu = context;
    TRY(cpu_scratch_reserve(&cpu->scratch, M, 1));
    struct loss l = {logits, cpu->scratch.memory, labels, scale, V};
    cpu_parallel_for(train_cpu_threads(cpu, M * V, EXPONENTIAL), M, 1, cross_entropy_rows, &l);
    double sum = 0.0;
    for (size_t m = 0; m < M; m++) {
        sum += (double)l.losses[m];
    }
    *(float *)loss += (float)((double)scale * sum);
    return STATUS_OK;
}
