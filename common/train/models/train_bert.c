/* BERT's encoder: post-norm, dropout after the embeddings and after both sublayers. */
#include <stdio.h>
#include <stdlib.h>

#include "common/train/models/train_bert_internal.h"

/* ---- Sizes ---- */

static bool has_sizes(const struct train_config *config) {
    enum { MOST_LAYERS = 1024 };
    const struct bert_config *c = &config->bert;
    const size_t sizes[] = {c->C, c->hidden, c->L, c->NH, c->V, c->T, c->types};
    bool labels = config->task != TRAIN_CLASSIFY || (c->labels >= 1 && c->labels <= INT32_MAX);
    return train_sizes_fit(sizes, sizeof sizes / sizeof *sizes) && labels && c->L <= MOST_LAYERS &&
           c->C % c->NH == 0;
}

static enum status check(const struct train_config *config, struct error *error) {
    const struct bert_config *c = &config->bert;
    if (!has_sizes(config)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "BERT sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, V %zu, "
                         "T %zu, types %zu, labels %zu",
                         c->C, c->hidden, c->L, c->NH, c->V, c->T, c->types, c->labels);
    }
    if (c->C % TRAIN_ALIGNMENT != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "C %zu: training needs a multiple of %d channels", c->C, TRAIN_ALIGNMENT);
    }
    if (c->activation != NN_GELU) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "training supports only BERT with \"gelu\"");
    }
    if (!(config->dropout >= 0.0f && config->dropout < 1.0f)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "dropout %g: must be at least 0 and below 1", (double)config->dropout);
    }
    return STATUS_OK;
}

static size_t vocabulary(const struct train_config *config) {
    return config->bert.V;
}

static size_t longest(const struct train_config *config) {
    return config->bert.T;
}

static enum status create(struct train_model *m) {
    struct train_bert *bert = calloc(1, sizeof *bert);
    m->bert = bert;
    if (bert == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    bert->layers = calloc(m->config.bert.L, sizeof *bert->layers);
    bert->kept = calloc(m->config.bert.L, sizeof *bert->kept);
    return bert->layers != NULL && bert->kept != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void free_bert(struct train_model *m) {
    if (m->bert != NULL) {
        free(m->bert->layers);
        free(m->bert->kept);
        free(m->bert);
    }
}

/* ---- Parameters ---- */

static void list_layer(struct train_listing *l, const struct bert_config *c,
                       struct train_bert_layer *layer) {
    train_listing_add_linear(l, "attention.self.query", c->C, c->C, &layer->qkv);
    train_listing_add_linear(l, "attention.self.key", c->C, c->C, NULL);
    train_listing_add_linear(l, "attention.self.value", c->C, c->C, NULL);
    train_listing_add_linear(l, "attention.output.dense", c->C, c->C, &layer->attention_out);
    train_listing_add_norm(l, "attention.output.LayerNorm", c->C, &layer->attention_norm);
    train_listing_add_linear(l, "intermediate.dense", c->hidden, c->C, &layer->up);
    train_listing_add_linear(l, "output.dense", c->C, c->hidden, &layer->down);
    train_listing_add_norm(l, "output.LayerNorm", c->C, &layer->output_norm);
}

static void list(struct train_model *m, struct train_listing *l) {
    const struct bert_config *c = &m->config.bert;
    struct train_bert *bert = m->bert;
    snprintf(l->scope, sizeof l->scope, "bert.embeddings.");
    train_listing_add(l, "word_embeddings.weight", c->V, c->C, &bert->word);
    train_listing_add(l, "position_embeddings.weight", c->T, c->C, &bert->position);
    train_listing_add(l, "token_type_embeddings.weight", c->types, c->C, &bert->type);
    train_listing_add_norm(l, "LayerNorm", c->C, &bert->embedding_norm);
    for (size_t i = 0; i < c->L; i++) {
        snprintf(l->scope, sizeof l->scope, "bert.encoder.layer.%zu.", i);
        list_layer(l, c, &bert->layers[i]);
    }
    l->scope[0] = '\0';
    train_bert_head_list(m, l);
}

/* ---- Activations ---- */

static void plan_layer(struct train_model *m, struct train_space *s,
                       struct train_bert_activity *k) {
    const struct bert_config *c = &m->config.bert;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations, wide = m->engine->weights;
    train_space_take(s, &k->qkv, rows, 3 * c->C, type);
    train_space_take(s, &k->attended, rows, c->C, type);
    train_space_take(s, &k->lse, rows, c->NH, wide);
    train_space_take(s, &k->middle_sum, rows, c->C, type);
    train_space_take(s, &k->middle, rows, c->C, type);
    train_space_take(s, &k->middle_stats, rows, 2, wide);
    train_space_take(s, &k->inner, rows, c->hidden, type);
    train_space_take(s, &k->activated, rows, c->hidden, type);
    train_space_take(s, &k->output_sum, rows, c->C, type);
    train_space_take(s, &k->output, rows, c->C, type);
    train_space_take(s, &k->output_stats, rows, 2, wide);
}

static void plan(struct train_model *m, struct train_space *s) {
    const struct bert_config *c = &m->config.bert;
    struct train_bert *bert = m->bert;
    size_t rows = m->config.most_rows;
    enum train_type type = m->engine->activations;
    train_space_take(s, &bert->embedded, rows, c->C, type);
    train_space_take(s, &bert->embedded_stats, rows, 2, m->engine->weights);
    train_space_take(s, &bert->first, rows, c->C, type);
    for (size_t l = 0; l < c->L; l++) {
        plan_layer(m, s, &bert->kept[l]);
    }
    train_space_take(s, &bert->dx, rows, c->C, type);
    train_space_take(s, &bert->dropped, rows, c->C, type);
    train_space_take(s, &bert->dinner, rows, c->hidden > c->C ? c->hidden : c->C, type);
    train_space_take(s, &bert->dqkv, rows, 3 * c->C, type);
    train_bert_head_plan(m, s);
}

/* ---- Forward ---- */

static struct train_linear linear_of(struct train_linear_place place, size_t N, size_t K) {
    return (struct train_linear){.place = place, .N = N, .K = K, .has_bias = true};
}

/* first = dropout(LayerNorm(word + position + type 0)). */
static enum status embed(const struct train_model *m, const struct train_pass *pass) {
    const struct train_engine *e = m->engine;
    const struct train_bert *bert = m->bert;
    void *x = e->context;
    size_t rows = pass->rows, C = m->config.bert.C;
    const struct train_norm norm =
        train_norm_of(m, bert->embedding_norm, true, m->config.bert.norm_eps);
    const struct train_dropout none = {.p = 0.0f}, dropout = train_bert_dropout(pass, 0);
    TRY(e->embedding(x, bert->embedded, train_weight(m, bert->word), pass->ids, rows, C, false));
    TRY(e->embedding(x, bert->embedded, train_weight(m, bert->position), pass->positions, rows, C,
                     true));
    TRY(e->embedding(x, bert->embedded, train_weight(m, bert->type), pass->kinds, rows, C, true));
    TRY(e->layernorm(x, bert->first, bert->embedded_stats, bert->embedded, NULL, bert->embedded,
                     &none, &norm, rows, C));
    return pass->p > 0.0f ? e->dropout(x, bert->first, NULL, bert->first, rows * C, &dropout)
                          : STATUS_OK;
}

/* The end of a sublayer: sum = x + dropout(sum), out = LayerNorm(sum). */
static enum status add_and_norm(const struct train_model *m, const struct train_pass *pass,
                                uint32_t site, struct train_norm_place place, void *out,
                                void *stats, void *sum, const void *x) {
    const struct train_engine *e = m->engine;
    const struct train_dropout dropout = train_bert_dropout(pass, site);
    const struct train_norm norm = train_norm_of(m, place, true, m->config.bert.norm_eps);
    return e->layernorm(e->context, out, stats, sum, x, sum, &dropout, &norm, pass->rows,
                        m->config.bert.C);
}

static enum status forward_layer(const struct train_model *m, const struct train_pass *pass,
                                 size_t l, const void *x) {
    const struct train_engine *e = m->engine;
    const struct bert_config *c = &m->config.bert;
    const struct train_bert_layer *w = &m->bert->layers[l];
    const struct train_bert_activity *k = &m->bert->kept[l];
    const struct train_linear qkv = linear_of(w->qkv, 3 * c->C, c->C);
    const struct train_linear out = linear_of(w->attention_out, c->C, c->C);
    const struct train_linear up = linear_of(w->up, c->hidden, c->C);
    const struct train_linear down = linear_of(w->down, c->C, c->hidden);
    const struct train_attention attention =
        train_attention_of(m, pass, k->qkv, c->NH, c->NH, c->C / c->NH);
    size_t rows = pass->rows;
    TRY(train_linear_forward(m, &qkv, k->qkv, x, rows));
    TRY(e->attention(e->context, k->attended, k->lse, &attention));
    TRY(train_linear_forward(m, &out, k->middle_sum, k->attended, rows));
    TRY(add_and_norm(m, pass, train_bert_site_attention(l), w->attention_norm, k->middle,
                     k->middle_stats, k->middle_sum, x));
    TRY(train_linear_forward(m, &up, k->inner, k->middle, rows));
    TRY(e->activation(e->context, k->activated, k->inner, rows * c->hidden, NN_GELU));
    TRY(train_linear_forward(m, &down, k->output_sum, k->activated, rows));
    return add_and_norm(m, pass, train_bert_site_output(l), w->output_norm, k->output,
                        k->output_stats, k->output_sum, k->middle);
}

/* ---- Backward ---- */

/*
 * Backward pass of add_and_norm(): dx becomes the gradient of the sum, and so of x.
 * *dsublayer receives the address of the gradient of the sublayer's output. Where dropout makes it,
 * the gradient of the bias of the sublayer's last layer is summed on the way: then that layer is
 * left without one.
 */
static enum status back_add_and_norm(const struct train_model *m, const struct train_pass *pass,
                                     uint32_t site, struct train_norm_place place, const void *sum,
                                     const void *stats, struct train_linear *last,
                                     const void **dsublayer) {
    const struct train_engine *e = m->engine;
    const struct train_bert *bert = m->bert;
    size_t C = m->config.bert.C;
    const struct train_dropout dropout = train_bert_dropout(pass, site);
    const struct train_norm norm = train_norm_of(m, place, true, m->config.bert.norm_eps);
    const struct train_norm_gradient gradient = train_norm_gradient_of(m, place, true);
    TRY(e->layernorm_backward(e->context, bert->dx, &gradient, bert->dx, sum, stats, &norm,
                              pass->rows, C));
    if (pass->p == 0.0f) {
        *dsublayer = bert->dx;
        return STATUS_OK;
    }
    *dsublayer = bert->dropped;
    last->has_bias = false;
    return e->dropout_bias_backward(e->context, bert->dropped, train_gradient(m, last->place.bias),
                                    bert->dx, pass->rows, C, &dropout);
}

static enum status back_feed_forward(const struct train_model *m, const struct train_pass *pass,
                                     size_t l) {
    const struct train_engine *e = m->engine;
    const struct bert_config *c = &m->config.bert;
    const struct train_bert *bert = m->bert;
    const struct train_bert_layer *w = &bert->layers[l];
    const struct train_bert_activity *k = &bert->kept[l];
    struct train_linear up = linear_of(w->up, c->hidden, c->C);
    struct train_linear down = linear_of(w->down, c->C, c->hidden);
    const void *dout;
    TRY(back_add_and_norm(m, pass, train_bert_site_output(l), w->output_norm, k->output_sum,
                          k->output_stats, &down, &dout));
    TRY(train_linear_backward(m, &down, bert->dinner, NULL, dout, k->activated, pass->rows));
    TRY(e->activation_bias_backward(e->context, bert->dinner, train_gradient(m, up.place.bias),
                                    bert->dinner, k->inner, pass->rows, c->hidden, NN_GELU));
    up.has_bias = false; /* its gradient is there */
    return train_linear_backward(m, &up, bert->dx, bert->dx, bert->dinner, k->middle, pass->rows);
}

static enum status back_attention(const struct train_model *m, const struct train_pass *pass,
                                  size_t l, const void *x) {
    const struct train_engine *e = m->engine;
    const struct bert_config *c = &m->config.bert;
    const struct train_bert *bert = m->bert;
    const struct train_bert_layer *w = &bert->layers[l];
    const struct train_bert_activity *k = &bert->kept[l];
    const struct train_linear qkv = linear_of(w->qkv, 3 * c->C, c->C);
    struct train_linear out = linear_of(w->attention_out, c->C, c->C);
    const struct train_attention attention =
        train_attention_of(m, pass, k->qkv, c->NH, c->NH, c->C / c->NH);
    const struct train_attention_gradient gradient = {
        .dq = bert->dqkv,
        .dk = train_at(bert->dqkv, c->C, e->activations),
        .dv = train_at(bert->dqkv, 2 * c->C, e->activations),
    };
    const void *dout;
    TRY(back_add_and_norm(m, pass, train_bert_site_attention(l), w->attention_norm, k->middle_sum,
                          k->middle_stats, &out, &dout));
    TRY(train_linear_backward(m, &out, bert->dinner, NULL, dout, k->attended, pass->rows));
    TRY(e->attention_backward(e->context, &gradient, bert->dinner, k->attended, k->lse,
                              &attention));
    return train_linear_backward(m, &qkv, bert->dx, bert->dx, bert->dqkv, x, pass->rows);
}

static enum status back_embed(const struct train_model *m, const struct train_pass *pass) {
    const struct train_engine *e = m->engine;
    const struct train_bert *bert = m->bert;
    void *x = e->context;
    size_t rows = pass->rows, C = m->config.bert.C;
    const struct train_dropout dropout = train_bert_dropout(pass, 0);
    const struct train_norm norm =
        train_norm_of(m, bert->embedding_norm, true, m->config.bert.norm_eps);
    const struct train_norm_gradient gradient =
        train_norm_gradient_of(m, bert->embedding_norm, true);
    if (pass->p > 0.0f) {
        TRY(e->dropout(x, bert->dx, NULL, bert->dx, rows * C, &dropout));
    }
    TRY(e->layernorm_backward(x, bert->dx, &gradient, bert->dx, bert->embedded,
                              bert->embedded_stats, &norm, rows, C));
    TRY(e->embedding_backward(x, train_gradient(m, bert->word), bert->dx, &pass->words, C));
    TRY(e->embedding_backward(x, train_gradient(m, bert->position), bert->dx, &pass->places, C));
    return e->embedding_backward(x, train_gradient(m, bert->type), bert->dx, &pass->types, C);
}

static const void *input_of(const struct train_bert *bert, size_t l) {
    return l > 0 ? bert->kept[l - 1].output : bert->first;
}

static size_t layers(const struct train_config *config) {
    return config->bert.L;
}

/* Its matrices follow each other, query first. */
static size_t first_of(const struct train_model *m, size_t layer) {
    return m->bert->layers[layer].qkv.weight;
}

static enum status run(struct train_model *m, const struct train_pass *pass) {
    const struct train_engine *e = m->engine;
    const struct train_bert *bert = m->bert;
    size_t L = m->config.bert.L;
    TRY(embed(m, pass));
    for (size_t l = 0; l < L; l++) {
        TRY(forward_layer(m, pass, l, input_of(bert, l)));
    }
    if (pass->backward) {
        TRY(e->zero(e->context, bert->dx,
                    pass->rows * m->config.bert.C * train_type_bytes(e->activations)));
    }
    TRY(train_bert_head_run(m, pass, input_of(bert, L), bert->dx));
    if (!pass->backward) {
        return STATUS_OK;
    }
    for (size_t l = L; l-- > 0;) {
        TRY(back_feed_forward(m, pass, l));
        TRY(back_attention(m, pass, l, input_of(bert, l)));
        TRY(train_gradients_stand(m, first_of(m, l)));
    }
    return back_embed(m, pass);
}

const struct train_architecture train_bert_architecture = {
    .check = check,
    .create = create,
    .free = free_bert,
    .list = list,
    .plan = plan,
    .run = run,
    .layers = layers,
    .first_of = first_of,
    .vocabulary = vocabulary,
    .longest = longest,
};
