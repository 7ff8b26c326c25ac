/**
 * @file plain_decoder.c
 * @brief Llama2 (Touvron et al. 2023), one token at a time, in straightforward C.
 *
 * Without engine, threads or hand-written vector code, fp32 throughout: the speed
 * that a C compiler reaches with -O3 alone. The bench compares the engines with it.
 */
#include "common/models/plain_decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

struct plain_decoder {
    struct llama2_config config;
    const struct llama2_weights *weights;
    struct arena arena;
    float *x;                 /* (C): the residual stream */
    float *normed;            /* (C) */
    float *q;                 /* (NH*HS) */
    float *attended;          /* (NH*HS): output of attention */
    float *projected;         /* (C) */
    float *gate, *up;         /* (hidden) */
    float *scores;            /* (T) */
    float *logits;            /* (V) */
    float *k_cache, *v_cache; /* (L, T, KVH*HS) */
};

/* A buffer of the decoder: where its address goes, and its length in floats. */
struct buffer {
    float **memory;
    size_t count;
};

static enum status alloc_buffers(struct plain_decoder *d) {
    const struct llama2_config *c = &d->config;
    const struct buffer buffers[] = {
        {&d->x, c->C},
        {&d->normed, c->C},
        {&d->q, c->NH * c->HS},
        {&d->attended, c->NH * c->HS},
        {&d->projected, c->C},
        {&d->gate, c->hidden},
        {&d->up, c->hidden},
        {&d->scores, c->T},
        {&d->logits, c->V},
        {&d->k_cache, c->L * c->T * c->KVH * c->HS},
        {&d->v_cache, c->L * c->T * c->KVH * c->HS},
    };
    size_t size = 0;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        size += arena_footprint(buffers[i].count, sizeof(float));
    }
    TRY(arena_create(&d->arena, size));
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        *buffers[i].memory = arena_alloc(&d->arena, buffers[i].count, sizeof(float));
    }
    return STATUS_OK;
}

enum status plain_decoder_create(struct plain_decoder **decoder, const struct llama2_config *config,
                                 const struct llama2_weights *weights) {
    *decoder = NULL;
    if (config->rope_layout != NN_ROPE_INTERLEAVED) {
        return STATUS_UNSUPPORTED;
    }
    struct plain_decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    d->config = *config;
    d->weights = weights;
    enum status status = alloc_buffers(d);
    if (status != STATUS_OK) {
        plain_decoder_free(d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

void plain_decoder_free(struct plain_decoder *d) {
    if (d != NULL) {
        arena_free(&d->arena);
        free(d);
    }
}

static void rmsnorm(float *out, const float *x, const float *weight, size_t count, float eps) {
    float squares = 0.0f;
    for (size_t i = 0; i < count; i++) {
        squares += x[i] * x[i];
    }
    float factor = 1.0f / sqrtf(squares / (float)count + eps);
    for (size_t i = 0; i < count; i++) {
        out[i] = weight[i] * (factor * x[i]);
    }
}

/* out (N) = weight (N, K) * x (K) */
static void matvec(float *out, const float *x, const float *weight, size_t N, size_t K) {
    for (size_t n = 0; n < N; n++) {
        float sum = 0.0f;
        for (size_t k = 0; k < K; k++) {
            sum += weight[n * K + k] * x[k];
        }
        out[n] = sum;
    }
}

static void softmax(float *x, size_t count) {
    float largest = x[0];
    for (size_t i = 1; i < count; i++) {
        largest = x[i] > largest ? x[i] : largest;
    }
    float sum = 0.0f;
    for (size_t i = 0; i < count; i++) {
        x[i] = expf(x[i] - largest);
        sum += x[i];
    }
    for (size_t i = 0; i < count; i++) {
        x[i] /= sum;
    }
}

/* Rotary embedding of all heads of q and k; all heads share the angles. */
static void rotate(const struct plain_decoder *d, float *q, float *k, size_t position) {
    const struct llama2_config *c = &d->config;
    for (size_t i = 0; i < c->HS; i += 2) {
        float angle = (float)position / powf(c->rope_theta, (float)i / (float)c->HS);
        float cosine = cosf(angle);
        float sine = sinf(angle);
        for (size_t head = 0; head < c->NH + c->KVH; head++) {
            float *x = head < c->NH ? q + head * c->HS : k + (head - c->NH) * c->HS;
            float a = x[i];
            float b = x[i + 1];
            x[i] = a * cosine - b * sine;
            x[i + 1] = a * sine + b * cosine;
        }
    }
}

/* attended = attention of one head over positions 0 .. position. */
static void attend(struct plain_decoder *d, size_t l, size_t head, size_t position) {
    const struct llama2_config *c = &d->config;
    size_t width = c->KVH * c->HS;
    size_t offset = l * c->T * width + head / (c->NH / c->KVH) * c->HS;
    const float *q = d->q + head * c->HS;
    const float *k = d->k_cache + offset;
    const float *v = d->v_cache + offset;
    float *out = d->attended + head * c->HS;
    float scale = 1.0f / sqrtf((float)c->HS);
    for (size_t t = 0; t <= position; t++) {
        float score = 0.0f;
        for (size_t i = 0; i < c->HS; i++) {
            score += q[i] * k[t * width + i];
        }
        d->scores[t] = score * scale;
    }
    softmax(d->scores, position + 1);
    memset(out, 0, c->HS * sizeof *out);
    for (size_t t = 0; t <= position; t++) {
        for (size_t i = 0; i < c->HS; i++) {
            out[i] += d->scores[t] * v[t * width + i];
        }
    }
}

static void add_to(float *x, const float *y, size_t count) {
    for (size_t i = 0; i < count; i++) {
        x[i] += y[i];
    }
}

static void forward_layer(struct plain_decoder *d, size_t l, size_t position) {
    const struct llama2_config *c = &d->config;
    const struct llama2_layer *w = &d->weights->layers[l];
    size_t width = c->KVH * c->HS;
    float *k = d->k_cache + (l * c->T + position) * width;
    float *v = d->v_cache + (l * c->T + position) * width;

    rmsnorm(d->normed, d->x, w->attention_norm, c->C, c->norm_eps);
    matvec(d->q, d->normed, w->wq, c->NH * c->HS, c->C);
    matvec(k, d->normed, w->wk, width, c->C);
    matvec(v, d->normed, w->wv, width, c->C);
    rotate(d, d->q, k, position);
    for (size_t head = 0; head < c->NH; head++) {
        attend(d, l, head, position);
    }
    matvec(d->projected, d->attended, w->wo, c->C, c->NH * c->HS);
    add_to(d->x, d->projected, c->C);

    rmsnorm(d->normed, d->x, w->ffn_norm, c->C, c->norm_eps);
    matvec(d->gate, d->normed, w->w1, c->hidden, c->C);
    matvec(d->up, d->normed, w->w3, c->hidden, c->C);
    for (size_t i = 0; i < c->hidden; i++) {
        d->gate[i] = d->gate[i] / (1.0f + expf(-d->gate[i])) * d->up[i];
    }
    matvec(d->projected, d->gate, w->w2, c->C, c->hidden);
    add_to(d->x, d->projected, c->C);
}

const float *plain_decoder_forward(struct plain_decoder *d, int32_t token, size_t position) {
    const struct llama2_config *c = &d->config;
    memcpy(d->x, d->weights->embedding + (size_t)token * c->C, c->C * sizeof *d->x);
    for (size_t l = 0; l < c->L; l++) {
        forward_layer(d, l, position);
    }
    rmsnorm(d->normed, d->x, d->weights->final_norm, c->C, c->norm_eps);
    matvec(d->logits, d->normed, d->weights->classifier, c->V, c->C);
    return d->logits;
}
