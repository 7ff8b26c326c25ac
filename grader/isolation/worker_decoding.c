#include <stdlib.h>

#include "common/models/rounded_llama2.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/models.h"

struct decoding {
    struct rounded_llama2 weights;
    struct engine engine;
    struct llama2 *llama2;
};

static void decoding_free(struct decoding *d) {
    llama2_free(d->llama2);
    engine_destroy(&d->engine);
    rounded_llama2_free(&d->weights);
    free(d);
}

static enum status fill(struct decoding *d, const struct decoding_create_call *c,
                        struct error *error) {
    TRY(worker_engine_create(&d->engine, error));
    TRY(rounded_llama2_create(&d->weights, &c->config, c->dtype, c->own_classifier, c->seed));
    return llama2_create_stored(&d->llama2, &d->weights.random.config, &d->weights.stored, c->dtype,
                                &d->engine, c->batch, error);
}

enum status worker_decoding_create(void *call, struct error *error) {
    struct decoding_create_call *c = call;
    struct decoding *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    enum status status = fill(d, c, error);
    if (status != STATUS_OK) {
        decoding_free(d);
        return status;
    }
    c->model = d;
    return STATUS_OK;
}

enum status worker_decoding_text(void *call, struct error *error) {
    const struct decoding_text_call *c = call;
    struct decoding *d = c->model;
    (void)error; /* the status says it */
    for (size_t i = 0; i < c->count; i++) {
        TRY(llama2_forward(d->llama2, c->tokens + i, 1, c->position + i, c->logits));
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
    decoding_free(c->model);
    return STATUS_OK;
}
