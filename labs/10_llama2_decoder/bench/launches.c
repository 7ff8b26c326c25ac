/* Counts the launches of a token; a graph's launches count each. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/bench/device/device_launches.h"
#include "common/bench/models/launch_counter.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/10_llama2_decoder/bench/bench_internal.h"
#include "labs/10_llama2_decoder/given/decoder_model.h"

/* ---- A step of this lab's decoder, by itself ---- */

struct stepper {
    struct llama2_device weights;
    struct decoder_layer layers[256];
    struct decoder_model model;
    struct decoder_io io;
    struct decoder *decoder;
    device_stream stream;
    size_t position;
};

static enum status step(void *argument, device_stream stream, struct error *error) {
    struct stepper *s = argument;
    (void)stream;
    return decoder_step(s->decoder, s->position, error);
}

static enum status stepper_create(struct stepper *s, const struct bench *b, struct error *error) {
    const struct llama2_config *c = b->model.config;
    const struct llama2_decoder_model model = {c, b->model.weights, b->dtype, 1};
    const struct sampling greedy = {.state = 1};
    TRY(device_stream_create(&s->stream, error));
    TRY(llama2_device_load(&s->weights, &model, s->stream, error));
    s->model = decoder_model_of(c, &s->weights, s->layers);
    TRY(device_alloc((void **)&s->io.logits, c->V * sizeof(float), error));
    TRY(device_alloc((void **)&s->io.token, sizeof *s->io.token, error));
    TRY(device_alloc((void **)&s->io.sampling, sizeof *s->io.sampling, error));
    TRY(device_write(s->io.sampling, &greedy, sizeof greedy, s->stream, error));
    TRY(decoder_create(&s->decoder, &s->model, &s->io, 1, s->stream, error));
    TRY(decoder_prefill(s->decoder, b->tokens, 1, 0, error));
    TRY(decoder_step(s->decoder, 1, error)); /* it may make its graph now */
    s->position = 2;
    return device_synchronize(s->stream, error);
}

static void stepper_free(struct stepper *s) {
    decoder_free(s->decoder);
    llama2_device_free(&s->weights);
    device_free(s->io.logits);
    device_free(s->io.token);
    device_free(s->io.sampling);
    device_stream_destroy(s->stream);
}

static enum status count_step(struct bench *b, struct bench_result *r, struct error *error) {
    struct stepper stepper = {0};
    struct error cause = {0};
    size_t launches = 0;
    if (b->model.config->L > sizeof stepper.layers / sizeof *stepper.layers) {
        snprintf(r->no_launches, sizeof r->no_launches, "the model has too many layers");
        return STATUS_OK;
    }
    enum status status = stepper_create(&stepper, b, error);
    if (status == STATUS_OK &&
        device_count_launches_on(step, &stepper, stepper.stream, &launches, &cause) == STATUS_OK) {
        r->launches = (double)launches;
    } else {
        snprintf(r->no_launches, sizeof r->no_launches, "%.150s", cause.message);
    }
    enum status done = device_synchronize(stepper.stream, error);
    stepper_free(&stepper);
    return status != STATUS_OK ? status : done;
}

/* ---- Other stages, operator by operator ---- */

/* Runs one token, then another one whose operators are recorded. */
static enum status record_token(struct bench *b, struct llama2 *llama2, bool logits,
                                struct launch_counter *c, struct profile *profile) {
    TRY(llama2_forward(llama2, b->tokens, 1, 0, NULL));
    profile->recorder = launch_counter_recorder(c);
    enum status status = llama2_forward(llama2, b->tokens, 1, 1, logits ? b->scratch : NULL);
    profile->recorder = (struct profile_recorder){0};
    return status;
}

/* A whole decoder waits if the host asks for logits, so it is counted without the classifier. */
static enum status count_token(struct bench *b, const struct engine *engine,
                               struct launch_counter *c, struct profile *profile,
                               struct bench_result *r, struct error *error) {
    struct llama2 *llama2;
    bool whole = engine->decoder_create != NULL;
    TRY(stored_model_create_llama2(&b->model, engine, b->dtype, b->plan.prompt, &llama2, error));
    enum status status = record_token(b, llama2, !whole, c, profile);
    llama2_free(llama2);
    if (c->why[0] != '\0') {
        snprintf(r->no_launches, sizeof r->no_launches, "%.120s", c->why);
    } else if (status == STATUS_OK) {
        r->launches = (double)c->launches;
        snprintf(r->no_launches, sizeof r->no_launches, "%s",
                 whole ? "without the classifier, where it waits for the host" : "");
    }
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "counting launches of %s: %s",
                                           engine->name, error_text(&c->error, status));
}

static enum status count_profiled(struct bench *b, const struct engine *engine,
                                  struct launch_counter *c, struct bench_result *r,
                                  struct error *error) {
    struct engine profiled;
    struct profile profile;
    TRY(engine_profile_create(&profiled, engine, &profile));
    enum status status = count_token(b, &profiled, c, &profile, r, error);
    engine_destroy(&profiled);
    return status;
}

static enum status count_operators(struct bench *b, const struct engine *engine,
                                   struct bench_result *r, struct error *error) {
    struct launch_counter counter = {0};
    device_stream stream = NULL;
    /* From stage 03 on, all work is on the engine's stream. */
    TRY(engine_resident_stream(engine_resident_of(engine), &stream, error));
    TRY(kernel_times_create(&counter.times, stream, error));
    enum status status = count_profiled(b, engine, &counter, r, error);
    kernel_times_free(counter.times);
    return status;
}

enum status bench_count_launches(struct bench *b, const struct decoder_stage *stage,
                                 struct bench_result *r, struct error *error) {
    struct engine engine = {0};
    if (!stage->on_device) {
        return STATUS_OK;
    }
    if (strcmp(stage->name, "02_gpu_matmul") == 0) {
        snprintf(r->no_launches, sizeof r->no_launches,
                 "it copies and waits in every operator, so no launch is seen by itself");
        return STATUS_OK;
    }
    if (strcmp(stage->name, "10_llama2_decoder") == 0) {
        return count_step(b, r, error);
    }
    TRY(stage->create(&engine, b->options.threads, error));
    enum status status = count_operators(b, &engine, r, error);
    engine_destroy(&engine);
    return status;
}
