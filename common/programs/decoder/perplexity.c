#include "common/programs/decoder/perplexity.h"

#include <math.h>

#include "common/base/terminal.h"
#include "common/programs/interrupt.h"
#include "common/tokenizers/bpe/bpe.h"

double perplexity_nats(const float *logits, size_t V, int32_t token) {
    double largest = (double)logits[0];
    for (size_t i = 1; i < V; i++) {
        largest = fmax(largest, (double)logits[i]);
    }
    double sum = 0.0;
    for (size_t i = 0; i < V; i++) {
        sum += exp((double)logits[i] - largest);
    }
    return log(sum) - ((double)logits[token] - largest);
}

static enum status add_token(struct perplexity *sum, struct llama2 *model, int32_t before,
                             int32_t token, size_t position, float *logits, struct error *error) {
    enum status status = llama2_forward(model, &before, 1, position, logits);
    if (status != STATUS_OK) {
        return error_set(error, status, "the model failed at token %zu: %s", sum->tokens,
                         status_message(status));
    }
    double nats = perplexity_nats(logits, llama2_config(model)->V, token);
    if (!isfinite(nats)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "the model's logits for token %zu are not finite", sum->tokens);
    }
    sum->nats += nats;
    sum->tokens++;
    return STATUS_OK;
}

enum status perplexity_add(struct perplexity *sum, struct llama2 *model, const int32_t *tokens,
                           size_t count, size_t window, float *logits, struct error *error) {
    struct progress progress = progress_create("tokens", count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        size_t position = i % window;
        sum->windows += position == 0 ? 1 : 0;
        status = interrupt_seen() != 0
                     ? STATUS_INTERRUPTED
                     : add_token(sum, model, position == 0 ? BPE_BOS : tokens[i - 1], tokens[i],
                                 position, logits, error);
        progress_update(&progress, i + 1);
    }
    progress_finish(&progress);
    return status;
}
