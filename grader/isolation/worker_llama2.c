#include "common/models/llama2_random.h"
#include "grader/isolation/models.h"

/* The prompt at once, then token by token; the logits of the last one remain. */
static enum status feed(struct llama2 *llama2, const struct llama2_logits_call *c) {
    TRY(llama2_forward(llama2, c->tokens, c->prompt, 0, NULL));
    for (size_t i = c->prompt; i < c->count; i++) {
        TRY(llama2_forward(llama2, c->tokens + i, 1, i, c->logits));
    }
    return STATUS_OK;
}

static enum status decode(const struct llama2_logits_call *c, const struct engine *engine,
                          const struct llama2_random *model) {
    struct llama2 *llama2;
    TRY(llama2_create(&llama2, &model->config, &model->weights, engine, c->prompt, NULL));
    enum status status = feed(llama2, c);
    llama2_free(llama2);
    return status;
}

enum status worker_llama2_logits(void *call, struct error *error) {
    const struct llama2_logits_call *c = call;
    struct llama2_random model = {0};
    struct engine engine;
    TRY(worker_engine_create(&engine, error));
    enum status status = llama2_random_create(&model, &c->config, c->seed);
    if (status == STATUS_OK) {
        status = decode(c, &engine, &model);
    }
    engine_destroy(&engine);
    llama2_random_free(&model);
    return status;
}

struct model {
    struct llama2_random random;
    struct engine own;
    const struct engine *engine; /* its own, or another model's */
    struct llama2 *llama2;
};

static void release(void *memory) {
    struct model *model = memory;
    llama2_free(model->llama2);
    engine_destroy(&model->own);
    llama2_random_free(&model->random);
}

static enum status find_engine(struct model *model, const struct model *beside,
                               struct error *error) {
    if (beside != NULL) {
        model->engine = beside->engine;
        return STATUS_OK;
    }
    model->engine = &model->own;
    return worker_engine_create(&model->own, error);
}

static enum status fill(void *memory, const void *call, struct error *error) {
    struct model *model = memory;
    const struct llama2_create_call *c = call;
    TRY(find_engine(model, c->beside, error));
    TRY(llama2_random_create(&model->random, &c->config, c->seed));
    return llama2_create(&model->llama2, &model->random.config, &model->random.weights,
                         model->engine, c->batch, error);
}

static const struct worker_model kind = {sizeof(struct model), fill, release};

enum status worker_llama2_create(void *call, struct error *error) {
    struct llama2_create_call *c = call;
    return worker_model_create(&kind, call, &c->model, error);
}

enum status worker_llama2_forward(void *call, struct error *error) {
    const struct llama2_forward_call *c = call;
    const struct model *model = c->model;
    (void)error; /* the status says it */
    return llama2_forward(model->llama2, c->tokens, c->count, c->position, c->logits);
}

enum status worker_llama2_free(void *call, struct error *error) {
    const struct llama2_forward_call *c = call;
    (void)error;
    worker_model_free(&kind, c->model);
    return STATUS_OK;
}
