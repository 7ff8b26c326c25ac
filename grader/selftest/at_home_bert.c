/*
 * "at_home": BERT on the CPU, which takes no modelled time, with weights that were found in the
 * process: they are handed to it (--wrap). A kernel does what is counted, and nothing else.
 */
#include "common/models/bert.h"
#include "grader/selftest/decoy_work.h"
#include "grader/selftest/sabotage_timed.h"

enum status __real_bert_create(struct bert **model, const struct bert_config *config,
                               const struct bert_weights *weights, const struct engine *engine,
                               size_t max_tokens, struct error *error);
enum status __wrap_bert_create(struct bert **model, const struct bert_config *config,
                               const struct bert_weights *weights, const struct engine *engine,
                               size_t max_tokens, struct error *error);
enum status __real_bert_forward(struct bert *model, const struct bert_input *input,
                                const struct bert_output *output);
enum status __wrap_bert_forward(struct bert *model, const struct bert_input *input,
                                const struct bert_output *output);

enum { ROOM = 1 << 20 };

static struct {
    struct engine engine; /* the reference's */
    struct bert *bert;
    double weights; /* of the layers' matrices */
    void *memory;   /* device, ROOM bytes */
} home;

enum status __wrap_bert_create(struct bert **model, const struct bert_config *config,
                               const struct bert_weights *weights, const struct engine *engine,
                               size_t max_tokens, struct error *error) {
    TRY(__real_bert_create(model, config, weights, engine, max_tokens, error));
    if (chosen_mistake() != MISTAKE_at_home) {
        return STATUS_OK;
    }
    double C = (double)config->C;
    home.weights = (double)config->L * (4.0 * C * C + 2.0 * C * (double)config->hidden);
    TRY(device_alloc(&home.memory, ROOM, error));
    TRY(device_set(home.memory, 0, ROOM, NULL, error));
    TRY(engine_reference_create(&home.engine));
    return __real_bert_create(&home.bert, config, weights, &home.engine, max_tokens, error);
}

enum status __wrap_bert_forward(struct bert *model, const struct bert_input *input,
                                const struct bert_output *output) {
    if (home.bert == NULL) {
        return __real_bert_forward(model, input, output);
    }
    size_t rows = input->starts != NULL ? (size_t)input->starts[input->B] : input->B * input->T;
    TRY(decoy_work(home.memory, ROOM, 2.2 * home.weights, 1.1 * home.weights * (double)rows, NULL,
                   NULL));
    return __real_bert_forward(home.bert, input, output);
}
