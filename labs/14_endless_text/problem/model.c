#include "labs/14_endless_text/problem/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng_bell.h"
#include "common/testing/dot.h"

/* ---- Weights ---- */

/* What a weight is drawn and stored as. */
struct draw {
    size_t rows, columns;
    float scale, around;
    enum nn_dtype dtype;
};

static enum status put(struct endless_weight *w, const struct draw *how, struct rng *rng,
                       struct error *error) {
    size_t count = how->rows * how->columns, e = nn_dtype_bytes(how->dtype);
    w->host = malloc(count * sizeof *w->host);
    void *stored = malloc(count * e);
    if (w->host == NULL || stored == NULL) {
        free(stored);
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    rng_fill_bell_rows(rng, w->host, how->rows, how->columns);
    for (size_t i = 0; i < count; i++) {
        w->host[i] = how->around + how->scale * w->host[i];
    }
    nn_dtype_store(stored, w->host, count, how->dtype);
    nn_dtype_load(w->host, stored, count, how->dtype);
    enum status status = device_alloc(&w->device, count * e, error);
    if (status == STATUS_OK) {
        status = device_write(w->device, stored, count * e, NULL, error);
    }
    free(stored);
    return status;
}

/* Creation: the case, its generator, and whether there are biases. */
struct maker {
    struct endless_case *c;
    struct rng rng;
    bool biases;
};

static enum status add(struct maker *m, struct draw how, const void **device, const void **host,
                       struct error *error) {
    struct endless_weight *w = &m->c->weights[m->c->count++];
    TRY(put(w, &how, &m->rng, error));
    *device = w->device;
    *host = w->host;
    return STATUS_OK;
}

static enum status add_matrix(struct maker *m, size_t rows, size_t columns, const void **device,
                              const void **host, struct error *error) {
    float scale = 1.0f / sqrtf((float)columns);
    return add(m, (struct draw){rows, columns, scale, 0.0f, m->c->model.dtype}, device, host,
               error);
}

static enum status add_vector(struct maker *m, size_t size, float scale, float around,
                              const float **device, const float **host, struct error *error) {
    const void *on_device, *on_host;
    TRY(add(m, (struct draw){1, size, scale, around, NN_F32}, &on_device, &on_host, error));
    *device = on_device;
    *host = on_host;
    return STATUS_OK;
}

static enum status add_bias(struct maker *m, size_t size, const float **device, const float **host,
                            struct error *error) {
    return m->biases ? add_vector(m, size, 0.25f, 0.0f, device, host, error) : STATUS_OK;
}

static enum status make_layer(struct maker *m, struct endless_layer *d, struct endless_layer *h,
                              struct error *error) {
    const struct endless_model *s = &m->c->model;
    size_t q = s->NH * s->HS, all = q + 2 * s->KVH * s->HS;
    size_t up = s->gated ? 2 * s->hidden : s->hidden;
    for (int i = 0; i < 2; i++) {
        TRY(add_vector(m, s->C, 0.25f, 1.0f, &d->norms[i], &h->norms[i], error));
        TRY(add_bias(m, s->C, &d->norm_biases[i], &h->norm_biases[i], error));
    }
    TRY(add_matrix(m, all, s->C, &d->qkv, &h->qkv, error));
    TRY(add_matrix(m, s->C, q, &d->out, &h->out, error));
    TRY(add_matrix(m, up, s->C, &d->up, &h->up, error));
    TRY(add_matrix(m, s->C, s->hidden, &d->down, &h->down, error));
    TRY(add_bias(m, all, &d->qkv_bias, &h->qkv_bias, error));
    TRY(add_bias(m, s->C, &d->out_bias, &h->out_bias, error));
    TRY(add_bias(m, up, &d->up_bias, &h->up_bias, error));
    return add_bias(m, s->C, &d->down_bias, &h->down_bias, error);
}

static enum status make_weights(struct maker *m, struct error *error) {
    struct endless_case *c = m->c;
    struct endless_model *d = &c->model, *h = &c->host;
    TRY(add_matrix(m, d->V, d->C, &d->embedding, &h->embedding, error));
    TRY(add_matrix(m, d->V, d->C, &d->classifier, &h->classifier, error));
    TRY(add_vector(m, d->C, 0.25f, 1.0f, &d->final_norm, &h->final_norm, error));
    TRY(add_bias(m, d->C, &d->final_norm_bias, &h->final_norm_bias, error));
    for (size_t l = 0; l < d->L; l++) {
        TRY(make_layer(m, &c->layers[l], &c->host_layers[l], error));
    }
    return device_synchronize(NULL, error);
}

enum status endless_case_create(struct endless_case *c, const struct endless_model *shape,
                                bool biases, size_t tokens, uint64_t seed, struct error *error) {
    *c = (struct endless_case){.model = *shape, .host = *shape, .tokens = tokens};
    struct maker maker = {.c = c, .rng = rng_create(seed), .biases = biases};
    size_t width = shape->KVH * shape->HS, rows = shape->L * tokens;
    size_t all = (shape->NH + 2 * shape->KVH) * shape->HS;
    size_t numbers = 3 * shape->C + all + 2 * shape->NH * shape->HS + 2 * shape->hidden +
                     2 * shape->HS + shape->sinks + shape->window;
    c->model.layers = c->layers;
    c->host.layers = c->host_layers;
    c->k = calloc(rows * width, sizeof *c->k);
    c->v = calloc(rows * width, sizeof *c->v);
    c->buffer = calloc(numbers, sizeof *c->buffer);
    c->want = calloc(shape->V, sizeof *c->want);
    if (c->k == NULL || c->v == NULL || c->buffer == NULL || c->want == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    return make_weights(&maker, error);
}

void endless_case_free(struct endless_case *c) {
    for (size_t i = 0; i < c->count; i++) {
        free(c->weights[i].host);
        device_free(c->weights[i].device);
    }
    free(c->k);
    free(c->v);
    free(c->buffer);
    free(c->want);
}

void endless_case_restart(struct endless_case *c) {
    c->position = 0;
}

/* ---- The model in double ---- */

/* Parts of the buffer. */
struct activations {
    double *x, *normed, *added; /* (C) */
    double *qkv, *heads, *up;   /* ((NH + 2 KVH) * HS), (NH*HS), (2 * hidden) */
    double *q, *k;              /* (HS): rotated */
    double *scores;             /* (sinks + window) */
};

static struct activations activations_of(const struct endless_case *c) {
    const struct endless_model *m = &c->host;
    struct activations a;
    a.x = c->buffer;
    a.normed = a.x + m->C;
    a.added = a.normed + m->C;
    a.qkv = a.added + m->C;
    a.heads = a.qkv + (m->NH + 2 * m->KVH) * m->HS;
    a.up = a.heads + m->NH * m->HS;
    a.q = a.up + 2 * m->hidden;
    a.k = a.q + m->HS;
    a.scores = a.k + m->HS;
    return a;
}

static void norm(const struct endless_model *m, double *out, const double *x, const float *weight,
                 const float *bias) {
    double mean = 0.0, squares = 0.0, C = (double)m->C;
    for (size_t c = 0; c < m->C && m->layernorm; c++) {
        mean += x[c] / C;
    }
    for (size_t c = 0; c < m->C; c++) {
        squares += (x[c] - mean) * (x[c] - mean) / C;
    }
    double rstd = 1.0 / sqrt(squares + (double)m->eps);
    for (size_t c = 0; c < m->C; c++) {
        out[c] = (x[c] - mean) * rstd * (double)weight[c] + (bias != NULL ? (double)bias[c] : 0.0);
    }
}

static void multiply(double *out, const float *weight, const float *bias, const double *in,
                     size_t N, size_t K) {
    for (size_t n = 0; n < N; n++) {
        out[n] = dot_f64(in, weight + n * K, K) + (bias != NULL ? (double)bias[n] : 0.0);
    }
}

static void rotate(const struct endless_model *m, double *to, const double *head, size_t place) {
    memcpy(to, head, m->HS * sizeof *to);
    for (size_t i = 0; i < m->rotary / 2; i++) {
        bool together = m->layout == NN_ROPE_INTERLEAVED;
        size_t one = together ? 2 * i : i, other = together ? one + 1 : i + m->rotary / 2;
        double angle = (double)place * pow((double)m->theta, -2.0 * (double)i / (double)m->rotary);
        to[one] = head[one] * cos(angle) - head[other] * sin(angle);
        to[other] = head[one] * sin(angle) + head[other] * cos(angle);
    }
}

/* The token at place s of the n that the one at c->position sees. */
static size_t token_at(const struct endless_case *c, size_t s, size_t n) {
    return s < c->host.sinks ? s : c->position + 1 - n + s;
}

static void attend_head(struct endless_case *c, const struct activations *a, size_t l, size_t h) {
    const struct endless_model *m = &c->host;
    size_t rows = m->sinks + m->window, width = m->KVH * m->HS;
    size_t n = c->position + 1 < rows ? c->position + 1 : rows;
    size_t head = l * c->tokens * width + h / (m->NH / m->KVH) * m->HS;
    double largest = -INFINITY, sum = 0.0, *out = a->heads + h * m->HS;
    rotate(m, a->q, a->qkv + h * m->HS, n - 1);
    for (size_t s = 0; s < n; s++) {
        rotate(m, a->k, c->k + head + token_at(c, s, n) * width, s);
        a->scores[s] = 0.0;
        for (size_t i = 0; i < m->HS; i++) {
            a->scores[s] += a->q[i] * a->k[i] / sqrt((double)m->HS);
        }
        largest = fmax(largest, a->scores[s]);
    }
    memset(out, 0, m->HS * sizeof *out);
    for (size_t s = 0; s < n; s++) {
        sum += exp(a->scores[s] - largest);
    }
    for (size_t s = 0; s < n; s++) {
        const double *v = c->v + head + token_at(c, s, n) * width;
        for (size_t i = 0; i < m->HS; i++) {
            out[i] += exp(a->scores[s] - largest) / sum * v[i];
        }
    }
}

/* As the cache stores it. */
static double rounded(double x, enum nn_dtype dtype) {
    unsigned char stored[sizeof(float)];
    float value = (float)x;
    nn_dtype_store(stored, &value, 1, dtype);
    nn_dtype_load(&value, stored, 1, dtype);
    return dtype == NN_F32 ? x : (double)value;
}

/* added += attention of a->normed. */
static void attend(struct endless_case *c, const struct activations *a, size_t l) {
    const struct endless_model *m = &c->host;
    const struct endless_layer *w = &m->layers[l];
    size_t q = m->NH * m->HS, width = m->KVH * m->HS;
    double *k = c->k + (l * c->tokens + c->position) * width;
    double *v = c->v + (l * c->tokens + c->position) * width;
    multiply(a->qkv, w->qkv, w->qkv_bias, a->normed, q + 2 * width, m->C);
    for (size_t i = 0; i < width; i++) {
        k[i] = rounded(a->qkv[q + i], m->dtype);
        v[i] = rounded(a->qkv[q + width + i], m->dtype);
    }
    for (size_t h = 0; h < m->NH; h++) {
        attend_head(c, a, l, h);
    }
    for (size_t i = 0; i < m->C; i++) {
        a->added[i] += dot_f64(a->heads, (const float *)w->out + i * q, q) +
                       (w->out_bias != NULL ? (double)w->out_bias[i] : 0.0);
    }
}

static double activated(double x, enum nn_activation f) {
    if (f == NN_GELU_TANH) {
        return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    }
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
}

/* added += the feed-forward of a->normed. */
static void feed_forward(const struct endless_case *c, const struct activations *a, size_t l) {
    const struct endless_model *m = &c->host;
    const struct endless_layer *w = &m->layers[l];
    multiply(a->up, w->up, w->up_bias, a->normed, m->gated ? 2 * m->hidden : m->hidden, m->C);
    for (size_t i = 0; i < m->hidden; i++) {
        a->up[i] = m->gated ? a->up[i] / (1.0 + exp(-a->up[i])) * a->up[m->hidden + i]
                            : activated(a->up[i], m->activation);
    }
    for (size_t i = 0; i < m->C; i++) {
        a->added[i] += dot_f64(a->up, (const float *)w->down + i * m->hidden, m->hidden) +
                       (w->down_bias != NULL ? (double)w->down_bias[i] : 0.0);
    }
}

static void add_to_x(const struct endless_model *m, const struct activations *a) {
    for (size_t i = 0; i < m->C; i++) {
        a->x[i] += a->added[i];
        a->added[i] = 0.0;
    }
}

void endless_case_next(struct endless_case *c, int32_t token) {
    const struct endless_model *m = &c->host;
    struct activations a = activations_of(c);
    for (size_t i = 0; i < m->C; i++) {
        a.x[i] = (double)((const float *)m->embedding)[(size_t)token * m->C + i];
        a.added[i] = 0.0;
    }
    for (size_t l = 0; l < m->L; l++) {
        const struct endless_layer *w = &m->layers[l];
        norm(m, a.normed, a.x, w->norms[0], w->norm_biases[0]);
        attend(c, &a, l);
        if (!m->parallel) {
            add_to_x(m, &a);
        }
        norm(m, a.normed, a.x, w->norms[1], w->norm_biases[1]);
        feed_forward(c, &a, l);
        add_to_x(m, &a);
    }
    norm(m, a.normed, a.x, m->final_norm, m->final_norm_bias);
    for (size_t i = 0; i < m->V; i++) {
        c->want[i] = (float)dot_f64(a.normed, (const float *)m->classifier + i * m->C, m->C);
    }
    c->position++;
}

double endless_case_tolerance(const struct endless_case *c) {
    double largest = 0.0;
    for (size_t i = 0; i < c->host.V; i++) {
        largest = fmax(largest, fabs((double)c->want[i]));
    }
    double roundings = c->host.dtype == NN_F32 ? 0.0 : 8.0 * nn_dtype_rounding(c->host.dtype);
    return largest * (1e-4 + roundings);
}

/* ---- Shapes ---- */

struct endless_model endless_small_neox(enum nn_dtype dtype) {
    return (struct endless_model){.C = 48,
                                  .hidden = 104,
                                  .L = 2,
                                  .NH = 3,
                                  .KVH = 3,
                                  .HS = 16,
                                  .V = 61,
                                  .rotary = 6,
                                  .sinks = 4,
                                  .window = 12,
                                  .layernorm = true,
                                  .parallel = true,
                                  .activation = NN_GELU,
                                  .eps = 1e-5f,
                                  .theta = 10000.0f,
                                  .layout = NN_ROPE_HALVES,
                                  .dtype = dtype};
}

struct endless_model endless_small_llama2(enum nn_dtype dtype) {
    return (struct endless_model){.C = 40,
                                  .hidden = 72,
                                  .L = 2,
                                  .NH = 4,
                                  .KVH = 2,
                                  .HS = 10,
                                  .V = 61,
                                  .rotary = 10,
                                  .sinks = 2,
                                  .window = 9,
                                  .gated = true,
                                  .eps = 1e-5f,
                                  .theta = 10000.0f,
                                  .layout = NN_ROPE_INTERLEAVED,
                                  .dtype = dtype};
}
