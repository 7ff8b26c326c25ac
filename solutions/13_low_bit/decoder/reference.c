#include "solutions/13_low_bit/decoder/reference.h"

#include <math.h>
#include <stdlib.h>

#include "common/nn/dtype.h"

/* Activations of a token. */
struct activations {
    double *x, *y, *qkv, *heads, *gate_up, *scores;
};

static void multiply(double *out, const struct low_bit_matrix *w, const double *in) {
    for (size_t n = 0; n < w->layout.rows; n++) {
        double sum = 0.0;
        for (size_t k = 0; k < w->layout.columns; k++) {
            sum += low_bit_weight(w, n, k) * in[k];
        }
        out[n] = sum;
    }
}

static void norm(double *out, const double *x, const float *weight, size_t C, float eps) {
    double squares = 0.0;
    for (size_t c = 0; c < C; c++) {
        squares += x[c] * x[c];
    }
    double rstd = 1.0 / sqrt(squares / (double)C + (double)eps);
    for (size_t c = 0; c < C; c++) {
        out[c] = x[c] * rstd * (double)weight[c];
    }
}

static void rotate(double *head, const struct reference_model *m, size_t position) {
    for (size_t i = 0; i < m->sizes.HS / 2; i++) {
        double angle =
            (double)position * pow((double)m->sizes.theta, -2.0 * (double)i / (double)m->sizes.HS);
        bool halves = m->sizes.layout == NN_ROPE_HALVES;
        double *a = head + (halves ? i : 2 * i), *b = halves ? a + m->sizes.HS / 2 : a + 1,
               old = *a;
        *a = old * cos(angle) - *b * sin(angle);
        *b = old * sin(angle) + *b * cos(angle);
    }
}

/* out (HS) = a key or value as 8 bits and a scale stand for it. */
static void store_key(double *out, const double *x, size_t HS, bool rounded) {
    double largest = 0.0;
    for (size_t c = 0; c < HS; c++) {
        largest = fmax(largest, fabs(x[c]));
    }
    float scale = largest > 0.0 ? (float)largest / 127.0f : 1.0f;
    for (size_t c = 0; c < HS; c++) {
        out[c] = rounded ? rint((double)(float)x[c] / (double)scale) * (double)scale : x[c];
    }
}

static void attend(double *out, const double *q, const double *k, const double *v, double *scores,
                   const struct reference_model *m, size_t position) {
    size_t step = m->sizes.KVH * m->sizes.HS;
    double max = -INFINITY, sum = 0.0;
    for (size_t s = 0; s <= position; s++) {
        double score = 0.0;
        for (size_t c = 0; c < m->sizes.HS; c++) {
            score += q[c] * k[s * step + c];
        }
        scores[s] = score / sqrt((double)m->sizes.HS);
        max = fmax(max, scores[s]);
    }
    for (size_t c = 0; c < m->sizes.HS; c++) {
        out[c] = 0.0;
    }
    for (size_t s = 0; s <= position; s++) {
        double weight = exp(scores[s] - max);
        sum += weight;
        for (size_t c = 0; c < m->sizes.HS; c++) {
            out[c] += weight * v[s * step + c];
        }
    }
    for (size_t c = 0; c < m->sizes.HS; c++) {
        out[c] /= sum;
    }
}

static void run_layer(struct activations *a, const struct reference_model *m,
                      const struct reference_cache *cache, size_t l, size_t position) {
    const struct reference_layer *w = &m->layers[l];
    size_t HS = m->sizes.HS, step = m->sizes.KVH * HS, layer = l * m->sizes.T * step,
           at = layer + position * step;
    double *key = a->qkv + m->sizes.NH * HS, *value = key + step;
    norm(a->y, a->x, w->attention_norm, m->sizes.C, m->sizes.eps);
    multiply(a->qkv, &w->qkv, a->y);
    for (size_t h = 0; h < m->sizes.NH + m->sizes.KVH; h++) {
        rotate(a->qkv + h * HS, m, position);
    }
    for (size_t h = 0; h < m->sizes.KVH; h++) {
        store_key(cache->k + at + h * HS, key + h * HS, HS, cache->rounded);
        store_key(cache->v + at + h * HS, value + h * HS, HS, cache->rounded);
    }
    for (size_t h = 0; h < m->sizes.NH; h++) {
        size_t of = layer + h / (m->sizes.NH / m->sizes.KVH) * HS;
        attend(a->heads + h * HS, a->qkv + h * HS, cache->k + of, cache->v + of, a->scores, m,
               position);
    }
    multiply(a->y, &w->out, a->heads);
    for (size_t c = 0; c < m->sizes.C; c++) {
        a->x[c] += a->y[c];
    }
    norm(a->y, a->x, w->ffn_norm, m->sizes.C, m->sizes.eps);
    multiply(a->gate_up, &w->gate_up, a->y);
    for (size_t i = 0; i < m->sizes.hidden; i++) {
        double gate = a->gate_up[i];
        a->gate_up[i] = gate / (1.0 + exp(-gate)) * a->gate_up[m->sizes.hidden + i];
    }
    multiply(a->y, &w->down, a->gate_up);
    for (size_t c = 0; c < m->sizes.C; c++) {
        a->x[c] += a->y[c];
    }
}

enum status reference_token(const struct reference_model *m, const struct reference_cache *cache,
                            int32_t token, size_t position, double *logits) {
    size_t heads = m->sizes.NH * m->sizes.HS, qkv = heads + 2 * m->sizes.KVH * m->sizes.HS;
    double *block =
        malloc((2 * m->sizes.C + qkv + heads + 2 * m->sizes.hidden + m->sizes.T) * sizeof *block);
    if (block == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct activations a = {.x = block};
    a.y = a.x + m->sizes.C;
    a.qkv = a.y + m->sizes.C;
    a.heads = a.qkv + qkv;
    a.gate_up = a.heads + heads;
    a.scores = a.gate_up + 2 * m->sizes.hidden;
    for (size_t c = 0; c < m->sizes.C; c++) {
        float x;
        nn_dtype_load(&x, m->embedding + (size_t)token * m->sizes.C + c, 1, NN_BF16);
        a.x[c] = (double)x;
    }
    for (size_t l = 0; l < m->sizes.L; l++) {
        run_layer(&a, m, cache, l, position);
    }
    norm(a.y, a.x, m->final_norm, m->sizes.C, m->sizes.eps);
    multiply(logits, &m->classifier, a.y);
    free(block);
    return STATUS_OK;
}
