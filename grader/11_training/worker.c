/* Lab 11: the functions of the worker. */
#include <stdlib.h>

#include "common/train/models/train_model.h"
#include "grader/11_training/calls.h"
#include "grader/isolation/worker.h"
#include "labs/11_training/given/engine.h"

static enum status run_layernorm(void *arguments, struct error *error) {
    const struct layernorm_backward_call *c = arguments;
    return layernorm_backward(&c->problem, c->workspace, c->stream, error);
}

static enum status run_attention(void *arguments, struct error *error) {
    const struct attention_backward_call *c = arguments;
    return attention_backward(&c->problem, c->scratch, c->stream, error);
}

static enum status run_adamw(void *arguments, struct error *error) {
    const struct adamw_call *c = arguments;
    return adamw(&c->problem, c->stream, error);
}

/* A model and its engine; they end with the worker. */
struct trained {
    struct train_engine engine;
    struct train_model *model;
};

static enum status no_layernorm(const struct layernorm_backward_problem *problem, void *workspace,
                                device_stream stream, struct error *error) {
    (void)problem, (void)workspace, (void)stream, (void)error;
    return STATUS_OK;
}

static enum status no_attention(const struct attention_backward_problem *problem, void *scratch,
                                device_stream stream, struct error *error) {
    (void)problem, (void)scratch, (void)stream, (void)error;
    return STATUS_OK;
}

static enum status no_adamw(const struct adamw_problem *problem, device_stream stream,
                            struct error *error) {
    (void)problem, (void)stream, (void)error;
    return STATUS_OK;
}

static enum status create_engine(struct train_engine *engine, const struct training_create_call *c,
                                 struct error *error) {
    const struct training_functions none = {no_layernorm, no_attention, no_adamw};
    return c->without_own ? training_engine_create_with(engine, c->dtype, &none, error)
                          : training_engine_create(engine, c->dtype, error);
}

/* The engine's own functions, where the grader's next parameter lies, and what the last update was
   told to write: a worker has one model whose copy is looked at. */
static struct {
    enum status (*write)(void *context, void *resident, const void *host, size_t bytes);
    enum status (*adamw)(void *context, const struct train_adamw *adamw);
    const unsigned char *next; /* device */
    struct train_adamw last;
} own;

static enum status noted_adamw(void *context, const struct train_adamw *adamw) {
    own.last = *adamw;
    return own.adamw(context, adamw);
}

static enum status write_given(void *context, void *resident, const void *host, size_t bytes) {
    TRY(own.write(context, resident, host, bytes));
    TRY(device_copy(resident, own.next, bytes, NULL, NULL));
    own.next += bytes;
    return device_synchronize(NULL, NULL);
}

/* What is drawn is replaced on the device by the grader's parameters, if it gave any: the learner's
   code sees those alone, and they are nowhere in this process. */
static enum status draw(struct trained *trained, const struct training_create_call *c,
                        struct error *error) {
    own.write = trained->engine.write;
    own.next = c->given;
    trained->engine.write = c->given != NULL ? write_given : own.write;
    enum status status = train_model_draw(trained->model, c->seed, error);
    trained->engine.write = own.write;
    return status;
}

static enum status create(void *arguments, struct error *error) {
    struct training_create_call *c = arguments;
    struct trained *trained = calloc(1, sizeof *trained);
    if (trained == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    c->model = trained;
    TRY(create_engine(&trained->engine, c, error));
    own.adamw = c->without_own ? own.adamw : trained->engine.adamw;
    trained->engine.adamw = c->without_own ? trained->engine.adamw : noted_adamw;
    TRY(train_model_create(&trained->model, &c->config, &trained->engine, error));
    return draw(trained, c, error);
}

static enum status steps(void *arguments, struct error *error) {
    struct training_steps_call c = *(const struct training_steps_call *)arguments;
    c.model = ((struct trained *)c.model)->model;
    return training_steps(&c, error);
}

static enum status loss(void *arguments, struct error *error) {
    struct training_loss_call *c = arguments;
    const struct trained *trained = c->model;
    return train_model_take_loss(trained->model, &c->loss, &c->norm, error);
}

static enum status tensor(void *arguments, struct error *error) {
    const struct training_tensor_call *c = arguments;
    const struct trained *trained = c->model;
    size_t tensors;
    const struct train_parameter *list = train_model_parameters(trained->model, &tensors);
    if (c->index >= tensors || list[c->index].count != c->count) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "tensor %zu has not %zu elements",
                         c->index, c->count);
    }
    return train_model_read(trained->model, c->state, &list[c->index], c->values, error);
}

static enum status copy(void *arguments, struct error *error) {
    struct training_copy_call *c = arguments;
    const struct train_engine *e = &((const struct trained *)c->model)->engine;
    if (c->count < own.last.count || own.last.copy == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the last update wrote %s of %zu elements, not a copy of %zu at most",
                         own.last.copy != NULL ? "a copy" : "no copy", own.last.count, c->count);
    }
    c->count = own.last.count;
    TRY(e->read(e->context, c->weights, own.last.weights, c->count * sizeof *c->weights));
    return e->read(e->context, c->copy, own.last.copy, c->count * sizeof *c->copy);
}

static const struct worker_entry entries[] = {
    {"layernorm_backward", sizeof(struct layernorm_backward_call), run_layernorm},
    {"attention_backward", sizeof(struct attention_backward_call), run_attention},
    {"adamw", sizeof(struct adamw_call), run_adamw},
    {"training_create", sizeof(struct training_create_call), create},
    {"training_steps", sizeof(struct training_steps_call), steps},
    {"training_loss", sizeof(struct training_loss_call), loss},
    {"training_tensor", sizeof(struct training_tensor_call), tensor},
    {"training_copy", sizeof(struct training_copy_call), copy},
    {0}};

const struct worker worker = {entries, &worker_device};
