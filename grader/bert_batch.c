#include "grader/bert_batch.h"

#include <math.h>

#include "common/device/device.h"

static enum status create(struct bert **bert, const struct bert_random *random,
                          const struct engine *engine, const struct bert_input *input,
                          struct error *error) {
    return bert_create(bert, &random->config, &random->weights, engine, input->B * random->config.T,
                       error);
}

enum status bert_batch_run(const struct bert_random *random, const struct engine *engine,
                           const struct bert_input *input, float *logits, struct error *error) {
    struct bert *bert;
    const struct bert_output output = {.logits = logits};
    TRY(create(&bert, random, engine, input, error));
    enum status status = bert_forward(bert, input, &output);
    bert_free(bert);
    return status;
}

enum status bert_batch_time(const struct bert_random *random, const struct engine *engine,
                            const struct bert_input *input, int calls, float *logits, double *ms,
                            struct error *error) {
    struct bert *bert;
    const struct bert_output output = {.logits = logits};
    *ms = INFINITY;
    TRY(create(&bert, random, engine, input, error));
    enum status status = STATUS_OK;
    for (int i = 0; i < calls && status == STATUS_OK; i++) {
        double start = device_now();
        status = bert_forward(bert, input, &output);
        *ms = fmin(*ms, 1e3 * (device_now() - start));
    }
    bert_free(bert);
    return status;
}
