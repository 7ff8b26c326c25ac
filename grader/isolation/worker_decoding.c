#include "common/models/rounded_llama2.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/models.h"

struct decoding {
    struct rounded_llama2 weights;
    struct engine engine;
    struct llama2 *llama2;
};

static void release(void *memory) {
    struct decoding *d = memory;
    llama2_free(d->llama2);
    engine_destroy(&d->engine);
    rounded_llama2_free(&d->weights);
}

static enum status fill(void *memory, const void *call, struct error *error) {
    struct decoding *d = memory;
    const struct decoding_create_call *c = call;
    TRY(worker_engine_create(&d->engine, error));
    TRY(rounded_llama2_create(&d->weights, &c->config, c->dtype, c->own_classifier, c->seed));
    return llama2_create_stored(&d->llama2, &d->weights.random.config, &d->weights.stored, c->dtype,
                                &d->engine, c->batch, error);
}

static const struct worker_model kind = {sizeof(struct decoding), fill, release};

enum status worker_decoding_create(void *call, struct error *error) {
    struct decoding_create_call *c = call;
    return worker_model_create(&kind, call, &c->model, error);
}

enum status worker_decoding_text(void *call, struct error *error) {
    const struct decoding_text_call *c = call;
    struct decoding *d = c->model;
    (void)error; /* the status says it */
    for (size_t i = 0; i < c->count; i++) {
        TRY(llama2_forward(d->llama2, c->tokens + i, 1, c->position + i, c->logits + i * c->each));
    }
    return STATUS_OK;
}

enum status worker_decoding_write(void *call, struct error *error) {
    const struct decoding_write_call *c = call;
    struct decoding *d = c->model;
    (void)error; /* the status says it */
    TRY(llama2_forward(d->llama2, c->prompt, c->length, 0, NULL));
    TRY(llama2_begin(d->llama2, &c->sampling));
    for (size_t i = 0; i < c->count; i++) {
        TRY(llama2_next(d->llama2, c->length + i, &c->written[i]));
    }
    return STATUS_OK;
}

enum status worker_decoding_free(void *call, struct error *error) {
    const struct decoding_text_call *c = call;
    (void)error;
    worker_model_free(&kind, c->model);
    return STATUS_OK;
}
