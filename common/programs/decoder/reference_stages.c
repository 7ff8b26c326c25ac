#include "common/programs/decoder/reference_stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/models/llama2.h"
#include "common/models/sampler.h"

/* ---- Slow operators ---- */

/* Sleeps; a signal does not shorten the pause. */
static void pause_for(time_t seconds, long nanoseconds) {
    struct timespec left = {.tv_sec = seconds, .tv_nsec = nanoseconds};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static enum status slow_matmul(void *context, float *out, const float *in, const float *weight,
                               size_t M, size_t N, size_t K) {
    (void)context;
    pause_for(0, 1000000);
    nn_matmul(out, in, weight, M, N, K);
    return STATUS_OK;
}

static enum status stuck_matmul(void *context, float *out, const float *in, const float *weight,
                                size_t M, size_t N, size_t K) {
    (void)context;
    pause_for(60, 0);
    nn_matmul(out, in, weight, M, N, K);
    return STATUS_OK;
}

/* ---- A decoder ---- */

struct decoder {
    struct engine engine; /* the reference */
    struct llama2_config config;
    struct llama2_weights weights;
    float *values; /* all weights, one tensor after the other */
    size_t used;
    enum nn_dtype dtype;
    struct llama2 *model;
    struct sampler sampler;
    float *logits, *scratch; /* (V): after the last token fed; a copy for the sampler */
};

static enum status count_values(void *context, const struct decoder_weight *tensor) {
    *(size_t *)context += tensor->stored->rows * tensor->stored->columns;
    return STATUS_OK;
}

/* Converts a tensor to fp32; matrices are first rounded to the decoder's dtype. */
static enum status take_tensor(void *context, const struct decoder_weight *tensor) {
    struct decoder *d = context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    size_t count = stored->rows * stored->columns;
    float *values = d->values + d->used;
    nn_dtype_load(values, stored->data, count, stored->dtype);
    if (tensor->rank == 2 && d->dtype != NN_F32) {
        void *rounded = malloc(count * nn_dtype_bytes(d->dtype));
        if (rounded == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        nn_dtype_store(rounded, values, count, d->dtype);
        nn_dtype_load(values, rounded, count, d->dtype);
        free(rounded);
    }
    d->used += count;
    *tensor->plain[0] = values;
    return STATUS_OK;
}

static enum status take_weights(struct decoder *d, const struct llama2_stored_weights *weights) {
    struct llama2_stored_weights source = *weights;
    bool shared = source.classifier.data == source.embedding.data;
    size_t count = 0;
    TRY(llama2_tensors_visit(&d->config, shared, &source, NULL, count_values, &count));
    d->values = calloc(count, sizeof *d->values);
    d->weights.layers = calloc(d->config.L, sizeof *d->weights.layers);
    d->logits = calloc(d->config.V, sizeof *d->logits);
    d->scratch = calloc(d->config.V, sizeof *d->scratch);
    if (d->values == NULL || d->weights.layers == NULL || d->logits == NULL || d->scratch == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(llama2_tensors_visit(&d->config, shared, &source, &d->weights, take_tensor, d));
    if (shared) {
        d->weights.classifier = d->weights.embedding;
    }
    return STATUS_OK;
}

static void decoder_free(void *context, void *decoder) {
    struct decoder *d = decoder;
    (void)context;
    if (d == NULL) {
        return;
    }
    sampler_free(&d->sampler);
    llama2_free(d->model);
    engine_destroy(&d->engine);
    free(d->scratch);
    free(d->logits);
    free(d->weights.layers);
    free(d->values);
    free(d);
}

static enum status fill_decoder(struct decoder *d, const struct llama2_decoder_model *model,
                                struct error *error) {
    TRY(take_weights(d, model->weights));
    TRY(engine_reference_create(&d->engine));
    return llama2_create(&d->model, &d->config, &d->weights, &d->engine, model->batch, error);
}

static enum status decoder_create(void *context, const struct llama2_decoder_model *model,
                                  void **decoder, struct error *error) {
    *decoder = NULL;
    if (model->config->HS == 2) {
        return STATUS_OK;
    }
    struct decoder *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    d->config = *model->config;
    d->dtype = model->dtype;
    enum status status = fill_decoder(d, model, error);
    if (status != STATUS_OK) {
        decoder_free(context, d);
        return status;
    }
    *decoder = d;
    return STATUS_OK;
}

static enum status decoder_run(void *context, void *decoder,
                               const struct llama2_decoder_call *call) {
    struct decoder *d = decoder;
    (void)context;
    TRY(llama2_forward(d->model, call->tokens, call->count, call->position, d->logits));
    if (call->logits != NULL) {
        memcpy(call->logits, d->logits, d->config.V * sizeof(float));
    }
    return STATUS_OK;
}

static enum status decoder_begin(void *context, void *decoder,
                                 const struct llama2_sampling *sampling) {
    struct decoder *d = decoder;
    (void)context;
    sampler_free(&d->sampler);
    return sampler_create(&d->sampler, d->config.V, sampling);
}

static enum status decoder_next(void *context, void *decoder, size_t position, int32_t *token) {
    struct decoder *d = decoder;
    (void)context;
    memcpy(d->scratch, d->logits, d->config.V * sizeof(float));
    *token = sampler_next(&d->sampler, d->scratch);
    TRY(d->sampler.state == 0 ? STATUS_BAD_FORMAT : STATUS_OK);
    return llama2_forward(d->model, token, 1, position, d->logits);
}

enum status engine_drawing_create(struct engine *engine) {
    TRY(engine_reference_create(engine));
    engine->name = "03_drawing";
    engine->decoder_create = decoder_create;
    engine->decoder_run = decoder_run;
    engine->decoder_free = decoder_free;
    engine->decoder_begin = decoder_begin;
    engine->decoder_next = decoder_next;
    return STATUS_OK;
}

/* ---- The table ---- */

static enum status create_reference(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    enum status status = engine_reference_create(engine);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

static enum status create_slow(struct engine *engine, int threads, struct error *error) {
    TRY(create_reference(engine, threads, error));
    engine->matmul = slow_matmul;
    return STATUS_OK;
}

static enum status create_stuck(struct engine *engine, int threads, struct error *error) {
    TRY(create_reference(engine, threads, error));
    engine->matmul = stuck_matmul;
    return STATUS_OK;
}

static enum status create_drawing(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    enum status status = engine_drawing_create(engine);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

static const struct decoder_stage table[] = {
    {"01_stuck", false, create_stuck},
    {"02_slow", false, create_slow},
    {"03_drawing", false, create_drawing},
    {"04_reference", false, create_reference},
};

static const struct decoder_stages stages = {.table = table, .count = sizeof table / sizeof *table};

const struct decoder_stages *reference_stages(void) {
    return &stages;
}
