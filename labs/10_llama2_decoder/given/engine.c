/**
 * @file engine.c
 * @brief Stage 09's solved engine with lab 10's decoder: it loads weights once, feeds tokens by
 * prefill, and runs one step ahead while it writes.
 *
 * decoder_next() starts the step after its own position, and then waits for its own token alone, so
 * that the GPU does not wait for a host that prints. If the next call is another one, that step was
 * for nothing: its rows of the cache are overwritten when their position comes; the sampling's
 * state is restored; and if the next token is drawn from the logits before it, these are computed
 * again by feeding the last token again.
 */
#include "labs/10_llama2_decoder/given/engine.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/engine_layer.h"
#include "common/models/llama2_device.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/09_kv_cache/given/engine.h"
#include "labs/10_llama2_decoder/given/decoder_model.h"

struct stage {
    struct decoder_functions functions;
    struct decoder_loading loading; /* zeros: the whole model */
    struct resident *resident;      /* stage 03's */
};

/* A step's sampling and its token, contiguous, so that one copy reads both. */
struct drawn {
    struct sampling sampling;
    int32_t token;
};

/* Two steps may be in flight; a position's results go to slot position % SLOTS. */
enum { SLOTS = 2 };

/* The decoder that the engine's functions pass to each other. */
struct made {
    struct decoder_functions functions;
    struct decoder_loading loading;
    void *loaded; /* by `loading` */
    struct llama2_device weights;
    struct decoder_layer *layers; /* (L) */
    struct decoder_model model;
    size_t batch;
    device_stream stream;
    struct decoder *decoder;

    float *logits;       /* device, (V) */
    struct drawn *drawn; /* device */

    int32_t *tokens;     /* page-locked, (batch): of the current call */
    struct drawn *slots; /* page-locked, (SLOTS) */
    device_event events[SLOTS];

    struct drawn last; /* of the last step requested: its token, and the state after it */
    size_t position;   /* of that step */
    bool ahead;        /* the step after it has been started */
    bool stale;        /* io's logits are not those of the last token requested */
};

/* ---- Creation ---- */

static enum status check(cudaError_t code, struct error *error) {
    return code == cudaSuccess ? STATUS_OK
                               : error_set(error, STATUS_DEVICE, "the decoder's engine: %s",
                                           cudaGetErrorString(code));
}

static enum status allocate(struct made *m, struct error *error) {
    TRY(device_alloc((void **)&m->logits, m->model.V * sizeof(float), error));
    TRY(device_alloc((void **)&m->drawn, sizeof *m->drawn, error));
    TRY(device_set(m->drawn, 0, sizeof *m->drawn, m->stream, error)); /* padding is copied, too */
    TRY(device_alloc_host((void **)&m->tokens, m->batch * sizeof *m->tokens, error));
    TRY(device_alloc_host((void **)&m->slots, SLOTS * sizeof *m->slots, error));
    for (int i = 0; i < SLOTS; i++) {
        TRY(device_event_create(&m->events[i], error));
    }
    return STATUS_OK;
}

static enum status load(struct made *m, const struct llama2_decoder_model *model,
                        struct error *error) {
    if (m->loading.load != NULL) {
        return m->loading.load(m->loading.context, model, &m->model, &m->loaded, error);
    }
    TRY(llama2_device_load(&m->weights, model, m->stream, error));
    m->layers = calloc(model->config->L, sizeof *m->layers);
    if (m->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers",
                         model->config->L);
    }
    m->model = decoder_model_of(model->config, &m->weights, m->layers);
    return STATUS_OK;
}

static enum status fill(const struct stage *stage, struct made *m,
                        const struct llama2_decoder_model *model, struct error *error) {
    m->functions = stage->functions;
    m->loading = stage->loading;
    m->batch = model->batch;
    TRY(engine_resident_stream(stage->resident, &m->stream, error));
    TRY(load(m, model, error));
    TRY(allocate(m, error));
    const struct decoder_io io = {m->logits, &m->drawn->token, &m->drawn->sampling};
    if (m->loading.create != NULL) {
        return m->loading.create(m->loaded, &m->decoder, &m->model, &io, m->batch, m->stream,
                                 error);
    }
    return m->functions.create(&m->decoder, &m->model, &io, m->batch, m->stream, error);
}

static void stage_decoder_free(void *context, void *decoder) {
    struct made *m = decoder;
    (void)context;
    if (m == NULL) {
        return;
    }
    enum status waited = device_synchronize(m->stream, NULL);
    (void)waited; /* it frees all the same */
    m->functions.free(m->decoder);
    for (int i = 0; i < SLOTS; i++) {
        device_event_destroy(m->events[i]);
    }
    device_free(m->logits);
    device_free(m->drawn);
    device_free_host(m->tokens);
    device_free_host(m->slots);
    llama2_device_free(&m->weights);
    if (m->loaded != NULL) {
        m->loading.unload(m->loaded);
    }
    free(m->layers);
    free(m);
}

/* *decoder stays NULL for a model that the kernels do not support; it runs operator by operator. Of
   what relatives of Llama2 have they support nothing. */
static enum status stage_decoder_create(void *context, const struct llama2_decoder_model *model,
                                        void **decoder, struct error *error) {
    *decoder = NULL;
    if (model->config->HS > KV_MAX_HS || llama2_extra(model->config) != NULL) {
        return STATUS_OK;
    }
    struct made *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the decoder");
    }
    enum status status = fill(engine_layer_own(context), m, model, error);
    if (status != STATUS_OK) {
        stage_decoder_free(context, m);
        return status;
    }
    *decoder = m;
    return STATUS_OK;
}

/* ---- Drawing ---- */

/* Undoes a step that was started ahead, except its logits. */
static enum status forget_ahead(struct made *m) {
    if (!m->ahead) {
        return STATUS_OK;
    }
    m->ahead = false;
    m->stale = true;
    return device_write(&m->drawn->sampling, &m->last.sampling, sizeof m->last.sampling, m->stream,
                        NULL);
}

/*
 * Computes the logits after the last token again, by a step that draws that token greedily from
 logits that are 1 for it and 0 for all others.

 */
static enum status renew_logits(struct made *m) {
    static const float one = 1.0f;
    struct sampling now, greedy;
    TRY(device_read(&now, &m->drawn->sampling, sizeof now, m->stream, NULL));
    greedy = now;
    greedy.temperature = 0.0f;
    TRY(device_set(m->logits, 0, m->model.V * sizeof(float), m->stream, NULL));
    TRY(device_write(m->logits + m->last.token, &one, sizeof one, m->stream, NULL));
    TRY(device_write(&m->drawn->sampling, &greedy, sizeof greedy, m->stream, NULL));
    TRY(m->functions.step(m->decoder, m->position, NULL));
    m->stale = false;
    return device_write(&m->drawn->sampling, &now, sizeof now, m->stream, NULL);
}

/* Starts a step; its token, and the state after it, go to the position's slot. */
static enum status start_step(struct made *m, size_t position) {
    size_t slot = position % SLOTS;
    TRY(m->functions.step(m->decoder, position, NULL));
    TRY(check(cudaMemcpyAsync(&m->slots[slot], m->drawn, sizeof *m->drawn, cudaMemcpyDeviceToHost,
                              m->stream),
              NULL));
    return device_event_record(m->events[slot], m->stream, NULL);
}

static enum status stage_decoder_begin(void *context, void *decoder,
                                       const struct llama2_sampling *sampling) {
    struct made *m = decoder;
    (void)context;
    const struct sampling to = {
        .state = sampling->seed,
        .temperature = sampling->temperature,
        .top_p = sampling->top_p,
        .top_k = (uint32_t)(sampling->top_k < m->model.V ? sampling->top_k : m->model.V)};
    TRY(forget_ahead(m));
    return device_write(&m->drawn->sampling, &to, sizeof to, m->stream, NULL);
}

static enum status stage_decoder_next(void *context, void *decoder, size_t position,
                                      int32_t *token) {
    struct made *m = decoder;
    (void)context;
    if (!m->ahead || position != m->position + 1) {
        TRY(forget_ahead(m));
        if (m->stale) {
            TRY(renew_logits(m));
        }
        TRY(start_step(m, position));
    }
    m->ahead = position + 1 < m->model.T;
    enum status ahead = m->ahead ? start_step(m, position + 1) : STATUS_OK;
    TRY(check(cudaEventSynchronize(m->events[position % SLOTS]), NULL));
    m->last = m->slots[position % SLOTS];
    m->position = position;
    *token = m->last.token;
    /* That comes first: a step after such logits may fail itself. */
    return m->last.sampling.state == 0 ? STATUS_BAD_FORMAT : ahead;
}

/* ---- Feeding ---- */

static enum status stage_decoder_run(void *context, void *decoder,
                                     const struct llama2_decoder_call *call) {
    struct made *m = decoder;
    (void)context;
    TRY(forget_ahead(m));
    TRY(device_synchronize(m->stream, NULL)); /* the previous call no longer reads `tokens` */
    memcpy(m->tokens, call->tokens, call->count * sizeof *m->tokens);
    TRY(m->functions.prefill(m->decoder, m->tokens, call->count, call->position, NULL));
    m->stale = false;
    return call->logits == NULL
               ? STATUS_OK
               : device_read(call->logits, m->logits, m->model.V * sizeof(float), m->stream, NULL);
}

/* ---- The engine ---- */

enum status engine_decoder_create_with(struct engine *engine,
                                       const struct decoder_functions *functions,
                                       struct error *error) {
    const struct decoder_loading whole = {0};
    return engine_decoder_create_loading(engine, functions, &whole, error);
}

enum status engine_decoder_create_loading(struct engine *engine,
                                          const struct decoder_functions *functions,
                                          const struct decoder_loading *loading,
                                          struct error *error) {
    struct engine base;
    *engine = (struct engine){0};
    TRY(engine_kv_cache_create(&base, error));
    const struct stage stage = {
        .functions = *functions, .loading = *loading, .resident = engine_resident_of(&base)};
    TRY(engine_layer_create_copy(engine, "10_llama2_decoder", &base, &stage, sizeof stage, NULL,
                                 error));
    engine->decoder_create = stage_decoder_create;
    engine->decoder_run = stage_decoder_run;
    engine->decoder_free = stage_decoder_free;
    engine->decoder_begin = stage_decoder_begin;
    engine->decoder_next = stage_decoder_next;
    return STATUS_OK;
}

enum status engine_decoder_create(struct engine *engine, struct error *error) {
    static const struct decoder_functions functions = {decoder_create, decoder_prefill,
                                                       decoder_step, decoder_free};
    return engine_decoder_create_with(engine, &functions, error);
}
