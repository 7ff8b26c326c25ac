#include "common/train/data/train_encode.h"

#include <omp.h>
#include <stdlib.h>

#include "common/base/terminal.h"

enum { CHUNK = 16 /* texts that a thread takes at a time */ };

/* State shared by the threads. */
struct work {
    const struct train_vocabulary *vocabulary;
    enum train_task task;
    const struct text_dataset *dataset;
    struct train_encoded *encoded;
    size_t done;
    struct progress progress;
    /* The first text that failed, the same for any number of threads. */
    size_t failed;
    enum status status;
    struct error error;
};

static enum status encode_one(const struct work *w, size_t i, struct error *error) {
    const struct text_sample *s = &w->dataset->samples[i];
    struct train_encoded *e = &w->encoded[i];
    if (w->task == TRAIN_LM) {
        return bpe_encode(w->vocabulary->bpe, s->text, s->length, true, false, &e->ids, &e->count,
                          error);
    }
    return wordpiece_encode(w->vocabulary->wordpiece, s->text, s->length, 0, &e->ids, &e->count,
                            error);
}

static void note_failure(struct work *w, size_t i, enum status status, const struct error *error) {
#pragma omp critical
    if (i < w->failed) {
        w->failed = i;
        w->status = status;
        w->error = *error;
    }
}

static void encode_chunk(struct work *w, size_t first) {
    size_t end = first + CHUNK < w->dataset->count ? first + CHUNK : w->dataset->count;
    for (size_t i = first; i < end; i++) {
        struct error error = {0};
        enum status status = encode_one(w, i, &error);
        if (status != STATUS_OK) {
            note_failure(w, i, status, &error);
            return;
        }
    }
    size_t done;
#pragma omp atomic capture
    done = w->done += end - first;
    if (omp_get_thread_num() == 0) { /* only this thread writes to the terminal */
        progress_update(&w->progress, done);
    }
}

enum status train_encode(const struct train_vocabulary *vocabulary, enum train_task task,
                         const struct text_dataset *dataset, struct train_encoded **encoded,
                         struct error *error) {
    struct work w = {.vocabulary = vocabulary,
                     .task = task,
                     .dataset = dataset,
                     .encoded = calloc(dataset->count + 1, sizeof *w.encoded),
                     .failed = SIZE_MAX};
    *encoded = w.encoded;
    if (w.encoded == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the tokens");
    }
    w.progress = progress_create("texts tokenised", dataset->count);
#pragma omp parallel for schedule(dynamic)
    for (size_t first = 0; first < dataset->count; first += CHUNK) {
        encode_chunk(&w, first);
    }
    progress_finish(&w.progress);
    if (w.status != STATUS_OK) {
        train_encoded_free(w.encoded, dataset->count);
        *encoded = NULL;
        return error_set(error, w.status, "%s", error_text(&w.error, w.status));
    }
    return STATUS_OK;
}

void train_encoded_free(struct train_encoded *encoded, size_t count) {
    for (size_t i = 0; i < count && encoded != NULL; i++) {
        free(encoded[i].ids);
    }
    free(encoded);
}
