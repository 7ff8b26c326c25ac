/* Llama2's decoder: pre-norm, rotary embedding, SwiGLU; each row predicts the next token. */
#include <stdio.h>
#include <stdlib.h>

#include "common/train/models/train_model_internal.h"

/* Offsets of a layer's parameters. */
struct layer {
    struct train_norm_place attention_norm;  /* (C) */
    struct train_linear_place qkv;           /* ((NH + 2 KVH) HS, C): query, key, value */
    struct train_linear_place attention_out; /* (C, NH HS) */
    struct train_norm_place ffn_norm;        /* (C) */
    struct train_linear_place gate_up;       /* (2 hidden, C) */
    struct train_linear_place down;          /* (C, hidden) */
};

/* Activations of a layer that the forward pass keeps; x is the layer's input. */
struct activity {
    void *normed, *stats;               /* (rows, C), (rows): RMSNorm(x) */
    void *qkv;                          /* (rows, (NH + 2 KVH) HS), q and k rotated */
    void *attended, *lse;               /* (rows, NH HS), (rows, NH): output of attention */
    void *middle;                       /* (rows, C): x + attention_out(attended) */
    void *middle_normed, *middle_stats; /* (rows, C), (rows): RMSNorm(middle) */
    void *gate_up;                      /* (rows, 2 hidden) */
    void *gated;                        /* (rows, hidden): silu(gate) * up */
    void *output;                       /* (rows, C): middle + down(gated) */
};

/* Activations of the head, which processes at most `count` rows at once. */
struct head {
    size_t count;
    void *rows;           /* (count, C): of the residual stream */
    void *normed, *stats; /* (count, C), (count) */
    void *logits;         /* (count, V) */
    void *drows;          /* (count, C): gradient */
};

struct train_llama2 {
    size_t embedding, classifier; /* offsets of (V, C); equal when tied */
    struct train_norm_place final_norm;
    struct layer *layers; /* (L) */

    void *first;           /* (rows, C): the embedded tokens */
    struct activity *kept; /* (L) */
    struct head head;

    /* Gradients of the backward pass. */
    void *dx;      /* (rows, C): of the residual stream */
    void *dnormed; /* (rows, C) */
    void *dinner;  /* (rows, max(hidden, NH HS)) */
    void *dwide;   /* (rows, max(2 hidden, (NH + 2 KVH) HS)) */
};

/* ---- Sizes ---- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static size_t query_width(const struct llama2_config *c) {
    return c->NH * c->HS;
}

static size_t qkv_width(const struct llama2_config *c) {
    return (c->NH + 2 * c->KVH) * c->HS;
}

static bool has_sizes(const struct llama2_config *c) {
    enum { MOST_LAYERS = 1024 };
    const size_t sizes[] = {c->C, c->hidden, c->L, c->NH, c->KVH, c->HS, c->V, c->T};
    return train_sizes_fit(sizes, sizeof sizes / sizeof *sizes) && c->L <= MOST_LAYERS &&
           c->NH % c->KVH == 0 && c->HS % 2 == 0;
}

static enum status check(const struct train_config *config, struct error *error) {
    const struct llama2_config *c = &config->llama2;
    if (!has_sizes(c)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "Llama2 sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, "
                         "KVH %zu, HS %zu, V %zu, T %zu",
                         c->C, c->hidden, c->L, c->NH, c->KVH, c->HS, c->V, c->T);
    }
    if (c->C % TRAIN_ALIGNMENT != 0 || c->KVH * c->HS % TRAIN_ALIGNMENT != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "C %zu, KVH * HS %zu: training needs multiples of %d", c->C,
                         c->KVH * c->HS, TRAIN_ALIGNMENT);
    }
    return STATUS_OK;
}

static size_t vocabulary(const struct train_config *config) {
    return config->llama2.V;
}

static size_t longest(const struct train_config *config) {
    return config->llama2.T;
}

static enum status create(struct train_model *m) {
    struct train_llama2 *llama2 = calloc(1, sizeof *llama2);
    m->llama2 = llama2;
    if (llama2 == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    llama2->layers = calloc(m->config.llama2.L, sizeof *llama2->layers);
    llama2->kept = calloc(m->config.llama2.L, sizeof *llama2->kept);
    return llama2->layers != NULL && llama2->kept != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void free_llama2(struct train_model *m) {
    if (m->llama2 != NULL) {
        free(m->llama2->layers);
        free(m->llama2->kept);
        free(m->llama2);
    }
}

/* ---- Parameters ---- */

static void list_layer(struct train_listing *l, const struct llama2_config *c,
                       struct layer *layer) {
    size_t keys = c->KVH * c->HS;
    train_listing_add(l, "self_attn.q_proj.weight", query_width(c), c->C, &layer->qkv.weight);
    train_listing_add(l, "self_attn.k_proj.weight", keys, c->C, NULL);
    train_listing_add(l, "self_attn.v_proj.weight", keys, c->C, NULL);
    train_listing_add(l, "self_attn.o_proj.weight", c->C, query_width(c),
                      &layer->attention_out.weight);
    train_listing_add(l, "mlp.gate_proj.weight", c->hidden, c->C, &layer->gate_up.weight);
    train_listing_add(l, "mlp.up_proj.weight", c->hidden, c->C, NULL);
    train_listing_add(l, "mlp.down_proj.weight", c->C, c->hidden, &layer->down.weight);
    train_listing_add(l, "input_layernorm.weight", c->C, 0, &layer->attention_norm.weight);
    train_listing_add(l, "post_attention_layernorm.weight", c->C, 0, &layer->ffn_norm.weight);
}

static void list(struct train_model *m, struct train_listing *l) {
    const struct llama2_config *c = &m->config.llama2;
    struct train_llama2 *llama2 = m->llama2;
    l->scope[0] = '\0';
    train_listing_add(l, "model.embed_tokens.weight", c->V, c->C, &llama2->embedding);
    for (size_t i = 0; i < c->L; i++) {
        snprintf(l->scope, sizeof l->scope, "model.layers.%zu.", i);
        list_layer(l, c, &llama2->layers[i]);
    }
    l->scope[0] = '\0';
    train_listing_add(l, "model.norm.weight", c->C, 0, &llama2->final_norm.weight);
    if (m->config.tied) {
        llama2->classifier = llama2->embedding;
    } else {
        train_listing_add(l, "lm_head.weight", c->V, c->C, &llama2->classifier);
    }
}

/* ---- Activations ---- */

static void plan_layer(struct train_model *m, struct train_space *s, struct activity *k) {
    const struct llama2_config *c = &m->config.llama2;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations, wide = m->engine->weights;
    train_space_take(s, &k->normed, rows, c->C, type);
    train_space_take(s, &k->stats, rows, 1, wide);
    train_space_take(s, &k->qkv, rows, qkv_width(c), type);
    train_space_take(s, &k->attended, rows, query_width(c), type);
    train_space_take(s, &k->lse, rows, c->NH, wide);
    train_space_take(s, &k->middle, rows, c->C, type);
    train_space_take(s, &k->middle_normed, rows, c->C, type);
    train_space_take(s, &k->middle_stats, rows, 1, wide);
    train_space_take(s, &k->gate_up, rows, 2 * c->hidden, type);
    train_space_take(s, &k->gated, rows, c->hidden, type);
    train_space_take(s, &k->output, rows, c->C, type);
}

static void plan_head(struct train_model *m, struct train_space *s) {
    const struct llama2_config *c = &m->config.llama2;
    struct head *head = &m->llama2->head;
    enum train_type type = m->engine->activations;
    size_t rows = m->config.most_rows;
    head->count = rows < TRAIN_HEAD_ROWS ? rows : TRAIN_HEAD_ROWS;
    train_space_take(s, &head->rows, head->count, c->C, type);
    train_space_take(s, &head->normed, head->count, c->C, type);
    train_space_take(s, &head->stats, head->count, 1, m->engine->weights);
    train_space_take(s, &head->logits, head->count, c->V, type);
    train_space_take(s, &head->drows, head->count, c->C, type);
}

static void plan(struct train_model *m, struct train_space *s) {
    const struct llama2_config *c = &m->config.llama2;
    struct train_llama2 *llama2 = m->llama2;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations;
    train_space_take(s, &llama2->first, rows, c->C, type);
    for (size_t l = 0; l < c->L; l++) {
        plan_layer(m, s, &llama2->kept[l]);
    }
    train_space_take(s, &llama2->dx, rows, c->C, type);
    train_space_take(s, &llama2->dnormed, rows, c->C, type);
    train_space_take(s, &llama2->dinner, rows, larger(c->hidden, query_width(c)), type);
    train_space_take(s, &llama2->dwide, rows, larger(2 * c->hidden, qkv_width(c)), type);
    plan_head(m, s);
}

/* ---- Forward ---- */

static struct train_linear linear_of(struct train_linear_place place, size_t N, size_t K) {
    return (struct train_linear){.place = place, .N = N, .K = K};
}

static struct train_linear qkv_of(const struct llama2_config *c, const struct layer *w) {
    return linear_of(w->qkv, qkv_width(c), c->C);
}
static struct train_linear attention_out_of(const struct llama2_config *c, const struct layer *w) {
    return linear_of(w->attention_out, c->C, query_width(c));
}
static struct train_linear gate_up_of(const struct llama2_config *c, const struct layer *w) {
    return linear_of(w->gate_up, 2 * c->hidden, c->C);
}
static struct train_linear down_of(const struct llama2_config *c, const struct layer *w) {
    return linear_of(w->down, c->C, c->hidden);
}
static struct train_linear classifier_of(const struct train_model *m) {
    const struct train_linear_place place = {.weight = m->llama2->classifier};
    return linear_of(place, m->config.llama2.V, m->config.llama2.C);
}

/* Rotary embedding of the query and key heads of each row, which lie side by side; if `back`, its
   backward pass. */
static enum status rotate(const struct train_model *m, const struct train_pass *pass, void *qkv,
                          bool back) {
    const struct train_engine *e = m->engine;
    const struct llama2_config *c = &m->config.llama2;
    return e->rope(e->context, qkv, pass->positions, pass->rows, c->NH + c->KVH, c->HS,
                   qkv_width(c), c->rope_theta, c->rope_layout, back);
}

static struct train_attention attention_of(const struct train_model *m,
                                           const struct train_pass *pass, const void *qkv) {
    const struct llama2_config *c = &m->config.llama2;
    struct train_attention attention = train_attention_of(m, pass, qkv, c->NH, c->KVH, c->HS);
    attention.causal = true;
    return attention;
}

/* x += add. */
static enum status add_to(const struct train_model *m, const struct train_pass *pass, void *x,
                          const void *add) {
    const struct train_engine *e = m->engine;
    const struct train_dropout none = {.p = 0.0f};
    return e->dropout(e->context, x, add, x, pass->rows * m->config.llama2.C, &none);
}

static enum status normalise(const struct train_model *m, struct train_norm_place place, void *out,
                             void *stats, const void *in, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_norm norm = train_norm_of(m, place, false, m->config.llama2.norm_eps);
    return e->rmsnorm(e->context, out, stats, in, &norm, rows, m->config.llama2.C);
}

static enum status forward_layer(const struct train_model *m, const struct train_pass *pass,
                                 size_t l, const void *x) {
    const struct train_engine *e = m->engine;
    const struct llama2_config *c = &m->config.llama2;
    const struct layer *w = &m->llama2->layers[l];
    const struct activity *k = &m->llama2->kept[l];
    const struct train_linear qkv = qkv_of(c, w), out = attention_out_of(c, w);
    const struct train_linear gate_up = gate_up_of(c, w), down = down_of(c, w);
    const struct train_attention attention = attention_of(m, pass, k->qkv);
    size_t rows = pass->rows;
    TRY(normalise(m, w->attention_norm, k->normed, k->stats, x, rows));
    TRY(train_linear_forward(m, &qkv, k->qkv, k->normed, rows));
    TRY(rotate(m, pass, k->qkv, false));
    TRY(e->attention(e->context, k->attended, k->lse, &attention));
    TRY(train_linear_forward(m, &out, k->middle, k->attended, rows));
    TRY(add_to(m, pass, k->middle, x));
    TRY(normalise(m, w->ffn_norm, k->middle_normed, k->middle_stats, k->middle, rows));
    TRY(train_linear_forward(m, &gate_up, k->gate_up, k->middle_normed, rows));
    TRY(e->silu_gate(e->context, k->gated, k->gate_up, rows, c->hidden));
    TRY(train_linear_forward(m, &down, k->output, k->gated, rows));
    return add_to(m, pass, k->output, k->middle);
}

/* ---- Backward ---- */

/* Backward pass of a norm: dx += the gradient of its input, from dnormed. */
static enum status back_norm(const struct train_model *m, struct train_norm_place place,
                             const void *in, const void *stats, size_t rows) {
    const struct train_engine *e = m->engine;
    const struct train_llama2 *llama2 = m->llama2;
    const struct train_norm norm = train_norm_of(m, place, false, m->config.llama2.norm_eps);
    const struct train_norm_gradient gradient = train_norm_gradient_of(m, place, false);
    return e->rmsnorm_backward(e->context, llama2->dx, llama2->dx, &gradient, llama2->dnormed, in,
                               stats, &norm, rows, m->config.llama2.C);
}

static enum status back_feed_forward(const struct train_model *m, const struct train_pass *pass,
                                     size_t l) {
    const struct train_engine *e = m->engine;
    const struct llama2_config *c = &m->config.llama2;
    const struct train_llama2 *d = m->llama2;
    const struct layer *w = &d->layers[l];
    const struct activity *k = &d->kept[l];
    const struct train_linear gate_up = gate_up_of(c, w), down = down_of(c, w);
    size_t rows = pass->rows;
    TRY(train_linear_backward(m, &down, d->dinner, NULL, d->dx, k->gated, rows));
    TRY(e->silu_gate_backward(e->context, d->dwide, d->dinner, k->gate_up, rows, c->hidden));
    TRY(train_linear_backward(m, &gate_up, d->dnormed, NULL, d->dwide, k->middle_normed, rows));
    return back_norm(m, w->ffn_norm, k->middle, k->middle_stats, rows);
}

static enum status back_attention(const struct train_model *m, const struct train_pass *pass,
                                  size_t l, const void *x) {
    const struct train_engine *e = m->engine;
    const struct llama2_config *c = &m->config.llama2;
    const struct train_llama2 *d = m->llama2;
    const struct layer *w = &d->layers[l];
    const struct activity *k = &d->kept[l];
    const struct train_linear qkv = qkv_of(c, w), out = attention_out_of(c, w);
    const struct train_attention attention = attention_of(m, pass, k->qkv);
    const struct train_attention_gradient gradient = {
        .dq = d->dwide,
        .dk = train_at(d->dwide, c->NH * c->HS, e->activations),
        .dv = train_at(d->dwide, (c->NH + c->KVH) * c->HS, e->activations),
    };
    TRY(train_linear_backward(m, &out, d->dinner, NULL, d->dx, k->attended, pass->rows));
    TRY(e->attention_backward(e->context, &gradient, d->dinner, k->attended, k->lse, &attention));
    TRY(rotate(m, pass, d->dwide, true));
    TRY(train_linear_backward(m, &qkv, d->dnormed, NULL, d->dwide, k->normed, pass->rows));
    return back_norm(m, w->attention_norm, x, k->stats, pass->rows);
}

/* ---- Head ---- */

/* Adds the loss of some of the rows that have a label and, in a backward pass, its gradient to dx.
 */
static enum status predict(const struct train_model *m, const struct train_pass *pass, size_t first,
                           size_t count, const void *x) {
    const struct train_engine *e = m->engine;
    const struct llama2_config *c = &m->config.llama2;
    const struct train_llama2 *llama2 = m->llama2;
    const struct head *h = &llama2->head;
    const struct train_linear classifier = classifier_of(m);
    const struct train_norm norm = train_norm_of(m, llama2->final_norm, false, c->norm_eps);
    const struct train_norm_gradient gradient =
        train_norm_gradient_of(m, llama2->final_norm, false);
    const int32_t *targets = pass->targets + first;
    TRY(e->gather(e->context, h->rows, x, targets, count, c->C));
    TRY(normalise(m, llama2->final_norm, h->normed, h->stats, h->rows, count));
    TRY(train_linear_forward(m, &classifier, h->logits, h->normed, count));
    TRY(e->cross_entropy(e->context, h->logits, train_scalar(m, TRAIN_LOSS), pass->labels + first,
                         pass->scale, count, c->V));
    if (!pass->backward) {
        return STATUS_OK;
    }
    TRY(train_linear_backward(m, &classifier, h->drows, NULL, h->logits, h->normed, count));
    TRY(e->rmsnorm_backward(e->context, h->drows, NULL, &gradient, h->drows, h->rows, h->stats,
                            &norm, count, c->C));
    return e->scatter(e->context, llama2->dx, h->drows, targets, count, c->C);
}

static enum status run_head(const struct train_model *m, const struct train_pass *pass,
                            const void *x) {
    size_t most = m->llama2->head.count;
    for (size_t first = 0; first < pass->target_count; first += most) {
        size_t left = pass->target_count - first;
        TRY(predict(m, pass, first, left < most ? left : most, x));
    }
    return STATUS_OK;
}

static const void *input_of(const struct train_llama2 *llama2, size_t l) {
    return l > 0 ? llama2->kept[l - 1].output : llama2->first;
}

static size_t layers(const struct train_config *config) {
    return config->llama2.L;
}

/* Its matrices follow each other, query first. */
static size_t first_of(const struct train_model *m, size_t layer) {
    return m->llama2->layers[layer].qkv.weight;
}

static enum status run(struct train_model *m, const struct train_pass *pass) {
    const struct train_engine *e = m->engine;
    const struct train_llama2 *llama2 = m->llama2;
    size_t L = m->config.llama2.L, C = m->config.llama2.C;
    TRY(e->embedding(e->context, llama2->first, train_weight(m, llama2->embedding), pass->ids,
                     pass->rows, C, false));
    for (size_t l = 0; l < L; l++) {
        TRY(forward_layer(m, pass, l, input_of(llama2, l)));
    }
    if (pass->backward) {
        TRY(e->zero(e->context, llama2->dx, pass->rows * C * train_type_bytes(e->activations)));
    }
    TRY(run_head(m, pass, input_of(llama2, L)));
    if (!pass->backward) {
        return STATUS_OK;
    }
    for (size_t l = L; l-- > 0;) {
        TRY(back_feed_forward(m, pass, l));
        TRY(back_attention(m, pass, l, input_of(llama2, l)));
        TRY(train_gradients_stand(m, first_of(m, l)));
    }
    return e->embedding_backward(e->context, train_gradient(m, llama2->embedding), llama2->dx,
                                 &pass->words, C);
}

const struct train_architecture train_llama2_architecture = {
    .check = check,
    .create = create,
    .free = free_llama2,
    .list = list,
    .plan = plan,
    .run = run,
    .layers = layers,
    .first_of = first_of,
    .vocabulary = vocabulary,
    .longest = longest,
};
