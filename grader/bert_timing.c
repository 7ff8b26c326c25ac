#include "grader/bert_timing.h"

#include <math.h>

#include "common/device/device.h"

enum status bert_timing_run(const struct bert_random *random, const struct engine *engine,
                            const struct bert_input *input, int calls, float *logits, double *ms,
                            struct error *error) {
    struct bert *bert;
    const struct bert_output output = {.logits = logits};
    size_t most_tokens = input->B * random->config.T;
    *ms = INFINITY;
    TRY(bert_create(&bert, &random->config, &random->weights, engine, most_tokens, error));
    enum status status = STATUS_OK;
    for (int i = 0; i < calls && status == STATUS_OK; i++) {
        double start = device_now();
        status = bert_forward(bert, input, &output);
        *ms = fmin(*ms, 1e3 * (device_now() - start));
    }
    bert_free(bert);
    return status;
}
