/* GPT-NeoX's decoder: LayerNorm, partial rotary embedding, GELU; attention and feed-forward in
 * parallel or one after the other; each row predicts the next token. */
#include <stdio.h>
#include <stdlib.h>

#include "common/train/models/train_model_internal.h"

/* Offsets of a layer's parameters. */
struct layer {
    struct train_norm_place attention_norm;  /* (C) */
    struct train_linear_place qkv;           /* (3 C, C): query, key, value */
    struct train_linear_place attention_out; /* (C, C) */
    struct train_norm_place ffn_norm;        /* (C) */
    struct train_linear_place up;            /* (hidden, C) */
    struct train_linear_place down;          /* (C, hidden) */
};

/* Activations of a layer that the forward pass keeps; x is the layer's input. */
struct activity {
    void *normed, *stats;         /* (rows, C), (rows, 2): LayerNorm(x) */
    void *qkv;                    /* (rows, 3 C), a part of q and k rotated */
    void *attended, *lse;         /* (rows, C), (rows, NH): output of attention */
    void *middle;                 /* (rows, C): x + attention_out(attended) */
    void *ffn_normed, *ffn_stats; /* (rows, C), (rows, 2): LayerNorm(x), or of middle */
    void *expanded;               /* (rows, hidden): up(ffn_normed) */
    void *activated;              /* (rows, hidden): GELU(expanded) */
    void *output;                 /* (rows, C): middle + down(activated) */
};

/* Activations of the head, which processes at most `count` rows at once. */
struct head {
    size_t count;
    void *rows;           /* (count, C): of the residual stream */
    void *normed, *stats; /* (count, C), (count, 2) */
    void *logits;         /* (count, V) */
    void *drows;          /* (count, C): gradient */
};

struct train_gpt_neox {
    size_t embedding, classifier; /* offsets of (V, C); equal when tied */
    struct train_norm_place final_norm;
    struct layer *layers; /* (L) */

    void *first;           /* (rows, C): the embedded tokens */
    struct activity *kept; /* (L) */
    struct head head;

    /* Gradients of the backward pass. */
    void *dx;      /* (rows, C): of the residual stream */
    void *dnormed; /* (rows, C): of a norm, then of its input */
    void *dffn;    /* (rows, C): the same of the feed-forward's norm */
    void *dinner;  /* (rows, max(hidden, C)) */
    void *dqkv;    /* (rows, 3 C) */
};

/* ---- Sizes ---- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static enum status check(const struct train_config *config, struct error *error) {
    enum { MOST_LAYERS = 1024 };
    const struct gpt_neox_config *c = &config->gpt_neox;
    const size_t sizes[] = {c->C, c->hidden, c->L, c->NH, c->HS, c->V, c->T, c->rotary};
    bool fit = train_sizes_fit(sizes, sizeof sizes / sizeof *sizes) && c->L <= MOST_LAYERS &&
               c->NH * c->HS == c->C && c->HS % 2 == 0 && c->rotary % 2 == 0 && c->rotary <= c->HS;
    if (!fit) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "GPT-NeoX sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, HS "
                         "%zu, rotary %zu, V %zu, T %zu",
                         c->C, c->hidden, c->L, c->NH, c->HS, c->rotary, c->V, c->T);
    }
    if (c->C % TRAIN_ALIGNMENT != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "C %zu: training needs multiples of %d",
                         c->C, TRAIN_ALIGNMENT);
    }
    if (c->activation != NN_GELU || !c->attention_bias) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "training a GPT-NeoX needs the exact GELU and biases in attention");
    }
    return STATUS_OK;
}

static size_t vocabulary(const struct train_config *config) {
    return config->gpt_neox.V;
}

static size_t longest(const struct train_config *config) {
    return config->gpt_neox.T;
}

static enum status create(struct train_model *m) {
    struct train_gpt_neox *neox = calloc(1, sizeof *neox);
    m->gpt_neox = neox;
    if (neox == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    neox->layers = calloc(m->config.gpt_neox.L, sizeof *neox->layers);
    neox->kept = calloc(m->config.gpt_neox.L, sizeof *neox->kept);
    return neox->layers != NULL && neox->kept != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void free_gpt_neox(struct train_model *m) {
    if (m->gpt_neox != NULL) {
        free(m->gpt_neox->layers);
        free(m->gpt_neox->kept);
        free(m->gpt_neox);
    }
}

/* ---- Parameters ---- */

static void list_layer(struct train_listing *l, const struct gpt_neox_config *c,
                       struct layer *layer) {
    l->NH = c->NH;
    train_listing_add_linear(l, "attention.query_key_value", 3 * c->C, c->C, &layer->qkv);
    l->NH = 0;
    train_listing_add_linear(l, "attention.dense", c->C, c->C, &layer->attention_out);
    train_listing_add_linear(l, "mlp.dense_h_to_4h", c->hidden, c->C, &layer->up);
    train_listing_add_linear(l, "mlp.dense_4h_to_h", c->C, c->hidden, &layer->down);
    train_listing_add_norm(l, "input_layernorm", c->C, &layer->attention_norm);
    train_listing_add_norm(l, "post_attention_layernorm", c->C, &layer->ffn_norm);
}

static void list(struct train_model *m, struct train_listing *l) {
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    struct train_gpt_neox *neox = m->gpt_neox;
    l->scope[0] = '\0';
    train_listing_add(l, "gpt_neox.embed_in.weight", c->V, c->C, &neox->embedding);
    for (size_t i = 0; i < c->L; i++) {
        snprintf(l->scope, sizeof l->scope, "gpt_neox.layers.%zu.", i);
        list_layer(l, c, &neox->layers[i]);
    }
    l->scope[0] = '\0';
    train_listing_add_norm(l, "gpt_neox.final_layer_norm", c->C, &neox->final_norm);
    if (m->config.tied) {
        neox->classifier = neox->embedding;
    } else {
        train_listing_add(l, "embed_out.weight", c->V, c->C, &neox->classifier);
    }
}

/* ---- Activations ---- */

static void plan_layer(struct train_model *m, struct train_space *s, struct activity *k) {
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations, wide = m->engine->weights;
    train_space_take(s, &k->normed, rows, c->C, type);
    train_space_take(s, &k->stats, rows, 2, wide);
    train_space_take(s, &k->qkv, rows, 3 * c->C, type);
    train_space_take(s, &k->attended, rows, c->C, type);
    train_space_take(s, &k->lse, rows, c->NH, wide);
    train_space_take(s, &k->middle, rows, c->C, type);
    train_space_take(s, &k->ffn_normed, rows, c->C, type);
    train_space_take(s, &k->ffn_stats, rows, 2, wide);
    train_space_take(s, &k->expanded, rows, c->hidden, type);
    train_space_take(s, &k->activated, rows, c->hidden, type);
    train_space_take(s, &k->output, rows, c->C, type);
}

static void plan_head(struct train_model *m, struct train_space *s) {
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    struct head *head = &m->gpt_neox->head;
    enum train_type type = m->engine->activations;
    size_t rows = m->config.most_rows;
    head->count = rows < TRAIN_HEAD_ROWS ? rows : TRAIN_HEAD_ROWS;
    train_space_take(s, &head->rows, head->count, c->C, type);
    train_space_take(s, &head->normed, head->count, c->C, type);
    train_space_take(s, &head->stats, head->count, 2, m->engine->weights);
    train_space_take(s, &head->logits, head->count, c->V, type);
    train_space_take(s, &head->drows, head->count, c->C, type);
}

static void plan(struct train_model *m, struct train_space *s) {
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    struct train_gpt_neox *neox = m->gpt_neox;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations;
    train_space_take(s, &neox->first, rows, c->C, type);
    for (size_t l = 0; l < c->L; l++) {
        plan_layer(m, s, &neox->kept[l]);
    }
    train_space_take(s, &neox->dx, rows, c->C, type);
    train_space_take(s, &neox->dnormed, rows, c->C, type);
    train_space_take(s, &neox->dffn, rows, c->C, type);
    train_space_take(s, &neox->dinner, rows, larger(c->hidden, c->C), type);
    train_space_take(s, &neox->dqkv, rows, 3 * c->C, type);
    plan_head(m, s);
}

/* ---- Forward ---- */

static struct train_linear linear_of(struct train_linear_place place, size_t N, size_t K) {
    return (struct train_linear){.place = place, .N = N, .K = K, .has_bias = true};
}

static struct train_linear classifier_of(const struct train_model *m) {
    const struct train_linear_place place = {.weight = m->gpt_neox->classifier};
    return (struct train_linear){
        .place = place, .N = m->config.gpt_neox.V, .K = m->config.gpt_neox.C};
}

/* Rotary embedding of the query and key heads of each row, which lie side by side; if `back`, its
   backward pass. The operator rotates whole heads, so each head's first channels are a head of
   their own. */
static enum status rotate(const struct train_model *m, const struct train_pass *pass, void *qkv,
                          bool back) {
    const struct train_engine *e = m->engine;
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    for (size_t head = 0; head < 2 * c->NH; head++) {
        TRY(e->rope(e->context, train_at(qkv, head * c->HS, e->activations), pass->positions,
                    pass->rows, 1, c->rotary, 3 * c->C, c->rope_theta, NN_ROPE_HALVES, back));
    }
    return STATUS_OK;
}

static struct train_attention attention_of(const struct train_model *m,
                                           const struct train_pass *pass, const void *qkv) {
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    struct train_attention attention = train_attention_of(m, pass, qkv, c->NH, c->NH, c->HS);
    attention.causal = true;
    return attention;
}

/* x += add. */
static enum status add_to(const struct train_model *m, const struct train_pass *pass, void *x,
                          const void *add) {
    const struct train_engine *e = m->engine;
    const struct train_dropout none = {.p = 0.0f};
    return e->dropout(e->context, x, add, x, pass->rows * m->config.gpt_neox.C, &none);
}

/* out = LayerNorm(in). The operator also writes a sum, which is `in` itself. */
static enum status normalise(const struct train_model *m, struct train_norm_place place, void *out,
                             void *stats, void *in, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_norm norm = train_norm_of(m, place, true, m->config.gpt_neox.norm_eps);
    const struct train_dropout none = {.p = 0.0f};
    return e->layernorm(e->context, out, stats, in, NULL, in, &none, &norm, rows,
                        m->config.gpt_neox.C);
}

/* middle = x + attention(norm(x)). */
static enum status forward_attention(const struct train_model *m, const struct train_pass *pass,
                                     size_t l, void *x) {
    const struct train_engine *e = m->engine;
    size_t C = m->config.gpt_neox.C;
    const struct layer *w = &m->gpt_neox->layers[l];
    const struct activity *k = &m->gpt_neox->kept[l];
    const struct train_linear qkv = linear_of(w->qkv, 3 * C, C);
    const struct train_linear out = linear_of(w->attention_out, C, C);
    const struct train_attention attention = attention_of(m, pass, k->qkv);
    TRY(normalise(m, w->attention_norm, k->normed, k->stats, x, pass->rows));
    TRY(train_linear_forward(m, &qkv, k->qkv, k->normed, pass->rows));
    TRY(rotate(m, pass, k->qkv, false));
    TRY(e->attention(e->context, k->attended, k->lse, &attention));
    TRY(train_linear_forward(m, &out, k->middle, k->attended, pass->rows));
    return add_to(m, pass, k->middle, x);
}

/* What the feed-forward's norm reads. */
static void *ffn_input(const struct train_model *m, size_t l, void *x) {
    return m->config.gpt_neox.parallel ? x : m->gpt_neox->kept[l].middle;
}

/* output = middle + mlp(norm(x or middle)). */
static enum status forward_feed_forward(const struct train_model *m, const struct train_pass *pass,
                                        size_t l, void *x) {
    const struct train_engine *e = m->engine;
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    const struct layer *w = &m->gpt_neox->layers[l];
    const struct activity *k = &m->gpt_neox->kept[l];
    const struct train_linear up = linear_of(w->up, c->hidden, c->C);
    const struct train_linear down = linear_of(w->down, c->C, c->hidden);
    TRY(normalise(m, w->ffn_norm, k->ffn_normed, k->ffn_stats, ffn_input(m, l, x), pass->rows));
    TRY(train_linear_forward(m, &up, k->expanded, k->ffn_normed, pass->rows));
    TRY(e->activation(e->context, k->activated, k->expanded, pass->rows * c->hidden, NN_GELU));
    TRY(train_linear_forward(m, &down, k->output, k->activated, pass->rows));
    return add_to(m, pass, k->output, k->middle);
}

/* ---- Backward ---- */

/* Backward pass of a norm: d, the gradient of its output, becomes that of its input. */
static enum status back_norm(const struct train_model *m, struct train_norm_place place, void *d,
                             const void *in, const void *stats, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_norm norm = train_norm_of(m, place, true, m->config.gpt_neox.norm_eps);
    const struct train_norm_gradient gradient = train_norm_gradient_of(m, place, true);
    return e->layernorm_backward(e->context, d, &gradient, d, in, stats, &norm, rows,
                                 m->config.gpt_neox.C);
}

/* dffn = gradient of what the feed-forward's norm reads. */
static enum status back_feed_forward(const struct train_model *m, const struct train_pass *pass,
                                     size_t l, void *x) {
    const struct train_engine *e = m->engine;
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    const struct train_gpt_neox *d = m->gpt_neox;
    const struct layer *w = &d->layers[l];
    const struct activity *k = &d->kept[l];
    const struct train_linear up = linear_of(w->up, c->hidden, c->C);
    const struct train_linear down = linear_of(w->down, c->C, c->hidden);
    size_t rows = pass->rows;
    TRY(train_linear_backward(m, &down, d->dinner, NULL, d->dx, k->activated, rows));
    TRY(e->activation_backward(e->context, d->dinner, d->dinner, k->expanded, rows * c->hidden,
                               NN_GELU));
    TRY(train_linear_backward(m, &up, d->dffn, NULL, d->dinner, k->ffn_normed, rows));
    return back_norm(m, w->ffn_norm, d->dffn, ffn_input(m, l, x), k->ffn_stats, rows);
}

/* dnormed = gradient of what attention's norm reads. */
static enum status back_attention(const struct train_model *m, const struct train_pass *pass,
                                  size_t l, const void *x) {
    const struct train_engine *e = m->engine;
    size_t C = m->config.gpt_neox.C, rows = pass->rows;
    const struct train_gpt_neox *d = m->gpt_neox;
    const struct layer *w = &d->layers[l];
    const struct activity *k = &d->kept[l];
    const struct train_linear qkv = linear_of(w->qkv, 3 * C, C);
    const struct train_linear out = linear_of(w->attention_out, C, C);
    const struct train_attention attention = attention_of(m, pass, k->qkv);
    const struct train_attention_gradient gradient = {
        .dq = d->dqkv,
        .dk = train_at(d->dqkv, C, e->activations),
        .dv = train_at(d->dqkv, 2 * C, e->activations),
    };
    TRY(train_linear_backward(m, &out, d->dinner, NULL, d->dx, k->attended, rows));
    TRY(e->attention_backward(e->context, &gradient, d->dinner, k->attended, k->lse, &attention));
    TRY(rotate(m, pass, d->dqkv, true));
    TRY(train_linear_backward(m, &qkv, d->dnormed, NULL, d->dqkv, k->normed, rows));
    return back_norm(m, w->attention_norm, d->dnormed, x, k->stats, rows);
}

/* In parallel both sublayers' outputs have the gradient dx; one after the other, attention's has
   the feed-forward's, too. */
static enum status back_layer(const struct train_model *m, const struct train_pass *pass, size_t l,
                              void *x) {
    const struct train_gpt_neox *d = m->gpt_neox;
    bool parallel = m->config.gpt_neox.parallel;
    TRY(back_feed_forward(m, pass, l, x));
    TRY(parallel ? STATUS_OK : add_to(m, pass, d->dx, d->dffn));
    TRY(back_attention(m, pass, l, x));
    TRY(parallel ? add_to(m, pass, d->dx, d->dffn) : STATUS_OK);
    return add_to(m, pass, d->dx, d->dnormed);
}

/* ---- Head ---- */

/* Adds the loss of some of the rows that have a label and, in a backward pass, its gradient to dx.
 */
static enum status predict(const struct train_model *m, const struct train_pass *pass, size_t first,
                           size_t count, const void *x) {
    const struct train_engine *e = m->engine;
    const struct gpt_neox_config *c = &m->config.gpt_neox;
    const struct train_gpt_neox *neox = m->gpt_neox;
    const struct head *h = &neox->head;
    const struct train_linear classifier = classifier_of(m);
    const int32_t *targets = pass->targets + first;
    TRY(e->gather(e->context, h->rows, x, targets, count, c->C));
    TRY(normalise(m, neox->final_norm, h->normed, h->stats, h->rows, count));
    TRY(train_linear_forward(m, &classifier, h->logits, h->normed, count));
    TRY(e->cross_entropy(e->context, h->logits, train_scalar(m, TRAIN_LOSS), pass->labels + first,
                         pass->scale, count, c->V));
    if (!pass->backward) {
        return STATUS_OK;
    }
    TRY(train_linear_backward(m, &classifier, h->drows, NULL, h->logits, h->normed, count));
    TRY(back_norm(m, neox->final_norm, h->drows, h->rows, h->stats, count));
    return e->scatter(e->context, neox->dx, h->drows, targets, count, c->C);
}

static enum status run_head(const struct train_model *m, const struct train_pass *pass,
                            const void *x) {
    size_t most = m->gpt_neox->head.count;
    for (size_t first = 0; first < pass->target_count; first += most) {
        size_t left = pass->target_count - first;
        TRY(predict(m, pass, first, left < most ? left : most, x));
    }
    return STATUS_OK;
}

static void *input_of(const struct train_gpt_neox *neox, size_t l) {
    return l > 0 ? neox->kept[l - 1].output : neox->first;
}

static size_t layers(const struct train_config *config) {
    return config->gpt_neox.L;
}

/* Its matrices follow each other, query first. */
static size_t first_of(const struct train_model *m, size_t layer) {
    return m->gpt_neox->layers[layer].qkv.weight;
}

static enum status run(struct train_model *m, const struct train_pass *pass) {
    const struct train_engine *e = m->engine;
    const struct train_gpt_neox *neox = m->gpt_neox;
    size_t L = m->config.gpt_neox.L, C = m->config.gpt_neox.C;
    TRY(e->embedding(e->context, neox->first, train_weight(m, neox->embedding), pass->ids,
                     pass->rows, C, false));
    for (size_t l = 0; l < L; l++) {
        TRY(forward_attention(m, pass, l, input_of(neox, l)));
        TRY(forward_feed_forward(m, pass, l, input_of(neox, l)));
    }
    if (pass->backward) {
        TRY(e->zero(e->context, neox->dx, pass->rows * C * train_type_bytes(e->activations)));
    }
    TRY(run_head(m, pass, input_of(neox, L)));
    if (!pass->backward) {
        return STATUS_OK;
    }
    for (size_t l = L; l-- > 0;) {
        TRY(back_layer(m, pass, l, input_of(neox, l)));
        TRY(train_gradients_stand(m, first_of(m, l)));
    }
    return e->embedding_backward(e->context, train_gradient(m, neox->embedding), neox->dx,
                                 &pass->words, C);
}

const struct train_architecture train_gpt_neox_architecture = {
    .check = check,
    .create = create,
    .free = free_gpt_neox,
    .list = list,
    .plan = plan,
    .run = run,
    .layers = layers,
    .first_of = first_of,
    .vocabulary = vocabulary,
    .longest = longest,
};
