#include "common/models/bert.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/models/bert_encoder.h"
#include "common/models/bert_padding.h"
#include "common/models/fused.h"
#include "common/models/resident.h"

enum { LAYER_TENSORS = 10, OTHER_TENSORS = 9, BUFFERS = 7 };

struct bert {
    struct bert_config config;
    const struct engine *engine;
    size_t max_tokens;
    struct bert_weights weights; /* resident pointers; shapes as in struct bert_weights */
    struct bert_linear *qkv;     /* (L), resident: rows of q, then k, then v, (3C, C) and (3C);
                                    q, k and v in weights stay NULL */
    void *encoder;               /* the engine's; NULL: the engine runs operator by operator */

    /* Resident activations of one call, of at most max_tokens rows. */
    float *x;         /* (rows, C): the hidden state */
    float *qkv_rows;  /* (rows, 3, C): query, key and value of each token */
    float *attended;  /* (rows, C): output of attention */
    float *projected; /* (rows, C): output of a sublayer; later (B, C): the [CLS] rows */
    float *inner;     /* (rows, hidden) */
    float *pooled;    /* (B, C) */
    float *logits;    /* (B, labels) */
    uint8_t *mask;    /* (rows) */
    int32_t *starts;  /* (B + 1) */

    /* Row numbers for embedding(); host. */
    int32_t *positions; /* (rows): 0, 1, ... in each sequence */
    int32_t *zeros;     /* (rows): token types of an input without types */
    int32_t *firsts;    /* (B + 1): the first row of each sequence, and the number of rows */

    struct bert_packed packed; /* a padded batch without its padding, for the encoder */
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
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "a batch of %zu tokens: BERT takes 1 to %d tokens", max_tokens, INT32_MAX);
    }
    return STATUS_OK;
}

static void list_layer(struct resident_tensor list[LAYER_TENSORS], const struct bert_config *c,
                       const struct bert_layer *host, struct bert_layer *resident) {
    const struct resident_tensor tensors[LAYER_TENSORS] = {
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
        {&m->x, m->max_tokens, c->C},           {&m->qkv_rows, m->max_tokens, 3 * c->C},
        {&m->attended, m->max_tokens, c->C},    {&m->projected, m->max_tokens, c->C},
        {&m->inner, m->max_tokens, c->hidden},  {&m->pooled, m->max_tokens, c->C},
        {&m->logits, m->max_tokens, c->labels},
    };
    for (size_t i = 0; i < BUFFERS; i++) {
        list[i] = buffers[i];
    }
}

/* Concatenates three tensors in resident memory. */
static enum status concatenate(const struct engine *e, const float **to,
                               const float *const tensors[3], size_t count) {
    float *all = NULL;
    const struct resident_buffer buffer = {&all, 3, count};
    TRY(resident_buffers_alloc(e, &buffer, 1));
    *to = all;
    for (size_t i = 0; i < 3; i++) {
        TRY(e->write(e->context, all + i * count, tensors[i], count * sizeof(float)));
    }
    return STATUS_OK;
}

static enum status load_qkv(struct bert *m, const struct bert_layer *host,
                            struct bert_linear *qkv) {
    size_t C = m->config.C;
    TRY(concatenate(m->engine, &qkv->weight,
                    (const float *const[]){host->q.weight, host->k.weight, host->v.weight}, C * C));
    return concatenate(m->engine, &qkv->bias,
                       (const float *const[]){host->q.bias, host->k.bias, host->v.bias}, C);
}

static void release_qkv(const struct engine *e, struct bert_linear *qkv) {
    e->release(e->context, (void *)qkv->weight);
    e->release(e->context, (void *)qkv->bias);
}

static enum status load_weights(struct bert *m, const struct bert_weights *host) {
    struct resident_tensor others[OTHER_TENSORS];
    list_others(others, &m->config, host, &m->weights);
    m->weights.layers = calloc(m->config.L, sizeof *m->weights.layers);
    m->qkv = calloc(m->config.L, sizeof *m->qkv);
    if (m->weights.layers == NULL || m->qkv == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(resident_tensors_load(m->engine, others, OTHER_TENSORS));
    for (size_t l = 0; l < m->config.L; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &host->layers[l], &m->weights.layers[l]);
        TRY(resident_tensors_load(m->engine, layer, LAYER_TENSORS));
        TRY(load_qkv(m, &host->layers[l], &m->qkv[l]));
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
    void *starts = NULL;
    TRY(m->engine->alloc(m->engine->context, (m->max_tokens + 1) * sizeof *m->starts, &starts));
    m->starts = starts;
    m->positions = calloc(m->max_tokens, sizeof *m->positions);
    m->zeros = calloc(m->max_tokens, sizeof *m->zeros);
    m->firsts = calloc(m->max_tokens + 1, sizeof *m->firsts);
    bool all = m->positions != NULL && m->zeros != NULL && m->firsts != NULL;
    return all ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status alloc_packed(struct bert *m) {
    struct bert_packed *packed = &m->packed;
    packed->ids = calloc(m->max_tokens, sizeof *packed->ids);
    packed->types = calloc(m->max_tokens, sizeof *packed->types);
    packed->starts = calloc(m->max_tokens + 1, sizeof *packed->starts);
    bool all = packed->ids != NULL && packed->types != NULL && packed->starts != NULL;
    return all ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status create_encoder(struct bert *m) {
    const struct engine *e = m->engine;
    const struct bert_encoder_model model = {&m->config, &m->weights, m->qkv, m->max_tokens};
    return e->encoder_create != NULL ? e->encoder_create(e->context, &model, &m->encoder)
                                     : STATUS_OK;
}

static enum status make_resident(struct bert *m, const struct bert_weights *weights) {
    TRY(load_weights(m, weights));
    TRY(alloc_activations(m));
    TRY(create_encoder(m));
    return m->encoder != NULL ? alloc_packed(m) : STATUS_OK;
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
    enum status status = make_resident(m, weights);
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
    if (m->encoder != NULL) {
        m->engine->encoder_free(m->engine->context, m->encoder);
    }
    struct resident_tensor others[OTHER_TENSORS];
    list_others(others, &m->config, &m->weights, &m->weights);
    resident_tensors_unload(m->engine, others, OTHER_TENSORS);
    for (size_t l = 0; l < m->config.L && m->qkv != NULL; l++) {
        release_qkv(m->engine, &m->qkv[l]);
    }
    for (size_t l = 0; l < m->config.L && m->weights.layers != NULL; l++) {
        struct resident_tensor layer[LAYER_TENSORS];
        list_layer(layer, &m->config, &m->weights.layers[l], &m->weights.layers[l]);
        resident_tensors_unload(m->engine, layer, LAYER_TENSORS);
    }
    struct resident_buffer buffers[BUFFERS];
    list_buffers(buffers, m);
    resident_buffers_release(m->engine, buffers, BUFFERS);
    m->engine->release(m->engine->context, m->mask);
    m->engine->release(m->engine->context, m->starts);
    free(m->qkv);
    free(m->weights.layers);
    free(m->positions);
    free(m->zeros);
    free(m->firsts);
    free(m->packed.ids);
    free(m->packed.types);
    free(m->packed.starts);
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

/* Sizes of one call: tokens of the batch, and of its longest sequence. */
struct extent {
    size_t rows, longest;
};

/* Packed sequences: each starts where the one before ends, and has at least one token. */
static enum status measure_packed(const struct bert_input *input, struct extent *extent) {
    const int32_t *starts = input->starts;
    if (input->mask != NULL || starts[0] != 0) {
        return STATUS_INVALID_ARGUMENT;
    }
    for (size_t b = 0; b < input->B; b++) {
        if (starts[b + 1] <= starts[b]) {
            return STATUS_INVALID_ARGUMENT;
        }
        size_t length = (size_t)starts[b + 1] - (size_t)starts[b];
        extent->longest = length > extent->longest ? length : extent->longest;
    }
    extent->rows = (size_t)starts[input->B];
    return STATUS_OK;
}

static enum status measure(const struct bert_input *input, struct extent *extent) {
    *extent = (struct extent){.longest = 0};
    if (input->B == 0) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (input->starts != NULL) {
        return measure_packed(input, extent);
    }
    if (input->T == 0) {
        return STATUS_INVALID_ARGUMENT;
    }
    extent->longest = input->T;
    return checked_multiply(input->B, input->T, &extent->rows) ? STATUS_OK : STATUS_TOO_LONG;
}

static bool wants_pooled(const struct bert_output *output) {
    return output->pooled != NULL || output->logits != NULL;
}

static enum status check_call(const struct bert *m, const struct bert_input *input,
                              const struct bert_output *output, struct extent *extent) {
    const struct bert_config *c = &m->config;
    if (input->B > m->max_tokens) {
        return STATUS_TOO_LONG; /* before B + 1 starts are read */
    }
    TRY(measure(input, extent));
    size_t rows = extent->rows;
    if (extent->longest > c->T || rows > m->max_tokens) {
        return STATUS_TOO_LONG;
    }
    if ((wants_pooled(output) && m->weights.pooler.weight == NULL) ||
        (output->logits != NULL && m->weights.classifier.weight == NULL)) {
        return STATUS_UNSUPPORTED;
    }
    TRY(check_ids(input->ids, rows, c->V));
    return input->types != NULL ? check_ids(input->types, rows, c->types) : STATUS_OK;
}

/* The first row of sequence b. */
static size_t first_row(const struct bert_input *input, size_t b) {
    return input->starts != NULL ? (size_t)input->starts[b] : b * input->T;
}

static void number_positions(struct bert *m, const struct bert_input *input) {
    for (size_t b = 0; b < input->B; b++) {
        size_t first = first_row(input, b);
        size_t end = first_row(input, b + 1);
        for (size_t i = first; i < end; i++) {
            m->positions[i] = (int32_t)(i - first);
        }
        m->firsts[b] = (int32_t)first;
    }
    m->firsts[input->B] = (int32_t)first_row(input, input->B);
}

/* x = LayerNorm(word + position + type). */
static enum status embed(struct bert *m, const struct bert_input *input, size_t rows) {
    const struct bert_weights *w = &m->weights;
    const struct engine *e = m->engine;
    void *x = e->context;
    size_t C = m->config.C;
    const int32_t *types = input->types != NULL ? input->types : m->zeros;
    TRY(e->embedding(x, m->x, w->word_embedding, input->ids, rows, C, false));
    TRY(e->embedding(x, m->x, w->position_embedding, m->positions, rows, C, true));
    TRY(e->embedding(x, m->x, w->type_embedding, types, rows, C, true));
    return e->layernorm(x, m->x, m->x, w->embedding_norm_weight, w->embedding_norm_bias, rows, C,
                        m->config.norm_eps);
}

/* attended = multi-head self-attention of x; padding is masked. */
static enum status attend(struct bert *m, const struct bert_linear *qkv,
                          const struct bert_input *input, const struct extent *extent) {
    const struct engine *e = m->engine;
    size_t C = m->config.C;
    size_t HS = C / m->config.NH;
    TRY(engine_linear(e, m->qkv_rows, m->x, qkv->weight, qkv->bias, extent->rows, 3 * C, C));
    const struct nn_attention attention = {
        .q = m->qkv_rows,
        .k = m->qkv_rows + C,
        .v = m->qkv_rows + 2 * C,
        .mask = input->mask != NULL ? m->mask : NULL,
        .B = input->B,
        .T = extent->longest,
        .S = extent->longest,
        .NH = m->config.NH,
        .KVH = m->config.NH,
        .HS = HS,
        .q_stride = 3 * C,
        .kv_stride = 3 * C,
        .scale = 1.0f / sqrtf((float)HS),
    };
    if (input->starts != NULL) {
        return engine_attention_packed(e, m->attended, &attention, m->starts, input->starts);
    }
    return e->attention(e->context, m->attended, &attention);
}

static enum status forward_layer(struct bert *m, size_t layer, const struct bert_input *input,
                                 const struct extent *extent) {
    const struct bert_config *c = &m->config;
    const struct bert_layer *w = &m->weights.layers[layer];
    const struct engine *e = m->engine;
    size_t rows = extent->rows;
    const struct nn_norm attention_norm = {w->attention_norm_weight, w->attention_norm_bias,
                                           c->norm_eps};
    const struct nn_norm output_norm = {w->output_norm_weight, w->output_norm_bias, c->norm_eps};

    TRY(attend(m, &m->qkv[layer], input, extent));
    TRY(engine_linear_residual_layernorm(e, m->x, m->attended, w->attention_out.weight,
                                         w->attention_out.bias, &attention_norm, m->projected, rows,
                                         c->C, c->C));
    TRY(engine_linear_activation(e, m->inner, m->x, w->up.weight, w->up.bias, rows, c->hidden, c->C,
                                 c->activation));
    return engine_linear_residual_layernorm(e, m->x, m->inner, w->down.weight, w->down.bias,
                                            &output_norm, m->projected, rows, c->C, c->hidden);
}

/* pooled (B, C) = tanh(pooler(x at [CLS])). encode() has left the [CLS] rows, the first row of each
   sequence, in projected. */
static enum status pool(struct bert *m, size_t B) {
    const struct engine *e = m->engine;
    const struct bert_linear *pooler = &m->weights.pooler;
    size_t C = m->config.C;
    return engine_linear_activation(e, m->pooled, m->projected, pooler->weight, pooler->bias, B, C,
                                    C, NN_TANH);
}

/* Copies the outputs that the caller asks for to the host. */
static enum status read_outputs(struct bert *m, const struct bert_output *output, size_t B,
                                size_t rows) {
    const struct engine *e = m->engine;
    size_t C = m->config.C;
    size_t labels = m->config.labels;
    if (output->hidden != NULL) {
        TRY(e->read(e->context, output->hidden, m->x, rows * C * sizeof(float)));
    }
    if (output->pooled != NULL) {
        TRY(e->read(e->context, output->pooled, m->pooled, B * C * sizeof(float)));
    }
    if (output->logits != NULL) {
        TRY(e->read(e->context, output->logits, m->logits, B * labels * sizeof(float)));
    }
    return STATUS_OK;
}

/* Writes the mask, or the rows where packed sequences start, to resident memory. */
static enum status write_layout(struct bert *m, const struct bert_input *input) {
    const struct engine *e = m->engine;
    if (input->starts != NULL) {
        return e->write(e->context, m->starts, input->starts,
                        (input->B + 1) * sizeof *input->starts);
    }
    return input->mask != NULL ? e->write(e->context, m->mask, input->mask, input->B * input->T)
                               : STATUS_OK;
}

/* x (rows, C) = output of the encoder, if the caller asks for it; projected (B, C) = its [CLS]
   rows, if pooled or logits are asked for. */
static enum status encode(struct bert *m, const struct bert_input *input,
                          const struct bert_output *output, const struct extent *extent) {
    const struct engine *e = m->engine;
    number_positions(m, input);
    if (m->encoder != NULL && input->mask == NULL) {
        const struct bert_encoder_call call = {
            .ids = input->ids,
            .types = input->types,
            .starts = m->firsts,
            .B = input->B,
            .rows = extent->rows,
            .longest = extent->longest,
            .first = m->projected,
            .hidden = output->hidden != NULL ? m->x : NULL,
        };
        return e->encoder_run(e->context, m->encoder, &call);
    }
    TRY(write_layout(m, input));
    TRY(embed(m, input, extent->rows));
    for (size_t l = 0; l < m->config.L; l++) {
        TRY(forward_layer(m, l, input, extent));
    }
    return wants_pooled(output) ? e->embedding(e->context, m->projected, m->x, m->firsts, input->B,
                                               m->config.C, false)
                                : STATUS_OK;
}

static enum status run(struct bert *m, const struct bert_input *input,
                       const struct bert_output *output, const struct extent *extent) {
    const struct bert_config *c = &m->config;
    const struct bert_linear *classifier = &m->weights.classifier;
    TRY(encode(m, input, output, extent));
    if (wants_pooled(output)) {
        TRY(pool(m, input->B));
    }
    if (output->logits != NULL) {
        TRY(engine_linear(m->engine, m->logits, m->pooled, classifier->weight, classifier->bias,
                          input->B, c->labels, c->C));
    }
    return read_outputs(m, output, input->B, extent->rows);
}

/* run() without the rows of padding. */
static enum status run_packed(struct bert *m, const struct bert_input *input,
                              const struct bert_output *output) {
    struct extent extent;
    const struct bert_input packed = bert_pack(&m->packed, input);
    TRY(measure(&packed, &extent));
    TRY(run(m, &packed, output, &extent));
    if (output->hidden != NULL) {
        bert_unpack(output->hidden, packed.starts, input->B, input->T, m->config.C);
    }
    return STATUS_OK;
}

enum status bert_forward(struct bert *m, const struct bert_input *input,
                         const struct bert_output *output) {
    struct extent extent;
    TRY(check_call(m, input, output, &extent));
    enum status status = m->encoder != NULL && bert_padding_is_behind(input)
                             ? run_packed(m, input, output)
                             : run(m, input, output, &extent);
    /* The engine may still read the ids, also after a failure. */
    enum status waited = m->engine->synchronize(m->engine->context);
    return status != STATUS_OK ? status : waited;
}
