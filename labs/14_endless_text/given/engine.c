#include "labs/14_endless_text/given/engine.h"

#include <stdlib.h>

#include "common/models/engine_layer.h"
#include "common/models/gpt_neox_device.h"
#include "common/models/llama2_device.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/07_attention/given/engine.h"

/* The lab's operators, and the last step's own kernel for a whole token, if it has one. */
static struct endless_functions functions_of_lab(void) {
    size_t count;
    const struct endless_step *steps = endless_ladder(&count);
    return (struct endless_functions){endless_attention, endless_add_norms,
                                      steps[count - 1].functions.whole};
}

/* A Llama2 or a GPT-NeoX on the decoder; the other one's weights are empty. */
struct stage_decoder {
    struct llama2_device weights;
    struct gpt_neox_device gpt_neox;
    struct endless_layer *layers; /* (L) */
    struct endless_decoder *decoder;
    float *logits; /* device, (V) */
    size_t V;
};

static struct endless_layer layer_of(const struct llama2_device_layer *w) {
    return (struct endless_layer){.norms = {w->attention_norm, w->ffn_norm},
                                  .qkv = w->qkv,
                                  .out = w->out,
                                  .up = w->gate_up,
                                  .down = w->down,
                                  .qkv_bias = w->qkv_bias,
                                  .out_bias = w->out_bias,
                                  .up_bias = w->gate_up_bias,
                                  .down_bias = w->down_bias};
}

static struct endless_model model_of(const struct llama2_config *c,
                                     const struct llama2_device *weights,
                                     const struct endless_layer *layers) {
    return (struct endless_model){.C = c->C,
                                  .hidden = c->hidden,
                                  .L = c->L,
                                  .NH = c->NH,
                                  .KVH = c->KVH,
                                  .HS = c->HS,
                                  .V = c->V,
                                  .rotary = c->HS,
                                  .sinks = c->sinks,
                                  .window = c->recent > 0 ? c->recent : c->T,
                                  .gated = true,
                                  .eps = c->norm_eps,
                                  .theta = c->rope_theta,
                                  .layout = c->rope_layout,
                                  .dtype = weights->dtype,
                                  .embedding = weights->embedding,
                                  .layers = layers,
                                  .final_norm = weights->final_norm,
                                  .classifier = weights->classifier};
}

static bool takes(const struct llama2_config *c) {
    size_t rows = c->recent > 0 ? c->sinks + c->recent : c->T;
    return c->HS <= ENDLESS_MAX_HS && c->NH * c->HS <= ENDLESS_MAX_C && c->C <= ENDLESS_MAX_C &&
           c->NH * rows <= ENDLESS_MAX_SCORES && c->window == 0 &&
           c->rope.scaling == LLAMA2_ROPE_PLAIN;
}

static void stage_decoder_free(void *context, void *decoder) {
    struct stage_decoder *d = decoder;
    (void)context;
    if (d != NULL) {
        endless_decoder_free(d->decoder);
        device_free(d->logits);
        llama2_device_free(&d->weights);
        gpt_neox_device_free(&d->gpt_neox);
        free(d->layers);
        free(d);
    }
}

static enum status fill(struct stage_decoder *d, const struct llama2_decoder_model *model,
                        struct error *error) {
    const struct llama2_config *c = model->config;
    d->V = c->V;
    d->layers = calloc(c->L, sizeof *d->layers);
    if (d->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    TRY(llama2_device_load(&d->weights, model, NULL, error));
    for (size_t l = 0; l < c->L; l++) {
        d->layers[l] = layer_of(&d->weights.layers[l]);
    }
    TRY(device_alloc((void **)&d->logits, c->V * sizeof *d->logits, error));
    const struct endless_model made = model_of(c, &d->weights, d->layers);
    const struct endless_functions functions = functions_of_lab();
    return endless_decoder_create(&d->decoder, &made, &functions, error);
}

static enum status stage_decoder_create(void *context, const struct llama2_decoder_model *model,
                                        void **decoder, struct error *error) {
    *decoder = NULL;
    if (!takes(model->config)) {
        return STATUS_OK;
    }
    struct stage_decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    enum status status = fill(d, model, error);
    if (status != STATUS_OK) {
        stage_decoder_free(context, d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

/* ---- GPT-NeoX ---- */

static struct endless_layer neox_layer_of(const struct gpt_neox_device_layer *w) {
    return (struct endless_layer){.norms = {w->attention_norm, w->ffn_norm},
                                  .norm_biases = {w->attention_norm_bias, w->ffn_norm_bias},
                                  .qkv = w->qkv,
                                  .out = w->out,
                                  .up = w->up,
                                  .down = w->down,
                                  .qkv_bias = w->qkv_bias,
                                  .out_bias = w->out_bias,
                                  .up_bias = w->up_bias,
                                  .down_bias = w->down_bias};
}

static struct endless_model neox_model_of(const struct gpt_neox_config *c,
                                          const struct gpt_neox_device *weights,
                                          const struct endless_layer *layers) {
    return (struct endless_model){.C = c->C,
                                  .hidden = c->hidden,
                                  .L = c->L,
                                  .NH = c->NH,
                                  .KVH = c->NH,
                                  .HS = c->HS,
                                  .V = c->V,
                                  .rotary = c->rotary,
                                  .sinks = c->sinks,
                                  .window = c->recent > 0 ? c->recent : c->T,
                                  .layernorm = true,
                                  .parallel = c->parallel,
                                  .activation = c->activation,
                                  .eps = c->norm_eps,
                                  .theta = c->rope_theta,
                                  .layout = NN_ROPE_HALVES,
                                  .dtype = weights->dtype,
                                  .embedding = weights->embedding,
                                  .layers = layers,
                                  .final_norm = weights->final_norm,
                                  .final_norm_bias = weights->final_norm_bias,
                                  .classifier = weights->classifier};
}

static enum status fill_neox(struct stage_decoder *d, const struct gpt_neox_decoder_model *model,
                             struct error *error) {
    const struct gpt_neox_config *c = model->config;
    d->V = c->V;
    d->layers = calloc(c->L, sizeof *d->layers);
    if (d->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    TRY(gpt_neox_device_load(&d->gpt_neox, model, NULL, error));
    for (size_t l = 0; l < c->L; l++) {
        d->layers[l] = neox_layer_of(&d->gpt_neox.layers[l]);
    }
    TRY(device_alloc((void **)&d->logits, c->V * sizeof *d->logits, error));
    const struct endless_model made = neox_model_of(c, &d->gpt_neox, d->layers);
    const struct endless_functions functions = functions_of_lab();
    return endless_decoder_create(&d->decoder, &made, &functions, error);
}

static enum status neox_decoder_create(void *context, const struct gpt_neox_decoder_model *model,
                                       void **decoder, struct error *error) {
    const struct gpt_neox_config *c = model->config;
    *decoder = NULL;
    if (c->HS > ENDLESS_MAX_HS || c->C > ENDLESS_MAX_C || c->NH * c->T > ENDLESS_MAX_SCORES) {
        return STATUS_OK;
    }
    struct stage_decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    enum status status = fill_neox(d, model, error);
    if (status != STATUS_OK) {
        stage_decoder_free(context, d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

/* ---- Tokens ---- */

static enum status stage_decoder_run(void *context, void *decoder,
                                     const struct llama2_decoder_call *call) {
    struct stage_decoder *d = decoder;
    (void)context;
    for (size_t i = 0; i < call->count; i++) {
        bool wanted = i + 1 == call->count && call->logits != NULL;
        TRY(endless_decoder_feed(d->decoder, call->tokens[i], call->position + i,
                                 wanted ? d->logits : NULL, NULL));
    }
    return call->logits == NULL ? STATUS_OK
                                : device_read(call->logits, d->logits, d->V * sizeof *d->logits,
                                              endless_decoder_stream(d->decoder), NULL);
}

enum status engine_endless_create(struct engine *engine, struct error *error) {
    struct engine base;
    *engine = (struct engine){0};
    TRY(engine_attention_create(&base, error));
    const int nothing = 0;
    TRY(engine_layer_create_copy(engine, "14_endless_text", &base, &nothing, sizeof nothing, NULL,
                                 error));
    engine->decoder_create = stage_decoder_create;
    engine->gpt_neox_decoder_create = neox_decoder_create;
    engine->decoder_run = stage_decoder_run;
    engine->decoder_free = stage_decoder_free;
    return STATUS_OK;
}
