/* Lab 10: functions that run in the worker. */
#include "grader/isolation/worker.h"
#include "grader/10_llama2_decoder/calls.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/models.h"
#include "labs/10_llama2_decoder/given/engine.h"

static enum status create(void *arguments, struct error *error) {
    struct decoder_create_call *c = arguments;
    return decoder_create(&c->decoder, c->model, &c->io, c->batch, c->stream, error);
}

static enum status prefill(void *arguments, struct error *error) {
    const struct decoder_prefill_call *c = arguments;
    return decoder_prefill(c->decoder, c->tokens, c->count, c->position, error);
}

static enum status steps(void *arguments, struct error *error) {
    return decoder_start_steps(arguments, decoder_step, error);
}

static enum status release(void *arguments, struct error *error) {
    const struct decoder_free_call *c = arguments;
    (void)error;
    decoder_free(c->decoder);
    return STATUS_OK;
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    return engine_decoder_create(engine, error);
}

static const struct worker_entry entries[] = {
    {"decoder_create", sizeof(struct decoder_create_call), create},
    {"decoder_prefill", sizeof(struct decoder_prefill_call), prefill},
    {"decoder_steps", sizeof(struct decoder_steps_call), steps},
    {"decoder_free", sizeof(struct decoder_free_call), release},
    WORKER_LLAMA2_LOGITS,
    WORKER_DECODING,
    {0}};

const struct worker worker = {entries, &worker_device};
