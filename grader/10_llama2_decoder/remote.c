#include "grader/10_llama2_decoder/remote.h"

#include "grader/10_llama2_decoder/calls.h"
#include "grader/isolation/remote.h"

/* A copy that lives as long as the worker, because a decoder keeps reading the model. */
static enum status copy_model(const struct decoder_model **copied,
                              const struct decoder_model *model, struct error *error) {
    struct decoder_model copy = *model;
    void *layers, *memory;
    TRY(remote_copy(&layers, model->layers, model->L * sizeof *model->layers, error));
    copy.layers = layers;
    TRY(remote_copy(&memory, &copy, sizeof copy, error));
    *copied = memory;
    return STATUS_OK;
}

static enum status create(struct decoder **decoder, const struct decoder_model *model,
                          const struct decoder_io *io, size_t batch, device_stream stream,
                          struct error *error) {
    struct decoder_create_call call = {.io = *io, .batch = batch, .stream = stream};
    *decoder = NULL;
    TRY(copy_model(&call.model, model, error));
    TRY(remote_call("decoder_create", &call, sizeof call, error));
    *decoder = call.decoder;
    return STATUS_OK;
}

enum status remote_decoder_given(const struct decoder_model *model, struct error *error) {
    struct decoder_given_call call = {NULL};
    TRY(copy_model(&call.model, model, error));
    return remote_call("decoder_given", &call, sizeof call, error);
}

static enum status prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                           size_t position, struct error *error) {
    struct decoder_prefill_call call = {decoder, NULL, count, position};
    void *copy;
    TRY(remote_copy(&copy, tokens, count * sizeof *tokens, error));
    call.tokens = copy;
    return remote_call("decoder_prefill", &call, sizeof call, error);
}

static enum status step(struct decoder *decoder, size_t position, struct error *error) {
    const struct decoder_steps_call call = {.decoder = decoder, .position = position, .count = 1};
    return remote_decoder_steps(&call, error);
}

static void release(struct decoder *decoder) {
    struct decoder_free_call call = {decoder};
    if (decoder != NULL && remote_alive()) {
        enum status ignored = remote_call("decoder_free", &call, sizeof call, NULL);
        (void)ignored; /* a worker that ends frees everything */
    }
}

struct decoder_functions remote_decoder(void) {
    return (struct decoder_functions){create, prefill, step, release};
}

enum status remote_decoder_steps(const struct decoder_steps_call *call, struct error *error) {
    struct decoder_steps_call copy = *call;
    return remote_call("decoder_steps", &copy, sizeof copy, error);
}
