/**
 * @file reference_rows.c
 * @brief Rows of tables and of activations, and the softmax cross-entropy, in double.
 */
#include <math.h>
#include <string.h>

#include "common/train/reference/reference_internal.h"

enum status reference_embedding(void *context, void *out, const void *table, const int32_t *ids,
                                size_t rows, size_t C, bool accumulate) {
    (void)context;
    double *y = out;
    for (size_t row = 0; row < rows; row++) {
        const double *entry = (const double *)table + (size_t)ids[row] * C;
        for (size_t c = 0; c < C; c++) {
            y[row * C + c] = accumulate ? y[row * C + c] + entry[c] : entry[c];
        }
    }
    return STATUS_OK;
}

enum status reference_embedding_backward(void *context, void *dtable, const void *dout,
                                         const struct train_occurrences *o, size_t C) {
    (void)context;
    for (size_t i = 0; i < o->id_count; i++) {
        double *entry = (double *)dtable + (size_t)o->ids[i] * C;
        size_t first = (size_t)o->pieces[o->firsts[i]];
        size_t last = (size_t)o->pieces[o->firsts[i + 1]];
        for (size_t at = first; at < last; at++) {
            reference_add(entry, 1.0, (const double *)dout + (size_t)o->rows[at] * C, C);
        }
    }
    return STATUS_OK;
}

enum status reference_gather(void *context, void *out, const void *in, const int32_t *index,
                             size_t count, size_t C) {
    return reference_embedding(context, out, in, index, count, C, false);
}

enum status reference_scatter(void *context, void *out, const void *in, const int32_t *index,
                              size_t count, size_t C) {
    (void)context;
    for (size_t i = 0; i < count; i++) {
        reference_add((double *)out + (size_t)index[i] * C, 1.0, (const double *)in + i * C, C);
    }
    return STATUS_OK;
}

/* logits (V) become scale * (softmax - one at label). @return scale * -log p[label] */
static double cross_entropy(double *logits, size_t label, double scale, size_t V) {
    double largest = -INFINITY, sum = 0.0;
    for (size_t i = 0; i < V; i++) {
        largest = fmax(largest, logits[i]);
    }
    for (size_t i = 0; i < V; i++) {
        sum += exp(logits[i] - largest);
    }
    double lse = largest + log(sum);
    double loss = scale * (lse - logits[label]);
    for (size_t i = 0; i < V; i++) {
        logits[i] = scale * (exp(logits[i] - lse) - (i == label ? 1.0 : 0.0));
    }
    return loss;
}

enum status reference_cross_entropy(void *context, void *logits, void *loss, const int32_t *labels,
                                    float scale, size_t M, size_t V) {
    (void)context;
    for (size_t m = 0; m < M; m++) {
        double *row = (double *)logits + m * V;
        if (labels[m] == -1) {
            memset(row, 0, V * sizeof *row);
        } else {
            *(double *)loss += cross_entropy(row, (size_t)labels[m], (double)scale, V);
        }
    }
    return STATUS_OK;
}
