/* BERT's heads: pooler and classifier on the first row of each sequence, and the language model on
   the rows that have a label. */
#include <stdlib.h>
#include <string.h>

#include "common/nn/dtype.h"
#include "common/train/models/train_bert_internal.h"

static struct train_linear dense_of(const struct train_model *m) {
    size_t C = m->config.bert.C;
    return (struct train_linear){.place = m->bert->head.dense, .N = C, .K = C, .has_bias = true};
}

static size_t classes_of(const struct train_model *m) {
    return m->config.task == TRAIN_CLASSIFY ? m->config.bert.labels : m->config.bert.V;
}

static struct train_linear classifier_of(const struct train_model *m) {
    return (struct train_linear){.place = m->bert->head.classifier,
                                 .N = classes_of(m),
                                 .K = m->config.bert.C,
                                 .has_bias = true};
}

void train_bert_head_list(struct train_model *m, struct train_listing *l) {
    const struct bert_config *c = &m->config.bert;
    struct train_bert_head *head = &m->bert->head;
    if (m->config.task == TRAIN_CLASSIFY) {
        train_listing_add_linear(l, "bert.pooler.dense", c->C, c->C, &head->dense);
        train_listing_add_linear(l, "classifier", c->labels, c->C, &head->classifier);
        return;
    }
    train_listing_add_linear(l, "cls.predictions.transform.dense", c->C, c->C, &head->dense);
    train_listing_add_norm(l, "cls.predictions.transform.LayerNorm", c->C, &head->norm);
    train_listing_add(l, "cls.predictions.bias", c->V, 0, &head->classifier.bias);
    head->classifier.weight = m->bert->word;
}

void train_bert_head_plan(struct train_model *m, struct train_space *s) {
    struct train_bert_head *head = &m->bert->head;
    size_t C = m->config.bert.C, rows = m->config.most_rows;
    enum train_type type = m->engine->activations;
    head->count = m->config.task == TRAIN_CLASSIFY ? m->config.most_sequences
                  : rows < TRAIN_HEAD_ROWS         ? rows
                                                   : TRAIN_HEAD_ROWS;
    train_space_take(s, &head->rows, head->count, C, type);
    train_space_take(s, &head->inner, head->count, C, type);
    train_space_take(s, &head->activated, head->count, C, type);
    train_space_take(s, &head->normed, head->count, C, type);
    train_space_take(s, &head->stats, head->count, 2, m->engine->weights);
    train_space_take(s, &head->logits, head->count, classes_of(m), type);
    train_space_take(s, &head->dactivated, head->count, C, type);
    train_space_take(s, &head->drows, head->count, C, type);
}

/* ---- Classifier ---- */

static void to_float(float *out, const void *in, enum train_type type, size_t count) {
    if (type != TRAIN_F64) {
        nn_dtype_load(out, in, count, type == TRAIN_F32 ? NN_F32 : NN_BF16);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)((const double *)in)[i];
    }
}

static enum status read_converted(const struct train_model *m, void *host, size_t bytes,
                                  float *logits, size_t count) {
    const struct train_engine *e = m->engine;
    TRY(e->read(e->context, host, m->bert->head.logits, bytes));
    to_float(logits, host, e->activations, count);
    return STATUS_OK;
}

static enum status read_logits(const struct train_model *m, float *logits, size_t count) {
    size_t bytes = count * train_type_bytes(m->engine->activations);
    void *host = malloc(bytes);
    if (host == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    enum status status = read_converted(m, host, bytes, logits, count);
    free(host);
    return status;
}

/* *pooled = dropout(tanh(pooler(first rows))), the input of the classifier. */
static enum status pool(const struct train_model *m, const struct train_pass *pass, const void *x,
                        const void **pooled) {
    const struct train_engine *e = m->engine;
    const struct train_bert_head *head = &m->bert->head;
    size_t count = pass->B, C = m->config.bert.C;
    const struct train_linear dense = dense_of(m);
    const struct train_dropout dropout = train_bert_dropout(pass, train_bert_site_classifier(m));
    TRY(e->gather(e->context, head->rows, x, pass->targets, count, C));
    TRY(train_linear_forward(m, &dense, head->inner, head->rows, count));
    TRY(e->activation(e->context, head->activated, head->inner, count * C, NN_TANH));
    *pooled = pass->p > 0.0f ? head->normed : head->activated;
    return pass->p > 0.0f
               ? e->dropout(e->context, head->normed, NULL, head->activated, count * C, &dropout)
               : STATUS_OK;
}

static enum status back_classify(const struct train_model *m, const struct train_pass *pass,
                                 const void *pooled, void *dx) {
    const struct train_engine *e = m->engine;
    const struct train_bert_head *head = &m->bert->head;
    size_t count = pass->B, C = m->config.bert.C;
    const struct train_linear dense = dense_of(m), classifier = classifier_of(m);
    const struct train_dropout dropout = train_bert_dropout(pass, train_bert_site_classifier(m));
    void *d = head->dactivated;
    TRY(train_linear_backward(m, &classifier, d, NULL, head->logits, pooled, count));
    if (pass->p > 0.0f) {
        TRY(e->dropout(e->context, d, NULL, d, count * C, &dropout));
    }
    TRY(e->activation_backward(e->context, d, d, head->inner, count * C, NN_TANH));
    TRY(train_linear_backward(m, &dense, head->drows, NULL, d, head->rows, count));
    return e->scatter(e->context, dx, head->drows, pass->targets, count, C);
}

static enum status classify(const struct train_model *m, const struct train_pass *pass,
                            const void *x, void *dx) {
    const struct train_engine *e = m->engine;
    const struct train_bert_head *head = &m->bert->head;
    const struct train_linear classifier = classifier_of(m);
    const void *pooled;
    TRY(pool(m, pass, x, &pooled));
    TRY(train_linear_forward(m, &classifier, head->logits, pooled, pass->B));
    if (pass->logits != NULL) {
        TRY(read_logits(m, pass->logits, pass->B * classifier.N));
    }
    TRY(e->cross_entropy(e->context, head->logits, train_scalar(m, TRAIN_LOSS), pass->labels,
                         pass->scale, pass->B, classifier.N));
    return pass->backward ? back_classify(m, pass, pooled, dx) : STATUS_OK;
}

/* ---- Language model ---- */

/* Some of the rows that have a label. */
struct chunk {
    const int32_t *targets, *labels; /* (count) */
    size_t count;
};

static enum status predict(const struct train_model *m, const struct train_pass *pass,
                           const struct chunk *chunk, const void *x) {
    const struct train_engine *e = m->engine;
    const struct train_bert_head *head = &m->bert->head;
    size_t count = chunk->count, C = m->config.bert.C;
    const struct train_linear dense = dense_of(m), classifier = classifier_of(m);
    const struct train_norm norm = train_norm_of(m, head->norm, true, m->config.bert.norm_eps);
    const struct train_dropout none = {.p = 0.0f};
    TRY(e->gather(e->context, head->rows, x, chunk->targets, count, C));
    TRY(train_linear_forward(m, &dense, head->inner, head->rows, count));
    TRY(e->activation(e->context, head->activated, head->inner, count * C, NN_GELU));
    TRY(e->layernorm(e->context, head->normed, head->stats, head->activated, NULL, head->activated,
                     &none, &norm, count, C));
    TRY(train_linear_forward(m, &classifier, head->logits, head->normed, count));
    return e->cross_entropy(e->context, head->logits, train_scalar(m, TRAIN_LOSS), chunk->labels,
                            pass->scale, count, classifier.N);
}

static enum status back_predict(const struct train_model *m, const struct chunk *chunk, void *dx) {
    const struct train_engine *e = m->engine;
    const struct train_bert_head *head = &m->bert->head;
    size_t count = chunk->count, C = m->config.bert.C;
    const struct train_linear dense = dense_of(m), classifier = classifier_of(m);
    const struct train_norm norm = train_norm_of(m, head->norm, true, m->config.bert.norm_eps);
    const struct train_norm_gradient gradient = train_norm_gradient_of(m, head->norm, true);
    void *d = head->dactivated;
    TRY(train_linear_backward(m, &classifier, d, NULL, head->logits, head->normed, count));
    TRY(e->layernorm_backward(e->context, d, &gradient, d, head->activated, head->stats, &norm,
                              count, C));
    TRY(e->activation_backward(e->context, d, d, head->inner, count * C, NN_GELU));
    TRY(train_linear_backward(m, &dense, head->drows, NULL, d, head->rows, count));
    return e->scatter(e->context, dx, head->drows, chunk->targets, count, C);
}

static enum status model_language(const struct train_model *m, const struct train_pass *pass,
                                  const void *x, void *dx) {
    size_t most = m->bert->head.count;
    for (size_t first = 0; first < pass->target_count; first += most) {
        size_t left = pass->target_count - first;
        const struct chunk chunk = {.targets = pass->targets + first,
                                    .labels = pass->labels + first,
                                    .count = left < most ? left : most};
        TRY(predict(m, pass, &chunk, x));
        if (pass->backward) {
            TRY(back_predict(m, &chunk, dx));
        }
    }
    return STATUS_OK;
}

enum status train_bert_head_run(struct train_model *m, const struct train_pass *pass, const void *x,
                                void *dx) {
    return m->config.task == TRAIN_CLASSIFY ? classify(m, pass, x, dx)
                                            : model_language(m, pass, x, dx);
}
