#include "common/checkpoints/bert/bert_random.h"
#include "grader/isolation/given_weights.h"
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

static enum status no_matmul(void *context, float *out, const float *in, const float *weight,
                             size_t M, size_t N, size_t K) {
    (void)context, (void)out, (void)in, (void)weight, (void)M, (void)N, (void)K;
    return STATUS_OK;
}

static enum status no_layernorm(void *context, float *out, const float *in, const float *weight,
                                const float *bias, size_t rows, size_t C, float eps) {
    (void)context, (void)out, (void)in, (void)weight, (void)bias, (void)rows, (void)C, (void)eps;
    return STATUS_OK;
}

static enum status no_attention(void *context, float *out, const struct nn_attention *a) {
    (void)context, (void)out, (void)a;
    return STATUS_OK;
}

static enum status no_attention_packed(void *context, float *out, const struct nn_attention *a,
                                       const int32_t *starts, const int32_t *host_starts) {
    (void)context, (void)out, (void)a, (void)starts, (void)host_starts;
    return STATUS_OK;
}

/* Operators do nothing; fused ones that would do their work fall back to single ones. */
static void leave_out(struct engine *engine, unsigned without) {
    if (without & WORKER_NO_MATMUL) {
        engine->matmul = no_matmul;
    }
    if (without & WORKER_NO_NORMS) {
        engine->layernorm = no_layernorm;
    }
    if (without & WORKER_NO_ATTENTION) {
        engine->attention = no_attention;
        engine->attention_packed = no_attention_packed;
    }
}

static enum status fill(void *memory, const void *call, struct error *error) {
    struct model *model = memory;
    const struct bert_create_call *c = call;
    TRY(worker_engine_create(&model->engine, error));
    leave_out(&model->engine, c->without);
    TRY(bert_random_create(&model->random, &c->config, c->seed));
    given_weights_begin(&model->engine, c->given);
    enum status status = bert_create(&model->bert, &model->random.config, &model->random.weights,
                                     &model->engine, c->rows, error);
    given_weights_end(&model->engine);
    return status;
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
