#include "common/train/models/train_model.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/train/models/train_model_internal.h"

/* ---- Layers ---- */

enum status train_linear_forward(const struct train_model *m, const struct train_linear *l,
                                 void *out, const void *in, size_t rows) {
    const struct train_engine *e = m->engine;
    const void *bias = l->has_bias ? train_weight(m, l->place.bias) : NULL;
    return e->linear(e->context, out, in, train_matrix(m, l->place.weight), bias, rows, l->N, l->K);
}

enum status train_linear_backward(const struct train_model *m, const struct train_linear *l,
                                  void *din, const void *add, const void *dout, const void *in,
                                  size_t rows) {
    const struct train_engine *e = m->engine;
    void *dbias = l->has_bias ? train_gradient(m, l->place.bias) : NULL;
    return e->linear_backward(e->context, din, add, train_gradient(m, l->place.weight), dbias, dout,
                              in, train_matrix(m, l->place.weight), rows, l->N, l->K);
}

bool train_sizes_fit(const size_t *sizes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] < 1 || sizes[i] > INT32_MAX) {
            return false;
        }
    }
    return true;
}

struct train_attention train_attention_of(const struct train_model *m,
                                          const struct train_pass *pass, const void *qkv, size_t NH,
                                          size_t KVH, size_t HS) {
    enum train_type type = m->engine->activations;
    size_t stride = (NH + 2 * KVH) * HS;
    return (struct train_attention){
        .q = qkv,
        .k = train_at(qkv, NH * HS, type),
        .v = train_at(qkv, (NH + KVH) * HS, type),
        .starts = pass->starts,
        .host_starts = pass->host_starts,
        .B = pass->B,
        .rows = pass->rows,
        .longest = pass->longest,
        .NH = NH,
        .KVH = KVH,
        .HS = HS,
        .q_stride = stride,
        .kv_stride = stride,
        .scale = 1.0f / sqrtf((float)HS),
    };
}

struct train_norm train_norm_of(const struct train_model *m, struct train_norm_place place,
                                bool has_bias, float eps) {
    return (struct train_norm){.weight = train_weight(m, place.weight),
                               .bias = has_bias ? train_weight(m, place.bias) : NULL,
                               .eps = eps};
}

struct train_norm_gradient train_norm_gradient_of(const struct train_model *m,
                                                  struct train_norm_place place, bool has_bias) {
    return (struct train_norm_gradient){.weight = train_gradient(m, place.weight),
                                        .bias = has_bias ? train_gradient(m, place.bias) : NULL};
}

/* ---- Memory ---- */

void train_space_take(struct train_space *s, void **slot, size_t a, size_t b,
                      enum train_type type) {
    enum { ALIGNMENT = 256 };
    size_t bytes, end;
    bool fits = checked_multiply(a, b, &bytes) &&
                checked_multiply(bytes, train_type_bytes(type), &bytes) &&
                checked_add(bytes, ALIGNMENT - 1, &bytes) &&
                checked_add(s->bytes, bytes / ALIGNMENT * ALIGNMENT, &end);
    if (!fits) {
        s->overflows = true;
        return;
    }
    *slot = s->base != NULL ? s->base + s->bytes : NULL;
    s->bytes = end;
}

static enum status measure_activations(struct train_model *m, size_t *bytes, struct error *error) {
    struct train_space measured = {0};
    m->architecture->plan(m, &measured);
    *bytes = measured.bytes;
    return !measured.overflows
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "activations of batches of %zu rows are more than memory can hold",
                           m->config.most_rows);
}

static enum status alloc_activations(struct train_model *m, size_t bytes, struct error *error) {
    TRY(m->engine->alloc(m->engine->context, bytes, &m->activity, error));
    struct train_space space = {.base = m->activity};
    m->architecture->plan(m, &space);
    return STATUS_OK;
}

static enum status alloc_parameters(struct train_model *m, struct error *error) {
    const struct train_engine *e = m->engine;
    TRY(train_exchange_alloc(m, error));
    if (e->activations != e->weights) {
        TRY(e->alloc(e->context, m->elements * train_type_bytes(e->activations), &m->copy, error));
    }
    return e->alloc(e->context, TRAIN_SCALARS * train_type_bytes(e->weights), &m->scalars, error);
}

static enum status check_rows(const struct train_config *c, struct error *error) {
    if (c->most_rows < 1 || c->most_rows > INT32_MAX || c->most_sequences < 1 ||
        c->most_sequences > c->most_rows) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "a batch of %zu rows and %zu sequences: must have 1 to %d rows and at "
                         "most one sequence a row",
                         c->most_rows, c->most_sequences, INT32_MAX);
    }
    return STATUS_OK;
}

static enum status build(struct train_model *m, struct error *error) {
    TRY(check_rows(&m->config, error));
    TRY(m->architecture->check(&m->config, error));
    if (m->architecture->create(m) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model's layers");
    }
    size_t bytes;
    TRY(train_parameters_list(m, error));
    TRY(train_exchange_create(m, error));
    TRY(measure_activations(m, &bytes, error));
    TRY(alloc_parameters(m, error));
    TRY(train_upload_create(m, error));
    return alloc_activations(m, bytes, error);
}

enum status train_model_create(struct train_model **model, const struct train_config *config,
                               const struct train_engine *engine, struct error *error) {
    *model = NULL;
    if (config->task != TRAIN_CLASSIFY && config->task != TRAIN_MLM && config->task != TRAIN_LM) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "there is no task %d", (int)config->task);
    }
    struct train_model *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    m->config = *config;
    m->engine = engine;
    m->architecture =
        config->task != TRAIN_LM ? &train_bert_architecture : &train_decoder_architecture;
    enum status status = build(m, error);
    if (status != STATUS_OK) {
        train_model_free(m);
        return status;
    }
    *model = m;
    return STATUS_OK;
}

void train_model_free(struct train_model *m) {
    if (m == NULL) {
        return;
    }
    const struct train_engine *e = m->engine;
    void *const resident[] = {m->copy, m->scalars, m->activity};
    for (size_t i = 0; i < sizeof resident / sizeof *resident; i++) {
        e->release(e->context, resident[i]);
    }
    train_exchange_free(m);
    train_upload_free(m);
    m->architecture->free(m);
    free(m->parameters);
    free(m);
}

/* ---- Work ---- */

/* Describes the failure of an operator, with the engine's own message if it has one. */
static enum status explain(const struct train_model *m, enum status status, struct error *error) {
    const struct train_engine *e = m->engine;
    if (status == STATUS_OK || (error != NULL && error->message[0] != '\0')) {
        return status;
    }
    const struct train_peers *peers = m->config.peers;
    if (peers != NULL) {
        peers->failed(peers->context, error);
    }
    enum status waited = e->synchronize(e->context, error);
    if (waited != STATUS_OK && error != NULL && error->message[0] != '\0') {
        return waited;
    }
    return error_set(error, status, "engine %s: %s", e->name, status_message(status));
}

static enum status begin_backward(struct train_model *m, const struct train_batch *batch,
                                  float scale, uint64_t seed, uint32_t step,
                                  struct train_pass *pass, struct error *error) {
    TRY(train_batch_begin(m, batch, true, pass, error));
    pass->p = m->config.task == TRAIN_LM ? 0.0f : m->config.dropout;
    pass->seed = seed;
    pass->step = step;
    pass->scale = scale;
    return STATUS_OK;
}

static enum status run_backward(struct train_model *m, const struct train_batch *batch, float scale,
                                uint64_t seed, uint32_t step, struct error *error) {
    struct train_pass pass;
    TRY(begin_backward(m, batch, scale, seed, step, &pass, error));
    return m->architecture->run(m, &pass);
}

enum status train_model_backward(struct train_model *m, const struct train_batch *batch,
                                 float scale, uint64_t seed, uint32_t step, struct error *error) {
    return explain(m, run_backward(m, batch, scale, seed, step, error), error);
}

static enum status run_evaluation(struct train_model *m, const struct train_batch *batch,
                                  float scale, float *logits, struct error *error) {
    struct train_pass pass;
    TRY(train_batch_begin(m, batch, false, &pass, error));
    pass.scale = scale;
    pass.logits = logits;
    return m->architecture->run(m, &pass);
}

enum status train_model_evaluate(struct train_model *m, const struct train_batch *batch,
                                 float scale, float *logits, struct error *error) {
    if (logits != NULL && m->config.task != TRAIN_CLASSIFY) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "logits can be read of a classifier only, not of a language model");
    }
    return explain(m, run_evaluation(m, batch, scale, logits, error), error);
}

static enum status check_update(const struct train_update *u, struct error *error) {
    bool rates = u->rate >= 0 && u->eps > 0 && u->decay >= 0 && u->most_norm >= 0 &&
                 isfinite(u->rate) && isfinite(u->decay);
    bool betas = u->beta1 >= 0 && u->beta1 < 1 && u->beta2 >= 0 && u->beta2 < 1;
    if (!rates || !betas || u->step == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "an update cannot have rate %g, beta1 %g, beta2 %g, eps %g, decay %g, "
                         "norm %g, step %llu",
                         (double)u->rate, (double)u->beta1, (double)u->beta2, (double)u->eps,
                         (double)u->decay, (double)u->most_norm, (unsigned long long)u->step);
    }
    return STATUS_OK;
}

static enum status update(struct train_model *m, const struct train_update *u) {
    const struct train_engine *e = m->engine;
    const size_t first = m->first, end = m->first + m->count;
    size_t decayed = m->decayed < first ? 0 : (m->decayed < end ? m->decayed : end) - first;
    const struct train_adamw adamw = {
        .weights = train_at(m->weights, first, e->weights),
        .copy = m->copy != NULL ? train_at(m->copy, first, e->activations) : NULL,
        .gradient = train_gradient(m, first),
        .m = m->m,
        .v = m->v,
        .count = m->count,
        .decayed = decayed,
        .scale = train_scalar(m, TRAIN_SCALE),
        .rate = u->rate,
        .beta1 = u->beta1,
        .beta2 = u->beta2,
        .eps = u->eps,
        .decay = u->decay,
        .step = u->step,
    };
    TRY(train_exchange_finish(m));
    TRY(e->clip(e->context, train_scalar(m, TRAIN_SCALE), train_scalar(m, TRAIN_NORM), m->gradient,
                m->elements, u->most_norm));
    if (m->count > 0) {
        TRY(e->adamw(e->context, &adamw));
    }
    TRY(train_exchange_weights(m));
    return e->zero(e->context, m->gradient, m->elements * train_type_bytes(e->weights));
}

enum status train_model_update(struct train_model *m, const struct train_update *u,
                               struct error *error) {
    TRY(check_update(u, error));
    return explain(m, update(m, u), error);
}

/* A step behind its upload. */
struct whole_step {
    struct train_model *model;
    const struct train_pass *pass;
    const struct train_update *update;
};

static enum status do_step(void *argument) {
    const struct whole_step *s = argument;
    TRY(s->model->architecture->run(s->model, s->pass));
    return update(s->model, s->update);
}

static enum status run_step(struct train_model *m, const struct train_batch *batch, float scale,
                            uint64_t seed, uint32_t step, const struct train_update *u,
                            struct error *error) {
    struct train_pass pass;
    struct whole_step whole = {m, &pass, u};
    TRY(begin_backward(m, batch, scale, seed, step, &pass, error));
    return m->config.peers != NULL ? do_step(&whole) /* ranks wait for each other on the host */
                                   : m->engine->at_once(m->engine->context, do_step, &whole);
}

enum status train_model_step(struct train_model *m, const struct train_batch *batch, float scale,
                             uint64_t seed, uint32_t step, const struct train_update *u,
                             struct error *error) {
    TRY(check_update(u, error));
    return explain(m, run_step(m, batch, scale, seed, step, u, error), error);
}

/* Scalars on the host, in the engine's type. */
union scalars {
    float f32[TRAIN_SCALARS];
    double f64[TRAIN_SCALARS];
};

static double scalar_of(const union scalars *scalars, size_t index, enum train_type type) {
    return type == TRAIN_F64 ? scalars->f64[index] : (double)scalars->f32[index];
}

enum status train_model_read_loss(const struct train_model *m, double *loss, double *norm,
                                  struct error *error) {
    const struct train_engine *e = m->engine;
    union scalars scalars;
    enum status status =
        e->read(e->context, &scalars, m->scalars, TRAIN_SCALARS * train_type_bytes(e->weights));
    if (status != STATUS_OK) {
        return explain(m, status, error);
    }
    *loss = scalar_of(&scalars, TRAIN_LOSS, e->weights);
    if (norm != NULL) {
        *norm = scalar_of(&scalars, TRAIN_NORM, e->weights);
    }
    return STATUS_OK;
}

enum status train_model_write_loss(struct train_model *m, double loss, struct error *error) {
    const struct train_engine *e = m->engine;
    const float narrow = (float)loss;
    const void *value = e->weights == TRAIN_F64 ? (const void *)&loss : &narrow;
    size_t bytes = train_type_bytes(e->weights);
    return explain(m, e->write(e->context, train_scalar(m, TRAIN_LOSS), value, bytes), error);
}

enum status train_model_take_loss(struct train_model *m, double *loss, double *norm,
                                  struct error *error) {
    const struct train_engine *e = m->engine;
    TRY(train_model_read_loss(m, loss, norm, error));
    void *scalar = train_scalar(m, TRAIN_LOSS);
    return explain(m, e->zero(e->context, scalar, train_type_bytes(e->weights)), error);
}
