/* Decoders: pre-norm, rotary embedding, causal attention, a feed-forward network; attention and
 * feed-forward in parallel or one after the other; each row predicts the next token. */
#include "common/train/models/train_decoder.h"

#include <stdlib.h>

/* Activations of a layer that the forward pass keeps; x is the layer's input. */
struct activity {
    void *normed, *stats;         /* (rows, C), (rows, 1 or 2): norm of x */
    void *qkv;                    /* (rows, (NH + 2 KVH) HS), q and k rotated */
    void *attended, *lse;         /* (rows, NH HS), (rows, NH): output of attention */
    void *middle;                 /* (rows, C): x + attention_out(attended) */
    void *ffn_normed, *ffn_stats; /* (rows, C), (rows, 1 or 2): norm of middle; in parallel, of x */
    void *expanded;               /* (rows, hidden or 2 hidden): up(ffn_normed) */
    void *activated;              /* (rows, hidden) */
    void *output;                 /* (rows, C): middle + down(activated) */
};

/* Activations of the head, which processes at most `count` rows at once. */
struct head {
    size_t count;
    void *rows;           /* (count, C): of the residual stream */
    void *normed, *stats; /* (count, C), (count, 1 or 2) */
    void *logits;         /* (count, V) */
    void *drows;          /* (count, C): gradient */
};

struct train_decoder {
    struct train_decoder_shape shape;
    struct train_decoder_places places;

    void *first;           /* (rows, C): the embedded tokens */
    struct activity *kept; /* (L) */
    struct head head;

    /* Gradients of the backward pass. */
    void *dx;      /* (rows, C): of the residual stream */
    void *dnormed; /* (rows, C): of a norm */
    void *dffn;    /* (rows, C): of the feed-forward's norm; in parallel only */
    void *dinner;  /* (rows, max(hidden, NH HS)) */
    void *dwide;   /* (rows, max(up_width, qkv_width)) */
};

/* ---- Sizes ---- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t query_width(const struct train_decoder_shape *s) {
    return s->NH * s->HS;
}

static size_t qkv_width(const struct train_decoder_shape *s) {
    return (s->NH + 2 * s->KVH) * s->HS;
}

static size_t up_width(const struct train_decoder_shape *s) {
    return s->gated ? 2 * s->hidden : s->hidden;
}

static const struct train_decoder_family *family_of(const struct train_config *config) {
    return config->is_gpt_neox ? &train_gpt_neox_family : &train_llama2_family;
}

static enum status check(const struct train_config *config, struct error *error) {
    return family_of(config)->check(config, error);
}

static size_t vocabulary(const struct train_config *config) {
    return family_of(config)->shape(config).V;
}

static size_t longest(const struct train_config *config) {
    return family_of(config)->shape(config).T;
}

static size_t layers(const struct train_config *config) {
    return family_of(config)->shape(config).L;
}

static enum status create(struct train_model *m) {
    struct train_decoder *d = calloc(1, sizeof *d);
    m->decoder = d;
    if (d == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    d->shape = family_of(&m->config)->shape(&m->config);
    d->places.layers = calloc(d->shape.L, sizeof *d->places.layers);
    d->kept = calloc(d->shape.L, sizeof *d->kept);
    return d->places.layers != NULL && d->kept != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void free_decoder(struct train_model *m) {
    if (m->decoder != NULL) {
        free(m->decoder->places.layers);
        free(m->decoder->kept);
        free(m->decoder);
    }
}

static void list(struct train_model *m, struct train_listing *listing) {
    family_of(&m->config)->list(&m->config, listing, &m->decoder->places);
}

/* Its matrices follow each other, query first. */
static size_t first_of(const struct train_model *m, size_t layer) {
    return m->decoder->places.layers[layer].qkv.weight;
}

/* ---- Activations ---- */

/* Numbers that a norm keeps of each row. */
static size_t stats_of(const struct train_decoder_shape *s) {
    return s->layernorm ? 2 : 1;
}

static void plan_layer(struct train_model *m, struct train_space *s, struct activity *k) {
    const struct train_decoder_shape *c = &m->decoder->shape;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations, wide = m->engine->weights;
    train_space_take(s, &k->normed, rows, c->C, type);
    train_space_take(s, &k->stats, rows, stats_of(c), wide);
    train_space_take(s, &k->qkv, rows, qkv_width(c), type);
    train_space_take(s, &k->attended, rows, query_width(c), type);
    train_space_take(s, &k->lse, rows, c->NH, wide);
    train_space_take(s, &k->middle, rows, c->C, type);
    train_space_take(s, &k->ffn_normed, rows, c->C, type);
    train_space_take(s, &k->ffn_stats, rows, stats_of(c), wide);
    train_space_take(s, &k->expanded, rows, up_width(c), type);
    train_space_take(s, &k->activated, rows, c->hidden, type);
    train_space_take(s, &k->output, rows, c->C, type);
}

static void plan_head(struct train_model *m, struct train_space *s) {
    const struct train_decoder_shape *c = &m->decoder->shape;
    struct head *head = &m->decoder->head;
    enum train_type type = m->engine->activations;
    size_t rows = m->config.most_rows;
    head->count = rows < TRAIN_HEAD_ROWS ? rows : TRAIN_HEAD_ROWS;
    train_space_take(s, &head->rows, head->count, c->C, type);
    train_space_take(s, &head->normed, head->count, c->C, type);
    train_space_take(s, &head->stats, head->count, stats_of(c), m->engine->weights);
    train_space_take(s, &head->logits, head->count, c->V, type);
    train_space_take(s, &head->drows, head->count, c->C, type);
}

static void plan(struct train_model *m, struct train_space *s) {
    struct train_decoder *d = m->decoder;
    const struct train_decoder_shape *c = &d->shape;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations;
    train_space_take(s, &d->first, rows, c->C, type);
    for (size_t l = 0; l < c->L; l++) {
        plan_layer(m, s, &d->kept[l]);
    }
    train_space_take(s, &d->dx, rows, c->C, type);
    train_space_take(s, &d->dnormed, rows, c->C, type);
    if (c->parallel) {
        train_space_take(s, &d->dffn, rows, c->C, type);
    }
    train_space_take(s, &d->dinner, rows, larger(c->hidden, query_width(c)), type);
    train_space_take(s, &d->dwide, rows, larger(up_width(c), qkv_width(c)), type);
    plan_head(m, s);
}

/* ---- Operators with the model's sizes ---- */

static struct train_linear linear_of(const struct train_decoder_shape *s,
                                     struct train_linear_place place, size_t N, size_t K) {
    return (struct train_linear){.place = place, .N = N, .K = K, .has_bias = s->layernorm};
}

/* The linear layers of a layer. */
struct linears {
    struct train_linear qkv, out, up, down;
};

static struct linears linears_of(const struct train_decoder *d, size_t l) {
    const struct train_decoder_shape *s = &d->shape;
    const struct train_decoder_layer *w = &d->places.layers[l];
    return (struct linears){linear_of(s, w->qkv, qkv_width(s), s->C),
                            linear_of(s, w->attention_out, s->C, query_width(s)),
                            linear_of(s, w->up, up_width(s), s->C),
                            linear_of(s, w->down, s->C, s->hidden)};
}

static struct train_linear classifier_of(const struct train_decoder *d) {
    const struct train_linear_place place = {.weight = d->places.classifier};
    return (struct train_linear){.place = place, .N = d->shape.V, .K = d->shape.C};
}

/* Rotary embedding of the query and key heads of each row, which lie side by side; if `back`, its
   backward pass. The operator rotates whole heads: where only the first channels of a head are
   rotated, these are a head of their own. */
static enum status rotate(const struct train_model *m, const struct train_pass *pass, void *qkv,
                          bool back) {
    const struct train_engine *e = m->engine;
    const struct train_decoder_shape *s = &m->decoder->shape;
    size_t heads = s->NH + s->KVH, width = qkv_width(s);
    if (s->rotary == s->HS) {
        return e->rope(e->context, qkv, pass->positions, pass->rows, heads, s->HS, width, s->theta,
                       s->layout, back);
    }
    for (size_t head = 0; head < heads; head++) {
        TRY(e->rope(e->context, train_at(qkv, head * s->HS, e->activations), pass->positions,
                    pass->rows, 1, s->rotary, width, s->theta, s->layout, back));
    }
    return STATUS_OK;
}

static struct train_attention attention_of(const struct train_model *m,
                                           const struct train_pass *pass, const void *qkv) {
    const struct train_decoder_shape *s = &m->decoder->shape;
    struct train_attention attention = train_attention_of(m, pass, qkv, s->NH, s->KVH, s->HS);
    attention.causal = true;
    return attention;
}

/* x += add. */
static enum status add_to(const struct train_model *m, void *x, const void *add, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_dropout none = {.p = 0.0f};
    return e->dropout(e->context, x, add, x, rows * m->decoder->shape.C, &none);
}

/* out = norm of in. LayerNorm's operator also writes a sum, which is `in` itself. */
static enum status normalise(const struct train_model *m, struct train_norm_place place, void *out,
                             void *stats, void *in, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_decoder_shape *s = &m->decoder->shape;
    const struct train_norm norm = train_norm_of(m, place, s->layernorm, s->eps);
    const struct train_dropout none = {.p = 0.0f};
    return s->layernorm
               ? e->layernorm(e->context, out, stats, in, NULL, in, &none, &norm, rows, s->C)
               : e->rmsnorm(e->context, out, stats, in, &norm, rows, s->C);
}

/* Backward pass of a norm: dx += the gradient of its input, from d, the gradient of its output,
   which it may overwrite; dx NULL: d becomes that gradient. */
static enum status back_norm(const struct train_model *m, struct train_norm_place place, void *dx,
                             void *d, const void *in, const void *stats, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_decoder_shape *s = &m->decoder->shape;
    const struct train_norm norm = train_norm_of(m, place, s->layernorm, s->eps);
    const struct train_norm_gradient gradient = train_norm_gradient_of(m, place, s->layernorm);
    if (!s->layernorm) {
        return e->rmsnorm_backward(e->context, dx != NULL ? dx : d, dx, &gradient, d, in, stats,
                                   &norm, rows, s->C);
    }
    TRY(e->layernorm_backward(e->context, d, &gradient, d, in, stats, &norm, rows, s->C));
    return dx != NULL ? add_to(m, dx, d, rows) : STATUS_OK;
}

/* activated = GELU(expanded), or silu(gate) * up. */
static enum status activate(const struct train_model *m, const struct activity *k, size_t rows) {
    const struct train_engine *e = m->engine;
    size_t hidden = m->decoder->shape.hidden;
    return m->decoder->shape.gated
               ? e->silu_gate(e->context, k->activated, k->expanded, rows, hidden)
               : e->activation(e->context, k->activated, k->expanded, rows * hidden, NN_GELU);
}

/* dwide = gradient of expanded, from dinner, that of activated. */
static enum status back_activate(const struct train_model *m, const struct activity *k,
                                 size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_decoder *d = m->decoder;
    size_t hidden = d->shape.hidden;
    return d->shape.gated
               ? e->silu_gate_backward(e->context, d->dwide, d->dinner, k->expanded, rows, hidden)
               : e->activation_backward(e->context, d->dwide, d->dinner, k->expanded, rows * hidden,
                                        NN_GELU);
}

/* ---- Forward ---- */

/* middle = x + attention(norm(x)). */
static enum status forward_attention(const struct train_model *m, const struct train_pass *pass,
                                     size_t l, void *x) {
    const struct train_engine *e = m->engine;
    const struct activity *k = &m->decoder->kept[l];
    const struct linears w = linears_of(m->decoder, l);
    const struct train_attention attention = attention_of(m, pass, k->qkv);
    size_t rows = pass->rows;
    TRY(normalise(m, m->decoder->places.layers[l].attention_norm, k->normed, k->stats, x, rows));
    TRY(train_linear_forward(m, &w.qkv, k->qkv, k->normed, rows));
    TRY(rotate(m, pass, k->qkv, false));
    TRY(e->attention(e->context, k->attended, k->lse, &attention));
    TRY(train_linear_forward(m, &w.out, k->middle, k->attended, rows));
    return add_to(m, k->middle, x, rows);
}

/* What the feed-forward's norm reads. */
static void *ffn_input(const struct train_decoder *d, size_t l, void *x) {
    return d->shape.parallel ? x : d->kept[l].middle;
}

/* output = middle + feed-forward(norm(x or middle)). */
static enum status forward_feed_forward(const struct train_model *m, const struct train_pass *pass,
                                        size_t l, void *x) {
    const struct train_decoder *d = m->decoder;
    const struct activity *k = &d->kept[l];
    const struct linears w = linears_of(d, l);
    size_t rows = pass->rows;
    TRY(normalise(m, d->places.layers[l].ffn_norm, k->ffn_normed, k->ffn_stats, ffn_input(d, l, x),
                  rows));
    TRY(train_linear_forward(m, &w.up, k->expanded, k->ffn_normed, rows));
    TRY(activate(m, k, rows));
    TRY(train_linear_forward(m, &w.down, k->output, k->activated, rows));
    return add_to(m, k->output, k->middle, rows);
}

/* ---- Backward ---- */

/* dnormed = gradient of the feed-forward's norm. */
static enum status back_feed_forward(const struct train_model *m, const struct train_pass *pass,
                                     size_t l, void *dnormed) {
    const struct train_decoder *d = m->decoder;
    const struct activity *k = &d->kept[l];
    const struct linears w = linears_of(d, l);
    TRY(train_linear_backward(m, &w.down, d->dinner, NULL, d->dx, k->activated, pass->rows));
    TRY(back_activate(m, k, pass->rows));
    return train_linear_backward(m, &w.up, dnormed, NULL, d->dwide, k->ffn_normed, pass->rows);
}

/* dnormed = gradient of attention's norm. */
static enum status back_attention(const struct train_model *m, const struct train_pass *pass,
                                  size_t l) {
    const struct train_engine *e = m->engine;
    const struct train_decoder *d = m->decoder;
    const struct train_decoder_shape *s = &d->shape;
    const struct activity *k = &d->kept[l];
    const struct linears w = linears_of(d, l);
    const struct train_attention attention = attention_of(m, pass, k->qkv);
    const struct train_attention_gradient gradient = {
        .dq = d->dwide,
        .dk = train_at(d->dwide, query_width(s), e->activations),
        .dv = train_at(d->dwide, query_width(s) + s->KVH * s->HS, e->activations),
    };
    TRY(train_linear_backward(m, &w.out, d->dinner, NULL, d->dx, k->attended, pass->rows));
    TRY(e->attention_backward(e->context, &gradient, d->dinner, k->attended, k->lse, &attention));
    TRY(rotate(m, pass, d->dwide, true));
    return train_linear_backward(m, &w.qkv, d->dnormed, NULL, d->dwide, k->normed, pass->rows);
}

/* dx becomes the gradient of the layer's input x. In parallel both sublayers' outputs have the
   gradient dx; one after the other, attention's has the feed-forward's, too. */
static enum status back_layer(const struct train_model *m, const struct train_pass *pass, size_t l,
                              void *x) {
    const struct train_decoder *d = m->decoder;
    const struct train_decoder_layer *w = &d->places.layers[l];
    const struct activity *k = &d->kept[l];
    void *dffn = d->shape.parallel ? d->dffn : d->dnormed, *in = ffn_input(d, l, x);
    TRY(back_feed_forward(m, pass, l, dffn));
    if (!d->shape.parallel) {
        TRY(back_norm(m, w->ffn_norm, d->dx, dffn, in, k->ffn_stats, pass->rows));
    }
    TRY(back_attention(m, pass, l));
    if (d->shape.parallel) {
        TRY(back_norm(m, w->ffn_norm, d->dx, dffn, in, k->ffn_stats, pass->rows));
    }
    return back_norm(m, w->attention_norm, d->dx, d->dnormed, x, k->stats, pass->rows);
}

/* ---- Head ---- */

/* Adds the loss of some of the rows that have a label and, in a backward pass, its gradient to dx.
 */
static enum status predict(const struct train_model *m, const struct train_pass *pass, size_t first,
                           size_t count, const void *x) {
    const struct train_engine *e = m->engine;
    const struct train_decoder *d = m->decoder;
    const struct head *h = &d->head;
    const struct train_linear classifier = classifier_of(d);
    const int32_t *targets = pass->targets + first;
    size_t C = d->shape.C;
    TRY(e->gather(e->context, h->rows, x, targets, count, C));
    TRY(normalise(m, d->places.final_norm, h->normed, h->stats, h->rows, count));
    TRY(train_linear_forward(m, &classifier, h->logits, h->normed, count));
    TRY(e->cross_entropy(e->context, h->logits, train_scalar(m, TRAIN_LOSS), pass->labels + first,
                         pass->scale, count, d->shape.V));
    if (!pass->backward) {
        return STATUS_OK;
    }
    TRY(train_linear_backward(m, &classifier, h->drows, NULL, h->logits, h->normed, count));
    TRY(back_norm(m, d->places.final_norm, NULL, h->drows, h->rows, h->stats, count));
    return e->scatter(e->context, d->dx, h->drows, targets, count, C);
}

static enum status run_head(const struct train_model *m, const struct train_pass *pass,
                            const void *x) {
    size_t most = m->decoder->head.count;
    for (size_t first = 0; first < pass->target_count; first += most) {
        size_t left = pass->target_count - first;
        TRY(predict(m, pass, first, left < most ? left : most, x));
    }
    return STATUS_OK;
}

/* ---- The whole model ---- */

static void *input_of(const struct train_decoder *d, size_t l) {
    return l > 0 ? d->kept[l - 1].output : d->first;
}

static enum status run(struct train_model *m, const struct train_pass *pass) {
    const struct train_engine *e = m->engine;
    const struct train_decoder *d = m->decoder;
    size_t L = d->shape.L, C = d->shape.C;
    TRY(e->embedding(e->context, d->first, train_weight(m, d->places.embedding), pass->ids,
                     pass->rows, C, false));
    for (size_t l = 0; l < L; l++) {
        TRY(forward_attention(m, pass, l, input_of(d, l)));
        TRY(forward_feed_forward(m, pass, l, input_of(d, l)));
    }
    if (pass->backward) {
        TRY(e->zero(e->context, d->dx, pass->rows * C * train_type_bytes(e->activations)));
    }
    TRY(run_head(m, pass, input_of(d, L)));
    if (!pass->backward) {
        return STATUS_OK;
    }
    for (size_t l = L; l-- > 0;) {
        TRY(back_layer(m, pass, l, input_of(d, l)));
        TRY(train_gradients_stand(m, first_of(m, l)));
    }
    return e->embedding_backward(e->context, train_gradient(m, d->places.embedding), d->dx,
                                 &pass->words, C);
}

const struct train_architecture train_decoder_architecture = {
    .check = check,
    .create = create,
    .free = free_decoder,
    .list = list,
    .plan = plan,
    .run = run,
    .layers = layers,
    .first_of = first_of,
    .vocabulary = vocabulary,
    .longest = longest,
};
