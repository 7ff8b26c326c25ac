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

/* What "decoder_given" said last; NULL: the engine's own weights. */
static const struct decoder_model *given;

static enum status take_given(void *arguments, struct error *error) {
    const struct decoder_given_call *c = arguments;
    (void)error;
    given = c->model;
    return STATUS_OK;
}

static enum status create_on_given(struct decoder **decoder, const struct decoder_model *model,
                                   const struct decoder_io *io, size_t batch, device_stream stream,
                                   struct error *error) {
    return decoder_create(decoder, given != NULL ? given : model, io, batch, stream, error);
}

enum status worker_engine_create(struct engine *engine, struct error *error) {
    static const struct decoder_functions functions = {create_on_given, decoder_prefill,
                                                       decoder_step, decoder_free};
    return engine_decoder_create_with(engine, &functions, error);
}

static const struct worker_entry entries[] = {
    {"decoder_create", sizeof(struct decoder_create_call), create},
    {"decoder_given", sizeof(struct decoder_given_call), take_given},
    {"decoder_prefill", sizeof(struct decoder_prefill_call), prefill},
    {"decoder_steps", sizeof(struct decoder_steps_call), steps},
    {"decoder_free", sizeof(struct decoder_free_call), release},
    WORKER_LLAMA2_LOGITS,
    WORKER_DECODING,
    {0}};

const struct worker worker = {entries, &worker_device};
