#include "common/model/bert.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/model/resident.h"

enum { LAYER_TENSORS = 16, OTHER_TENSORS = 9, BUFFERS = 9 };

struct bert {
    struct bert_config config;
    const struct engine *engine;
    size_t max_tokens;
    struct bert_weights weights; /* resident pointers; shapes as in struct bert_weights */

    /* Resident activations of one call. rows stands for its B * T, at most max_tokens. */
    float *x;         /* (rows, C): the hidden state */
    float *q, *k, *v; /* (rows, C) */
    float *mixed;     /* (rows, C): attention's result */
    float *projected; /* (rows, C): a sublayer's result; later (B, C): the [CLS] rows */
    float *inner;     /* (rows, hidden) */
    float *pooled;    /* (B, C) */
    float *logits;    /* (B, labels) */
    uint8_t *mask;    /* (rows) */

    /* Row numbers for embedding(); host. */
    int32_t *positions; /* (rows): 0 .. T-1, B times over */
    int32_t *zeros;     /* (rows): token types nobody gave */
    int32_t *cls;       /* (B): 0, T, 2T, ... */
};

static enum status check_config(const struct bert_config *c, const struct bert_weights *w,
                                size_t max_tokens, struct error *error) {
    bool sizes = c->C > 0 && c->hidden > 0 && c->L > 0 && c->NH > 0 && c->V > 0 && c->T > 0 &&
                 c->types > 0 && (w->classifier.weight == NULL || c->labels > 0);
    if (!sizes || c->C % c->NH != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "BERT sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, V %zu, "
                         "T %zu, types %zu, labels %zu",
                         c->C, c->hidden, c->L, c->NH, c->V, c->T, c->types, c->labels);
    }
    if (max_tokens == 0 || max_tokens > INT32_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "BERT's batch is 1 to %d tokens, not %zu",
                         INT32_MAX, max_tokens);
    }
    return STATUS_OK;
}

static void list_layer(struct resident_tensor list[LAYER_TENSORS], const struct bert_config *c,
                       const struct bert_layer *host, struct bert_layer *resident) {
    const struct resident_tensor tensors[LAYER_TENSORS] = {
        {host->q.weight, &resident->q.weight, c->C, c->C},
        {host->q.bias, &resident->q.bias, 1, c->C},
        {host->k.weight, &resident->k.weight, c->C, c->C},
        {host->k.bias, &resident->k.bias, 1, c->C},
        {host->v.weight, &resident->v.weight, c->C, c->C},
        {host->v.bias, &resident->v.bias, 1, c->C},
        {host->attention_out.weight, &resident->attention_out.weight, c->C, c->C},
        {host->attention_out.bias, &resident->attention_out.bias, 1, c->C},
        {host->attention_norm_weight, &resident->attention_norm_weight, 1, c->C},
        {host->attention_norm_bias, &resident->attention_norm_bias, 1, c->C},
        {host->up.weight, &resident->up.weight, c->hidden, c->C},
        {host->up.bias, &resident->up.bias, 1, c->hidden},
        {host->down.weight, &resident->down.weight, c->C, c->hidden},
        {host->down.bias, &resident->down.bias, 1, c->C},
        {host->output_norm_weight, &resident->output_norm_weight, 1, c->C},
        {host->output_norm_bias, &resident->output_norm_bias, 1, c->C},
    };
    for (size_t i = 0; i < LAYER_TENSORS; i++) {
        list[i] = tensors[i];
    }
}

static void list_others(struct resident_tensor list[OTHER_TENSORS], const struct bert_config *c,
                        const struct bert_weights *host, struct bert_weights *resident) {
    const struct resident_tensor tensors[OTHER_TENSORS] = {
        {host->word_embedding, &resident->word_embedding, c->V, c->C},
        {host->position_embedding, &resident->position_embedding, c->T, c->C},
        {host->type_embedding, &resident->type_embedding, c->types, c->C},
        {host->embedding_norm_weight, &resident->embedding_norm_weight, 1, c->C},
        {host->embedding_norm_bias, &resident->embedding_norm_bias, 1, c->C},
        {host->pooler.weight, &resident->pooler.weight, c->C, c->C},
        {host->pooler.bias, &resident->pooler.bias, 1, c->C},
        {host->classifier.weight, &resident->classifier.weight, c->labels, c->C},
        {host->classifier.bias, &resident->classifier.bias, 1, c->labels},
    };
    for (size_t i = 0; i < OTHER_TENSORS; i++) {
        list[i] = tensors[i];
    }
}

static void list_buffers(struct resident_buffer list[BUFFERS], struct bert *m) {
    const struct bert_config *c = &m->config;
    const struct resident_buffer buffers[BUFFERS] = {
        {&m->x, m->max_tokens, c->C},           {&m->q, m->max_tokens, c->C},
        {&m->k, m->max_tokens, c->C},           {&m->v, m->max_tokens, c->C},
        {&m->mixed, m->max_tokens, c->C},       {&m->projected, m->max_tokens, c->C},
        {&m->inner, m->max_tokens, c->hidden},  {&m->pooled, m->max_tokens, c->C},
        {&m->logits, m->max_tokens, c->labels},
    };
    for (size_t i = 0; i < BUFFERS; i++) {
        list[i] = buffers[i];
    }
}

static enum status load_weights(struct bert *m, const struct bert_weights *host) {
    struct resident_tensor others[OTHER_TENSORS];
    list_others(others, &m->config, host, &m->weights);
    m->weights.layers = calloc(m->config.L, sizeof *m->weights.layers);
    if (m->weights.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(resident_tensors_load(m->engine, others, OTHER_TENSORS));
    for (size_t l = 0; l < m->config.L; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &host->layers[l], &m->weights.layers[l]);
        TRY(resident_tensors_load(m->engine, layer, LAYER_TENSORS));
    }
    return STATUS_OK;
}

static enum status alloc_activations(struct bert *m) {
    struct resident_buffer buffers[BUFFERS];
    list_buffers(buffers, m);
    TRY(resident_buffers_alloc(m->engine, buffers, BUFFERS));
    void *mask = NULL;
    TRY(m->engine->alloc(m->engine->context, m->max_tokens, &mask));
    m->mask = mask;
    m->positions = calloc(m->max_tokens, sizeof *m->positions);
    m->zeros = calloc(m->max_tokens, sizeof *m->zeros);
    m->cls = calloc(m->max_tokens, sizeof *m->cls);
    bool all = m->positions != NULL && m->zeros != NULL && m->cls != NULL;
    return all ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

enum status bert_create(struct bert **model, const struct bert_config *config,
                        const struct bert_weights *weights, const struct engine *engine,
                        size_t max_tokens, struct error *error) {
    *model = NULL;
    TRY(check_config(config, weights, max_tokens, error));
    struct bert *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    m->config = *config;
    m->engine = engine;
    m->max_tokens = max_tokens;
    enum status status = load_weights(m, weights);
    if (status == STATUS_OK) {
        status = alloc_activations(m);
    }
    if (status != STATUS_OK) {
        bert_free(m);
        return error_set(error, status, "cannot make the model resident on engine %s: %s",
                         engine->name, status_message(status));
    }
    *model = m;
    return STATUS_OK;
}

void bert_free(struct bert *m) {
    if (m == NULL) {
        return;
    }
    struct resident_tensor others[OTHER_TENSORS];
    list_others(others, &m->config, &m->weights, &m->weights);
    resident_tensors_unload(m->engine, others, OTHER_TENSORS);
    for (size_t l = 0; l < m->config.L && m->weights.layers != NULL; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &m->weights.layers[l], &m->weights.layers[l]);
        resident_tensors_unload(m->engine, layer, LAYER_TENSORS);
    }
    struct resident_buffer buffers[BUFFERS];
    list_buffers(buffers, m);
    resident_buffers_release(m->engine, buffers, BUFFERS);
    m->engine->release(m->engine->context, m->mask);
    free(m->weights.layers);
    free(m->positions);
    free(m->zeros);
    free(m->cls);
    free(m);
}

static enum status check_ids(const int32_t *ids, size_t count, size_t bound) {
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= bound) {
            return STATUS_INVALID_ARGUMENT;
        }
    }
    return STATUS_OK;
}

static enum status check_call(const struct bert *m, const struct bert_input *input,
                              const struct bert_output *output) {
    const struct bert_config *c = &m->config;
    size_t rows;
    if (input->B == 0 || input->T == 0) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (input->T > c->T || !checked_multiply(input->B, input->T, &rows) || rows > m->max_tokens) {
        return STATUS_TOO_LONG;
    }
    bool pool = output->pooled != NULL || output->logits != NULL;
    if ((pool && m->weights.pooler.weight == NULL) ||
        (output->logits != NULL && m->weights.classifier.weight == NULL)) {
        return STATUS_UNSUPPORTED;
    }
    TRY(check_ids(input->ids, rows, c->V));
    return input->types != NULL ? check_ids(input->types, rows, c->types) : STATUS_OK;
}

/* out (rows, N) = in (rows, K) * weight^T + bias. */
static enum status linear(struct bert *m, float *out, const float *in, struct bert_linear w,
                          size_t rows, size_t N, size_t K) {
    const struct engine *e = m->engine;
    TRY(e->matmul(e->context, out, in, w.weight, rows, N, K));
    return e->bias_add(e->context, out, w.bias, rows, N);
}

/* x = LayerNorm(x + projected), what closes every sublayer ("post-norm"). */
static enum status close_sublayer(struct bert *m, const float *weight, const float *bias,
                                  size_t rows) {
    const struct engine *e = m->engine;
    size_t C = m->config.C;
    TRY(e->residual(e->context, m->x, m->x, m->projected, rows * C));
    return e->layernorm(e->context, m->x, m->x, weight, bias, rows, C, m->config.norm_eps);
}

/* x = LayerNorm(word + position + type). */
static enum status embed(struct bert *m, const struct bert_input *input) {
    const struct bert_weights *w = &m->weights;
    const struct engine *e = m->engine;
    void *x = e->context;
    size_t rows = input->B * input->T;
    size_t C = m->config.C;
    const int32_t *types = input->types != NULL ? input->types : m->zeros;
    for (size_t i = 0; i < rows; i++) {
        m->positions[i] = (int32_t)(i % input->T);
    }
    TRY(e->embedding(x, m->x, w->word_embedding, input->ids, rows, C, false));
    TRY(e->embedding(x, m->x, w->position_embedding, m->positions, rows, C, true));
    TRY(e->embedding(x, m->x, w->type_embedding, types, rows, C, true));
    return e->layernorm(x, m->x, m->x, w->embedding_norm_weight, w->embedding_norm_bias, rows, C,
                        m->config.norm_eps);
}

/* mixed = multi-head attention of x to itself, padding hidden. */
static enum status attend(struct bert *m, const struct bert_layer *w,
                          const struct bert_input *input) {
    const struct engine *e = m->engine;
    size_t rows = input->B * input->T;
    size_t C = m->config.C;
    size_t HS = C / m->config.NH;
    TRY(linear(m, m->q, m->x, w->q, rows, C, C));
    TRY(linear(m, m->k, m->x, w->k, rows, C, C));
    TRY(linear(m, m->v, m->x, w->v, rows, C, C));
    const struct nn_attention attention = {
        .q = m->q,
        .k = m->k,
        .v = m->v,
        .mask = input->mask != NULL ? m->mask : NULL,
        .B = input->B,
        .T = input->T,
        .S = input->T,
        .NH = m->config.NH,
        .KVH = m->config.NH,
        .HS = HS,
        .q_stride = C,
        .kv_stride = C,
        .scale = 1.0f / sqrtf((float)HS),
    };
    return e->attention(e->context, m->mixed, &attention);
}

static enum status forward_layer(struct bert *m, const struct bert_layer *w,
                                 const struct bert_input *input) {
    const struct bert_config *c = &m->config;
    const struct engine *e = m->engine;
    size_t rows = input->B * input->T;

    TRY(attend(m, w, input));
    TRY(linear(m, m->projected, m->mixed, w->attention_out, rows, c->C, c->C));
    TRY(close_sublayer(m, w->attention_norm_weight, w->attention_norm_bias, rows));

    TRY(linear(m, m->inner, m->x, w->up, rows, c->hidden, c->C));
    TRY(e->activation(e->context, m->inner, m->inner, rows * c->hidden, c->activation));
    TRY(linear(m, m->projected, m->inner, w->down, rows, c->C, c->hidden));
    return close_sublayer(m, w->output_norm_weight, w->output_norm_bias, rows);
}

/* pooled (B, C) = tanh(pooler(x at [CLS], the first token of each sequence)). */
static enum status pool(struct bert *m, size_t B, size_t T) {
    const struct engine *e = m->engine;
    size_t C = m->config.C;
    for (size_t b = 0; b < B; b++) {
        m->cls[b] = (int32_t)(b * T);
    }
    TRY(e->embedding(e->context, m->projected, m->x, m->cls, B, C, false));
    TRY(linear(m, m->pooled, m->projected, m->weights.pooler, B, C, C));
    return e->activation(e->context, m->pooled, m->pooled, B * C, NN_TANH);
}

/* Copies to the host what is wanted there. */
static enum status deliver(struct bert *m, const struct bert_input *input,
                           const struct bert_output *output) {
    const struct engine *e = m->engine;
    size_t B = input->B;
    size_t C = m->config.C;
    size_t labels = m->config.labels;
    if (output->hidden != NULL) {
        TRY(e->read(e->context, output->hidden, m->x, B * input->T * C * sizeof(float)));
    }
    if (output->pooled != NULL) {
        TRY(e->read(e->context, output->pooled, m->pooled, B * C * sizeof(float)));
    }
    if (output->logits != NULL) {
        TRY(e->read(e->context, output->logits, m->logits, B * labels * sizeof(float)));
    }
    return STATUS_OK;
}

static enum status run(struct bert *m, const struct bert_input *input,
                       const struct bert_output *output) {
    const struct bert_config *c = &m->config;
    if (input->mask != NULL) {
        TRY(m->engine->write(m->engine->context, m->mask, input->mask, input->B * input->T));
    }
    TRY(embed(m, input));
    for (size_t l = 0; l < c->L; l++) {
        TRY(forward_layer(m, &m->weights.layers[l], input));
    }
    if (output->pooled != NULL || output->logits != NULL) {
        TRY(pool(m, input->B, input->T));
    }
    if (output->logits != NULL) {
        TRY(linear(m, m->logits, m->pooled, m->weights.classifier, input->B, c->labels, c->C));
    }
    return deliver(m, input, output);
}

enum status bert_forward(struct bert *m, const struct bert_input *input,
                         const struct bert_output *output) {
    TRY(check_call(m, input, output));
    enum status status = run(m, input, output);
    /* Nothing may still read the caller's ids, whether the call went well or not. */
    enum status waited = m->engine->synchronize(m->engine->context);
    return status != STATUS_OK ? status : waited;
}
