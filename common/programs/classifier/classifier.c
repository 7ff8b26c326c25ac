#include "common/programs/classifier/classifier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

/* ---- Texts ---- */

static bool blank(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != ' ' && (bytes[i] < '\t' || bytes[i] > '\r')) {
            return false;
        }
    }
    return true;
}

enum status classifier_encode(const struct classifier_model *model, const char *bytes,
                              size_t length, size_t max_length, struct classifier_text *text,
                              struct error *error) {
    *text = (struct classifier_text){0};
    if (blank(bytes, length)) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "there is no text");
    }
    /* One id more than allowed shows whether the text is too long. */
    TRY(wordpiece_encode(model->wordpiece, bytes, length, max_length + 1, &text->ids, &text->count,
                         error));
    text->cut = text->count > max_length;
    if (text->cut) {
        text->count = max_length;
        text->ids[max_length - 1] = wordpiece_special(model->wordpiece).sep;
    }
    return STATUS_OK;
}

/* ---- Batches ---- */

static enum status alloc_batch(struct classifier *c, size_t *rows) {
    size_t bytes;
    if (!checked_multiply(c->batch, c->max_length, rows) || *rows > INT32_MAX ||
        !checked_multiply(*rows, sizeof *c->ids, &bytes)) {
        return STATUS_TOO_LONG;
    }
    c->ids = malloc(bytes);
    c->mask = malloc(*rows);
    c->starts = malloc((c->batch + 1) * sizeof *c->starts);
    return c->ids != NULL && c->mask != NULL && c->starts != NULL ? STATUS_OK
                                                                  : STATUS_OUT_OF_MEMORY;
}

static enum status create(struct classifier *c, const struct engine *engine, struct error *error) {
    size_t rows = 0;
    enum status status = alloc_batch(c, &rows);
    if (status != STATUS_OK) {
        return error_set(error, status, "batches of %zu texts of %zu tokens: %s", c->batch,
                         c->max_length, status_message(status));
    }
    return bert_create(&c->bert, &c->model->config, c->model->weights, engine, rows, error);
}

enum status classifier_create(struct classifier *classifier, const struct classifier_model *model,
                              const struct engine *engine, size_t batch, size_t max_length,
                              struct error *error) {
    *classifier = (struct classifier){.model = model, .batch = batch, .max_length = max_length};
    enum status status = create(classifier, engine, error);
    if (status != STATUS_OK) {
        classifier_free(classifier);
    }
    return status;
}

void classifier_free(struct classifier *classifier) {
    bert_free(classifier->bert);
    free(classifier->ids);
    free(classifier->mask);
    free(classifier->starts);
    *classifier = (struct classifier){0};
}

/* Writes the texts one after the other. */
static void pack(struct classifier *c, const struct classifier_text *const *texts, size_t count) {
    size_t row = 0;
    for (size_t b = 0; b < count; b++) {
        c->starts[b] = (int32_t)row;
        memcpy(c->ids + row, texts[b]->ids, texts[b]->count * sizeof *c->ids);
        row += texts[b]->count;
    }
    c->starts[count] = (int32_t)row;
}

/* Writes each text to T rows, the rest of which are [PAD]. */
static void pad(struct classifier *c, const struct classifier_text *const *texts, size_t count,
                size_t T) {
    int32_t padding = wordpiece_special(c->model->wordpiece).pad;
    for (size_t b = 0; b < count; b++) {
        for (size_t t = 0; t < T; t++) {
            bool inside = t < texts[b]->count;
            c->ids[b * T + t] = inside ? texts[b]->ids[t] : padding;
            c->mask[b * T + t] = inside;
        }
    }
}

struct classifier_batch classifier_batch(struct classifier *classifier,
                                         const struct classifier_text *const *texts, size_t count,
                                         bool padded, size_t length) {
    struct classifier_batch batch = {.input = {.ids = classifier->ids, .B = count}};
    size_t longest = 0;
    for (size_t b = 0; b < count; b++) {
        batch.tokens += texts[b]->count;
        longest = texts[b]->count > longest ? texts[b]->count : longest;
    }
    if (padded) {
        batch.input.T = length > longest ? length : longest;
        batch.input.mask = classifier->mask;
        pad(classifier, texts, count, batch.input.T);
    } else {
        batch.input.starts = classifier->starts;
        pack(classifier, texts, count);
    }
    return batch;
}

enum status classifier_run(struct classifier *classifier, const struct classifier_batch *batch,
                           float *logits, struct error *error) {
    size_t labels = classifier->model->config.labels;
    enum status status =
        bert_forward(classifier->bert, &batch->input, &(struct bert_output){.logits = logits});
    if (status != STATUS_OK) {
        return error_set(error, status, "the model failed: %s", status_message(status));
    }
    for (size_t i = 0; i < batch->input.B * labels; i++) {
        if (!isfinite(logits[i])) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "the model gives a logit of %g: its weights are not usable",
                             (double)logits[i]);
        }
    }
    return STATUS_OK;
}

/* ---- Answers ---- */

size_t classifier_answer(const float *logits, size_t labels) {
    size_t best = 0;
    for (size_t i = 1; i < labels; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

void classifier_probabilities(const float *logits, size_t labels, double *probabilities) {
    double sum = 0.0;
    double largest = logits[classifier_answer(logits, labels)];
    for (size_t i = 0; i < labels; i++) {
        probabilities[i] = exp((double)logits[i] - largest);
        sum += probabilities[i];
    }
    for (size_t i = 0; i < labels; i++) {
        probabilities[i] /= sum;
    }
}

/* ---- Order ---- */

struct sort_key {
    size_t length, index;
};

static int longest_first(const void *a, const void *b) {
    const struct sort_key *x = a, *y = b;
    if (x->length != y->length) {
        return x->length < y->length ? 1 : -1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

enum status classifier_order(const struct classifier_text *texts, size_t count, size_t window,
                             size_t *order) {
    struct sort_key *keys = calloc(count > 0 ? count : 1, sizeof *keys);
    if (keys == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        keys[i] = (struct sort_key){texts[i].count, i};
    }
    for (size_t first = 0; first < count; first += window) {
        size_t some = count - first < window ? count - first : window;
        qsort(keys + first, some, sizeof *keys, longest_first);
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = keys[i].index;
    }
    free(keys);
    return STATUS_OK;
}
