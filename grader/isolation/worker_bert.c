#include "common/checkpoints/bert/bert_random.h"
#include "grader/isolation/models.h"

struct model {
    struct bert_random random;
    struct engine engine;
    struct bert *bert;
};

static void release(void *memory) {
    struct model *model = memory;
    bert_free(model->bert);
    engine_destroy(&model->engine);
    bert_random_free(&model->random);
}

static enum status fill(void *memory, const void *call, struct error *error) {
    struct model *model = memory;
    const struct bert_create_call *c = call;
    TRY(worker_engine_create(&model->engine, error));
    TRY(bert_random_create(&model->random, &c->config, c->seed));
    return bert_create(&model->bert, &model->random.config, &model->random.weights, &model->engine,
                       c->rows, error);
}

static const struct worker_model kind = {sizeof(struct model), fill, release};

enum status worker_bert_create(void *call, struct error *error) {
    struct bert_create_call *c = call;
    return worker_model_create(&kind, call, &c->model, error);
}

enum status worker_bert_run(void *call, struct error *error) {
    const struct bert_run_call *c = call;
    const struct model *model = c->model;
    const struct bert_output output = {.logits = c->logits};
    (void)error; /* the status says it */
    return bert_forward(model->bert, &c->input, &output);
}

enum status worker_bert_free(void *call, struct error *error) {
    const struct bert_run_call *c = call;
    (void)error;
    worker_model_free(&kind, c->model);
    return STATUS_OK;
}
