#include "common/train/program/train_evaluate.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/terminal.h"
#include "common/programs/program.h"

/* @return number of texts with the right answer; of equal logits the first class counts */
static size_t count_right(const struct train_batch *batch, const float *logits, size_t labels) {
    size_t right = 0;
    for (size_t i = 0; i < batch->B; i++) {
        size_t best = 0;
        for (size_t label = 1; label < labels; label++) {
            best = logits[i * labels + label] > logits[i * labels + best] ? label : best;
        }
        right += batch->labels[i] == (int32_t)best;
    }
    return right;
}

/* Adds one batch to the sums. Takes the loss after each batch: the sum of all would lose digits in
   fp32. */
static enum status add_batch(struct train_model *model, const struct train_batch_memory *m,
                             float *logits, size_t labels, struct train_result *sums,
                             struct error *error) {
    double loss;
    TRY(train_model_evaluate(model, &m->batch, 1.0f, logits, error));
    TRY(train_model_take_loss(model, &loss, NULL, error));
    sums->loss += loss;
    sums->labels += m->asked;
    if (logits != NULL) {
        sums->accuracy += (double)count_right(&m->batch, logits, labels);
    }
    return STATUS_OK;
}

static enum status add_all(struct train_model *model, struct train_batches *batches,
                           struct train_batch_memory *memory, float *logits, size_t labels,
                           struct train_result *sums, struct error *error) {
    size_t count = train_batches_count(batches);
    struct progress progress = progress_create("evaluating", count);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        train_batches_fill(batches, TRAIN_IN_ORDER, i, memory);
        status = add_batch(model, memory, logits, labels, sums, error);
        progress_update(&progress, i + 1);
        if (status == STATUS_OK && interrupt_seen() != 0) {
            status = error_set(error, STATUS_INTERRUPTED, "interrupted while evaluating");
        }
    }
    progress_finish(&progress);
    return status;
}

enum status train_evaluate(struct train_model *model, struct train_batches *batches,
                           struct train_batch_memory *memory, size_t labels,
                           struct train_result *result, struct error *error) {
    *result = (struct train_result){.task = batches->options.task};
    float *logits = NULL;
    if (result->task == TRAIN_CLASSIFY) {
        logits = calloc(batches->options.batch_size * labels, sizeof *logits);
        if (logits == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the answers");
        }
    }
    enum status status = add_all(model, batches, memory, logits, labels, result, error);
    free(logits);
    if (status == STATUS_OK && result->labels == 0) {
        status = error_set(error, STATUS_INVALID_ARGUMENT,
                           "the texts to evaluate on are too short or too few: no token has a "
                           "label");
    }
    result->bits_per_byte = result->loss / log(2.0) / (double)train_part_bytes(&batches->part);
    if (result->labels > 0) {
        result->loss /= (double)result->labels;
        result->accuracy /= (double)result->labels;
    }
    return status;
}

double train_result_score(const struct train_result *result) {
    return result->task == TRAIN_CLASSIFY ? result->accuracy : -result->loss;
}
