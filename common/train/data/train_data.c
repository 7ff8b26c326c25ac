#include "common/train/data/train_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/grow.h"
#include "common/tokenizers/bpe/tokenizer.h"
#include "common/train/data/train_encode.h"

/* ---- Vocabularies ---- */

/* Finds the file: PATH itself, or in the folder PATH the first of these names that exists. */
static enum status find_vocabulary(struct train_vocabulary *v, const char *path,
                                   const char *const *names, size_t count, struct error *error) {
    if (!folder_exists(path)) {
        int length = snprintf(v->path, sizeof v->path, "%s", path);
        return length < (int)sizeof v->path
                   ? STATUS_OK
                   : error_set(error, STATUS_TOO_LONG, "%.100s...: the path is too long", path);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(folder_join(v->path, path, names[i], "vocabulary", error));
        if (path_exists(v->path)) {
            return STATUS_OK;
        }
    }
    return STATUS_OK; /* opening the last of them will report that it does not exist */
}

static enum status open_wordpiece(struct train_vocabulary *v, enum train_task task,
                                  const char *path, struct error *error) {
    static const char *const names[] = {"vocab.txt"};
    TRY(find_vocabulary(v, path, names, 1, error));
    TRY(wordpiece_open(&v->wordpiece, v->path, error));
    v->name = names[0];
    v->size = wordpiece_size(v->wordpiece);
    v->mask = wordpiece_find(v->wordpiece, "[MASK]");
    if (task == TRAIN_MLM && v->mask < 0) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: there is no [MASK]", v->path);
    }
    return STATUS_OK;
}

static enum status open_bpe(struct train_vocabulary *v, const char *path, struct error *error) {
    static const char *const names[] = {"tokenizer.json", "tokenizer.bin"};
    TRY(find_vocabulary(v, path, names, 2, error));
    TRY(tokenizer_open(&v->bpe, v->path, 0, error));
    if (bpe_bos(v->bpe) != BPE_BOS) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s: training needs a tokenizer as Llama2's, in which <s> begins a text",
                         v->path);
    }
    size_t length = strlen(v->path);
    v->name = names[length < 5 || strcmp(v->path + length - 5, ".json") != 0];
    v->size = bpe_size(v->bpe);
    return STATUS_OK;
}

static enum status open_vocabulary(struct train_vocabulary *v, enum train_task task,
                                   const char *path, size_t expected, struct error *error) {
    TRY(task == TRAIN_LM ? open_bpe(v, path, error) : open_wordpiece(v, task, path, error));
    if (expected != 0 && v->size != expected) {
        return error_set(error, STATUS_MISMATCH, "%s: the vocabulary has %zu pieces, the model %zu",
                         v->path, v->size, expected);
    }
    return STATUS_OK;
}

enum status train_vocabulary_open(struct train_vocabulary *v, enum train_task task,
                                  const char *path, size_t expected, struct error *error) {
    *v = (struct train_vocabulary){.mask = -1};
    enum status status = open_vocabulary(v, task, path, expected, error);
    if (status != STATUS_OK) {
        train_vocabulary_close(v);
    }
    return status;
}

void train_vocabulary_close(struct train_vocabulary *v) {
    wordpiece_free(v->wordpiece);
    bpe_free(v->bpe);
    v->wordpiece = NULL;
    v->bpe = NULL;
}

/* ---- Texts ---- */

/* Makes room for `more` ids. */
static enum status grow_ids(struct train_texts *t, size_t more) {
    size_t wanted;
    if (!checked_add(t->starts[t->count], more, &wanted)) {
        return STATUS_OVERFLOW;
    }
    return array_grow(&t->ids, &t->id_capacity, wanted, sizeof *t->ids) ? STATUS_OK
                                                                        : STATUS_OUT_OF_MEMORY;
}

static bool grow_one(void **array, size_t capacity, size_t element) {
    size_t bytes;
    void *grown = checked_multiply(capacity, element, &bytes) ? realloc(*array, bytes) : NULL;
    *array = grown != NULL ? grown : *array;
    return grown != NULL;
}

/* Makes room for one more sequence and for its end in starts. */
static enum status grow_sequences(struct train_texts *t) {
    if (t->count + 1 < t->capacity) {
        return STATUS_OK;
    }
    size_t capacity = t->capacity * 2 + 1024;
    bool first = t->starts == NULL;
    void *starts = t->starts, *labels = t->labels, *bytes = t->bytes;
    bool grown = grow_one(&starts, capacity, sizeof *t->starts) &&
                 grow_one(&labels, capacity, sizeof *t->labels) &&
                 grow_one(&bytes, capacity, sizeof *t->bytes);
    t->starts = starts;
    t->labels = labels;
    t->bytes = bytes;
    if (!grown) {
        return STATUS_OUT_OF_MEMORY;
    }
    if (first) {
        t->starts[0] = 0;
    }
    t->capacity = capacity;
    return STATUS_OK;
}

static enum status add_sequence(struct train_texts *t, const int32_t *ids, size_t count,
                                int32_t label, size_t bytes) {
    TRY(grow_sequences(t));
    TRY(grow_ids(t, count));
    size_t start = t->starts[t->count];
    memcpy(t->ids + start, ids, count * sizeof *ids);
    t->labels[t->count] = label;
    t->bytes[t->count] = bytes;
    t->starts[++t->count] = start + count;
    return STATUS_OK;
}

/* Splits "[CLS] pieces [SEP]" into sequences of max_length, each with [CLS] and [SEP]. Writes to
   ids. */
static enum status add_pieces(struct train_texts *t, int32_t *ids, size_t count, size_t max_length,
                              size_t bytes) {
    int32_t cls = ids[0], sep = ids[count - 1];
    size_t first = 0; /* index of [CLS] */
    for (;;) {
        size_t left = count - first;
        if (left <= max_length) {
            ids[first] = cls;
            return add_sequence(t, ids + first, left, -1, bytes);
        }
        size_t last = first + max_length - 1; /* index of [SEP] */
        int32_t kept = ids[last];
        ids[first] = cls;
        ids[last] = sep;
        TRY(add_sequence(t, ids + first, max_length, -1, bytes));
        ids[last] = kept;
        first = last - 1; /* this piece is already in the sequence before */
        bytes = 0;
    }
}

struct reader {
    enum train_task task;
    const struct train_vocabulary *vocabulary;
    size_t max_length;
};

/* Appends a text's sequences. Writes to the text's ids. */
static enum status add_text(struct train_texts *t, const struct reader *r,
                            const struct text_sample *sample, const struct train_encoded *encoded) {
    int32_t *ids = encoded->ids;
    size_t count = encoded->count;
    bool longer = r->task != TRAIN_LM && count > r->max_length;
    t->cut += longer;
    if (r->task == TRAIN_MLM) {
        return add_pieces(t, ids, count, r->max_length, sample->length);
    }
    size_t kept = longer ? r->max_length : count;
    ids[kept - 1] = ids[count - 1]; /* [SEP]; no change for a text that is not cut */
    return add_sequence(t, ids, kept, sample->label, sample->length);
}

static enum status add_texts(struct train_texts *t, const struct reader *r,
                             const struct text_dataset *dataset, struct error *error) {
    struct train_encoded *encoded;
    TRY(train_encode(r->vocabulary, r->task, dataset, &encoded, error));
    enum status status = STATUS_OK;
    for (size_t i = 0; i < dataset->count && status == STATUS_OK; i++) {
        status = add_text(t, r, &dataset->samples[i], &encoded[i]);
    }
    train_encoded_free(encoded, dataset->count);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "out of memory for the tokens");
}

static enum status read_dataset(struct train_texts *texts, const struct train_source *source,
                                const struct reader *reader, const struct text_dataset *dataset,
                                struct error *error) {
    if (reader->task == TRAIN_CLASSIFY && dataset->labels == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s: these texts have no labels, which --task classify needs",
                         source->path);
    }
    TRY(add_texts(texts, reader, dataset, error));
    texts->texts = dataset->count;
    texts->label_names = dataset->label_names;
    texts->label_count = dataset->labels;
    return STATUS_OK;
}

enum status train_texts_read(struct train_texts *texts, const struct train_source *source,
                             enum train_task task, const struct train_vocabulary *vocabulary,
                             size_t max_length, struct error *error) {
    const struct text_dataset_options options = {.split = source->split,
                                                 .skip = source->skip,
                                                 .limit = source->limit,
                                                 .columns = source->columns,
                                                 .labels = source->labels};
    const struct reader reader = {task, vocabulary, max_length};
    struct text_dataset dataset;
    *texts = (struct train_texts){0};
    TRY(text_dataset_open(&dataset, source->kind, source->path, &options, error));
    enum status status = read_dataset(texts, source, &reader, &dataset, error);
    text_dataset_close(&dataset);
    if (status != STATUS_OK) {
        train_texts_free(texts);
    }
    return status;
}

void train_texts_free(struct train_texts *texts) {
    free(texts->ids);
    free(texts->starts);
    free(texts->labels);
    free(texts->bytes);
    *texts = (struct train_texts){0};
}

/* ---- Parts ---- */

size_t train_part_ids(const struct train_part *part) {
    return part->texts->starts[part->first + part->count] - part->texts->starts[part->first];
}

uint64_t train_part_bytes(const struct train_part *part) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < part->count; i++) {
        bytes += part->texts->bytes[part->first + i];
    }
    return bytes;
}

static uint64_t hash_number(uint64_t hash, uint32_t value) {
    for (int byte = 0; byte < 4; byte++) {
        hash = (hash ^ (value >> (8 * byte) & 255)) * 0x100000001b3u;
    }
    return hash;
}

uint64_t train_part_checksum(const struct train_part *part) {
    const struct train_texts *t = part->texts;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = part->first; i < part->first + part->count; i++) {
        hash = hash_number(hash, (uint32_t)t->labels[i]);
        hash = hash_number(hash, (uint32_t)(t->starts[i + 1] - t->starts[i]));
        for (size_t at = t->starts[i]; at < t->starts[i + 1]; at++) {
            hash = hash_number(hash, (uint32_t)t->ids[at]);
        }
    }
    return hash;
}
