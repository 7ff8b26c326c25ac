/**
 * @file engine.c
 * @brief The solved stage below with the encoder's entries set: a batch is one encoder_run().
 *
 * The model's pointers are stage 03's. What device memory they stand for does not change while the
 * model lives, so weights are looked up once, when the encoder is made; results for each batch.
 */
#include "labs/08_bert_classifier/given/engine.h"

#include <stdlib.h>

#include "common/models/bert_encoder.h"
#include "common/models/engine_layer.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/resident.h"
#include "labs/07_attention/given/engine.h"

#define F (sizeof(float))

struct stage {
    struct encoder_functions functions;
    struct resident *resident; /* stage 03's */
};

/* What the entries pass around as the encoder. */
struct made {
    struct encoder *encoder;
    struct encoder_model model;
    struct encoder_layer *layers; /* (L), the model's */
};

/* One look-up: where the operand is on the device, and the stream of its work. */
struct place {
    const float *address;
    device_stream stream;
};

static enum status note_place(const void *arguments, void *const *d, device_stream stream,
                              struct error *error) {
    (void)error;
    struct place *place = *(struct place *const *)arguments;
    *place = (struct place){d[0], stream};
    return STATUS_OK;
}

static enum status find(const struct stage *stage, const float *memory, size_t floats,
                        struct place *place) {
    const struct resident_operand operand = {memory, floats * F, RESIDENT_IN};
    return resident_call(stage->resident, note_place, &place, &operand, 1, NULL);
}

/* *to = the address of (rows, columns) floats of the model. */
static enum status look_up(const struct stage *stage, const float **to, const float *memory,
                           size_t rows, size_t columns) {
    struct place place;
    TRY(find(stage, memory, rows * columns, &place));
    *to = place.address;
    return STATUS_OK;
}

static enum status look_up_linear(const struct stage *stage, struct encoder_linear *to,
                                  const struct bert_linear *linear, size_t out, size_t in) {
    TRY(look_up(stage, &to->weight, linear->weight, out, in));
    return look_up(stage, &to->bias, linear->bias, 1, out);
}

static enum status look_up_norm(const struct stage *stage, struct nn_norm *to, const float *weight,
                                const float *bias, const struct bert_config *c) {
    to->eps = c->norm_eps;
    TRY(look_up(stage, &to->weight, weight, 1, c->C));
    return look_up(stage, &to->bias, bias, 1, c->C);
}

static enum status look_up_layer(const struct stage *stage, struct encoder_layer *to,
                                 const struct bert_encoder_model *model, size_t l) {
    const struct bert_config *c = model->config;
    const struct bert_layer *layer = &model->weights->layers[l];
    TRY(look_up_linear(stage, &to->qkv, &model->qkv[l], 3 * c->C, c->C));
    TRY(look_up_linear(stage, &to->out, &layer->attention_out, c->C, c->C));
    TRY(look_up_norm(stage, &to->attention, layer->attention_norm_weight,
                     layer->attention_norm_bias, c));
    TRY(look_up_linear(stage, &to->up, &layer->up, c->hidden, c->C));
    TRY(look_up_linear(stage, &to->down, &layer->down, c->C, c->hidden));
    return look_up_norm(stage, &to->feed_forward, layer->output_norm_weight,
                        layer->output_norm_bias, c);
}

static enum status look_up_model(const struct stage *stage, struct encoder_model *to,
                                 const struct bert_encoder_model *model,
                                 struct encoder_layer *layers) {
    const struct bert_config *c = model->config;
    const struct bert_weights *w = model->weights;
    *to = (struct encoder_model){.C = c->C,
                                 .hidden = c->hidden,
                                 .L = c->L,
                                 .NH = c->NH,
                                 .V = c->V,
                                 .T = c->T,
                                 .types = c->types,
                                 .activation = c->activation,
                                 .layers = layers};
    TRY(look_up(stage, &to->word_embedding, w->word_embedding, c->V, c->C));
    TRY(look_up(stage, &to->position_embedding, w->position_embedding, c->T, c->C));
    TRY(look_up(stage, &to->type_embedding, w->type_embedding, c->types, c->C));
    for (size_t l = 0; l < c->L; l++) {
        TRY(look_up_layer(stage, &layers[l], model, l));
    }
    return look_up_norm(stage, &to->embedding, w->embedding_norm_weight, w->embedding_norm_bias, c);
}

static void made_free(const struct stage *stage, struct made *made) {
    if (made != NULL) {
        stage->functions.free(made->encoder);
        free(made->layers);
        free(made);
    }
}

static enum status make(const struct stage *stage, struct made *made,
                        const struct bert_encoder_model *model) {
    struct place place;
    made->layers = calloc(model->config->L, sizeof *made->layers);
    if (made->layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(look_up_model(stage, &made->model, model, made->layers));
    TRY(find(stage, model->weights->word_embedding, 1, &place));
    return stage->functions.create(stage->functions.context, &made->encoder, &made->model,
                                   model->max_tokens, place.stream, NULL);
}

/* *encoder stays NULL for a model that the kernels do not take: it runs operator by operator. */
static enum status stage_encoder_create(void *context, const struct bert_encoder_model *model,
                                        void **encoder) {
    const struct stage *stage = engine_layer_own(context);
    *encoder = NULL;
    if (model->config->C / model->config->NH > ATTENTION_MAX_HS) {
        return STATUS_OK;
    }
    struct made *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    enum status status = make(stage, made, model);
    if (status != STATUS_OK) {
        made_free(stage, made);
        return status;
    }
    *encoder = made;
    return STATUS_OK;
}

struct run_call {
    const struct stage *stage;
    struct encoder *encoder;
    struct encoder_batch batch; /* without device addresses */
};

/* Operands: first, and hidden where it is wanted. */
static enum status run_encoder(const void *arguments, void *const *d, device_stream stream,
                               struct error *error) {
    const struct run_call *call = arguments;
    struct encoder_batch batch = call->batch;
    (void)stream; /* the one that the encoder was made with */
    batch.first = d[0];
    batch.hidden = batch.hidden != NULL ? d[1] : NULL;
    return call->stage->functions.run(call->encoder, &batch, error);
}

static enum status stage_encoder_run(void *context, void *encoder,
                                     const struct bert_encoder_call *call) {
    const struct stage *stage = engine_layer_own(context);
    const struct made *made = encoder;
    size_t C = made->model.C;
    const struct run_call run = {stage,
                                 made->encoder,
                                 {.ids = call->ids,
                                  .types = call->types,
                                  .starts = call->starts,
                                  .B = call->B,
                                  .rows = call->rows,
                                  .longest = call->longest,
                                  .hidden = call->hidden}};
    const struct resident_operand operands[] = {
        {call->first, call->B * C * F, RESIDENT_OUT},
        {call->hidden, call->rows * C * F, RESIDENT_OUT},
    };
    return resident_call(stage->resident, run_encoder, &run, operands, call->hidden != NULL ? 2 : 1,
                         NULL);
}

static void stage_encoder_free(void *context, void *encoder) {
    made_free(engine_layer_own(context), encoder);
}

enum status engine_encoder_create_with(struct engine *engine,
                                       const struct encoder_functions *functions,
                                       struct error *error) {
    struct engine base;
    *engine = (struct engine){0};
    TRY(engine_attention_create(&base, error));
    const struct stage stage = {.functions = *functions, .resident = engine_resident_of(&base)};
    TRY(engine_layer_create_copy(engine, "08_bert_classifier", &base, &stage, sizeof stage, NULL,
                                 error));
    engine->encoder_create = stage_encoder_create;
    engine->encoder_run = stage_encoder_run;
    engine->encoder_free = stage_encoder_free;
    return STATUS_OK;
}

static enum status create(const void *context, struct encoder **encoder,
                          const struct encoder_model *model, size_t max_tokens,
                          device_stream stream, struct error *error) {
    (void)context;
    return encoder_create(encoder, model, max_tokens, stream, error);
}

enum status engine_encoder_create(struct engine *engine, struct error *error) {
    static const struct encoder_functions functions = {create, encoder_run, encoder_free, NULL};
    return engine_encoder_create_with(engine, &functions, error);
}
