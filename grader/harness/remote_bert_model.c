/* A BERT in the worker: made, run and freed. */
#include <math.h>
#include <string.h>

#include "common/checkpoints/bert/bert_random.h"
#include "common/device/device.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/secret_weights.h"
#include "grader/isolation/link.h"
#include "grader/isolation/models.h"

/* A BERT to be made: its weights, and most rows of a batch. */
struct bert_plan {
    struct bert_random random;
    size_t rows;
};

static enum status create_bert_on(const struct engine *engine, const void *model) {
    const struct bert_plan *plan = model;
    struct bert *bert;
    TRY(bert_create(&bert, &plan->random.config, &plan->random.weights, engine, plan->rows, NULL));
    bert_free(bert);
    return STATUS_OK;
}

/* Has the worker make the model on weights that it cannot see. */
static enum status create_secret_bert(struct bert_create_call *call, struct error *error) {
    struct bert_plan plan = {.rows = call->rows};
    void *given = NULL;
    enum status status = bert_random_create(&plan.random, &call->config, call->seed);
    if (status == STATUS_OK) {
        status = secret_weights_write(create_bert_on, &plan, &given, error);
    }
    bert_random_free(&plan.random);
    call->seed = SECRET_WEIGHTS_OTHERS;
    call->given = given;
    status = status == STATUS_OK ? remote_call("bert_create", call, sizeof *call, error) : status;
    device_free(given);
    return status;
}

enum status remote_bert_create(struct remote_bert *bert, const struct bert_config *config,
                               uint64_t seed, const struct bert_input *input, size_t rows,
                               unsigned without, bool secret, struct error *error) {
    struct bert_create_call call = {
        .config = *config, .seed = seed, .rows = rows, .without = without};
    size_t tokens = input->starts != NULL ? (size_t)input->starts[input->B] : input->B * input->T;
    void *ids, *starts = NULL, *mask = NULL, *logits;
    *bert = (struct remote_bert){.count = input->B * config->labels};
    TRY(remote_copy(&ids, input->ids, tokens * sizeof *input->ids, error));
    if (input->starts != NULL) {
        TRY(remote_copy(&starts, input->starts, (input->B + 1) * sizeof *input->starts, error));
    }
    if (input->mask != NULL) {
        TRY(remote_copy(&mask, input->mask, tokens, error));
    }
    TRY(remote_alloc(&logits, bert->count * sizeof(float), error));
    TRY(secret && remote_has_device() ? create_secret_bert(&call, error)
                                      : remote_call("bert_create", &call, sizeof call, error));
    bert->model = call.model;
    bert->logits = logits;
    bert->input = (struct bert_input){
        .ids = ids, .mask = mask, .B = input->B, .T = input->T, .starts = starts};
    return STATUS_OK;
}

enum status remote_bert_run(struct remote_bert *bert, float *logits, double *ms,
                            struct error *error) {
    struct bert_run_call call = {bert->model, bert->input, bert->logits};
    for (size_t i = 0; i < bert->count; i++) {
        bert->logits[i] = NAN;
    }
    TRY(remote_call_timed("bert_run", &call, sizeof call, NULL, ms, error));
    memcpy(logits, bert->logits, bert->count * sizeof *logits);
    return STATUS_OK;
}

void remote_bert_free(struct remote_bert *bert) {
    struct bert_run_call call = {.model = bert->model};
    if (bert->model != NULL && remote_alive()) {
        enum status ignored = remote_call("bert_free", &call, sizeof call, NULL);
        (void)ignored;
    }
    *bert = (struct remote_bert){0};
}
