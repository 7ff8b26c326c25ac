/* Lab 08: functions that run in the worker. */
#include <stdlib.h>
#include <string.h>

#include "grader/08_bert_classifier/calls.h"
#include "grader/isolation/models.h"
#include "grader/isolation/worker.h"
#include "labs/08_bert_classifier/given/engine.h"

static enum status create(void *arguments, struct error *error) {
    struct encoder_create_call *c = arguments;
    return encoder_create(&c->encoder, c->model, c->max_tokens, c->stream, error);
}

/* *list = a copy of it in page-locked memory, where the model's batches lie, too. */
static enum status pin(const int32_t **list, size_t count, struct error *error) {
    void *pinned = NULL;
    if (*list == NULL) {
        return STATUS_OK;
    }
    TRY(device_alloc_host(&pinned, count * sizeof **list, error));
    memcpy(pinned, *list, count * sizeof **list);
    *list = pinned;
    return STATUS_OK;
}

/* Nobody frees it: a worker has few, and ends soon. */
static enum status make_batch(void *arguments, struct error *error) {
    struct encoder_batch_call *c = arguments;
    struct encoder_batch *made = malloc(sizeof *made);
    if (made == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a batch");
    }
    *made = c->batch;
    c->made = made;
    TRY(pin(&made->ids, made->rows, error));
    TRY(pin(&made->types, made->rows, error));
    return pin(&made->starts, made->B + 1, error);
}

static enum status run(void *arguments, struct error *error) {
    const struct encoder_run_call *c = arguments;
    return encoder_run(c->encoder, c->batch, error);
}

static enum status discard(void *arguments, struct error *error) {
    const struct encoder_run_call *c = arguments;
    (void)error;
    encoder_free(c->encoder);
    return STATUS_OK;
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_encoder_create(engine, error);
}

static const struct worker_entry entries[] = {
    {"encoder_create", sizeof(struct encoder_create_call), create},
    {"encoder_batch", sizeof(struct encoder_batch_call), make_batch},
    {"encoder_run", sizeof(struct encoder_run_call), run},
    {"encoder_free", sizeof(struct encoder_run_call), discard},
    WORKER_BERT,
    {0}};

const struct worker worker = {entries, &worker_device};
