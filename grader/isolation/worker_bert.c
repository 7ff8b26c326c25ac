#include <stdlib.h>

#include "common/checkpoints/bert/bert_random.h"
#include "grader/isolation/models.h"

struct model {
    struct bert_random random;
    struct engine engine;
    struct bert *bert;
};

static void model_free(struct model *model) {
    bert_free(model->bert);
    engine_destroy(&model->engine);
    bert_random_free(&model->random);
    free(model);
}

static enum status model_create(struct model *model, const struct bert_create_call *c,
                                struct error *error) {
    TRY(worker_engine_create(&model->engine, error));
    TRY(bert_random_create(&model->random, &c->config, c->seed));
    return bert_create(&model->bert, &model->random.config, &model->random.weights, &model->engine,
                       c->rows, error);
}

enum status worker_bert_create(void *call, struct error *error) {
    struct bert_create_call *c = call;
    struct model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the model");
    }
    enum status status = model_create(model, c, error);
    if (status != STATUS_OK) {
        model_free(model);
        return status;
    }
    c->model = model;
    return STATUS_OK;
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
    model_free(c->model);
    return STATUS_OK;
}
