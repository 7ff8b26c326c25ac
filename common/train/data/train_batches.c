#include "common/train/data/train_batches.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/rng.h"
#include "common/train/dropout.h"

/* Random numbers for each purpose come from a stream of their own. */
enum purpose { FOR_ORDER = 0x6f72, FOR_MASK = 0x6d61 };

static struct rng draw(uint64_t seed, uint64_t epoch, uint64_t sequence, enum purpose purpose) {
    struct train_random4 r =
        train_philox(seed ^ epoch >> 32, sequence, (uint32_t)epoch, (uint32_t)purpose);
    return rng_create((uint64_t)r.at[1] << 32 | r.at[0]);
}

/* ---- The order ---- */

static void shuffle(struct train_batches *b, uint64_t epoch) {
    for (size_t i = 0; i < b->sequences; i++) {
        b->order[i] = i;
    }
    b->epoch = epoch;
    if (epoch == TRAIN_IN_ORDER) {
        return;
    }
    struct rng rng = draw(b->options.seed, epoch, 0, FOR_ORDER);
    for (size_t i = b->sequences; i > 1; i--) {
        size_t other = (size_t)rng_below(&rng, i);
        size_t kept = b->order[i - 1];
        b->order[i - 1] = b->order[other];
        b->order[other] = kept;
    }
}

/* @return number of sequences to learn from */
static size_t count_sequences(const struct train_part *part, enum train_task task, size_t length) {
    if (task != TRAIN_LM) {
        return part->count;
    }
    size_t ids = part->count > 0 ? train_part_ids(part) : 0;
    return ids > 1 ? ceil_div(ids - 1, length) : 0;
}

enum status train_batches_create(struct train_batches *b, const struct train_part *part,
                                 const struct train_batches_options *options, struct error *error) {
    *b = (struct train_batches){.part = *part, .options = *options};
    b->sequences = count_sequences(part, options->task, options->max_length);
    if (b->sequences == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "there are no texts to learn from");
    }
    b->order = calloc(b->sequences, sizeof *b->order);
    if (b->order == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the order of %zu texts",
                         b->sequences);
    }
    if (options->task == TRAIN_MLM) {
        struct wordpiece_special special = wordpiece_special(options->vocabulary->wordpiece);
        b->cls = special.cls;
        b->sep = special.sep;
    }
    shuffle(b, TRAIN_IN_ORDER);
    return STATUS_OK;
}

void train_batches_free(struct train_batches *b) {
    free(b->order);
    *b = (struct train_batches){0};
}

size_t train_batches_count(const struct train_batches *b) {
    return ceil_div(b->sequences, b->options.batch_size);
}

/* ---- Memory ---- */

enum status train_batch_memory_create(struct train_batch_memory *m,
                                      const struct train_batches_options *options,
                                      struct error *error) {
    *m = (struct train_batch_memory){0};
    size_t rows;
    if (checked_multiply(options->batch_size, options->max_length, &rows) && rows <= INT32_MAX) {
        m->ids = calloc(rows, sizeof *m->ids);
        m->labels = calloc(rows, sizeof *m->labels);
        m->starts = calloc(options->batch_size + 1, sizeof *m->starts);
    }
    if (m->ids == NULL || m->labels == NULL || m->starts == NULL) {
        train_batch_memory_free(m);
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "out of memory for batches of %zu times %zu tokens", options->batch_size,
                         options->max_length);
    }
    return STATUS_OK;
}

void train_batch_memory_free(struct train_batch_memory *m) {
    free(m->ids);
    free(m->labels);
    free(m->starts);
    *m = (struct train_batch_memory){0};
}

/* ---- Filling ---- */

/* Masks tokens of a sequence. */
static void mask_tokens(const struct train_batches *b, uint64_t epoch, size_t sequence,
                        int32_t *ids, int32_t *labels, size_t count) {
    struct rng rng = draw(b->options.seed, epoch, sequence, FOR_MASK);
    for (size_t i = 0; i < count; i++) {
        labels[i] = -1;
        if (ids[i] == b->cls || ids[i] == b->sep || rng_uniform(&rng) >= b->options.asked) {
            continue;
        }
        labels[i] = ids[i];
        float how = rng_uniform(&rng);
        if (how < 0.8f) {
            ids[i] = b->options.vocabulary->mask;
        } else if (how < 0.9f) {
            ids[i] = (int32_t)rng_below(&rng, b->options.vocabulary->size);
        }
    }
}

/* Copies row `sequence` of the stream to ids, and each token's successor to labels.
   @return length of the row */
static size_t copy_row(const struct train_batches *b, size_t sequence, int32_t *ids,
                       int32_t *labels) {
    const struct train_texts *t = b->part.texts;
    size_t length = b->options.max_length;
    size_t first = t->starts[b->part.first] + sequence * length;
    size_t left = t->starts[b->part.first + b->part.count] - 1 - first;
    size_t count = left < length ? left : length;
    memcpy(ids, t->ids + first, count * sizeof *ids);
    memcpy(labels, t->ids + first + 1, count * sizeof *ids);
    for (size_t i = 0; i < count && b->options.texts_alone; i++) {
        labels[i] = labels[i] == BPE_BOS ? -1 : labels[i];
    }
    return count;
}

static size_t copy_text(const struct train_batches *b, size_t sequence, int32_t *ids) {
    const struct train_texts *t = b->part.texts;
    size_t first = t->starts[b->part.first + sequence];
    size_t count = t->starts[b->part.first + sequence + 1] - first;
    memcpy(ids, t->ids + first, count * sizeof *ids);
    return count;
}

/* Appends sequence number i of the batch. */
static void add(struct train_batches *b, uint64_t epoch, size_t sequence,
                struct train_batch_memory *m, size_t i) {
    int32_t *ids = m->ids + m->rows, *labels = m->labels + m->rows;
    size_t count;
    if (b->options.task == TRAIN_LM) {
        count = copy_row(b, sequence, ids, labels);
    } else {
        count = copy_text(b, sequence, ids);
    }
    if (b->options.task == TRAIN_MLM) {
        mask_tokens(b, epoch, sequence, ids, labels, count);
    }
    if (b->options.task == TRAIN_CLASSIFY) {
        m->labels[i] = b->part.texts->labels[b->part.first + sequence];
    }
    m->rows += count;
    m->starts[i + 1] = (int32_t)m->rows;
}

void train_batches_fill(struct train_batches *b, uint64_t epoch, size_t index,
                        struct train_batch_memory *m) {
    if (epoch != b->epoch) {
        shuffle(b, epoch);
    }
    size_t first = index * b->options.batch_size;
    size_t left = b->sequences - first;
    size_t count = left < b->options.batch_size ? left : b->options.batch_size;
    m->rows = 0;
    m->starts[0] = 0;
    for (size_t i = 0; i < count; i++) {
        add(b, epoch, b->order[first + i], m, i);
    }
    size_t labels = b->options.task == TRAIN_CLASSIFY ? count : m->rows;
    m->asked = 0;
    for (size_t i = 0; i < labels; i++) {
        m->asked += m->labels[i] >= 0;
    }
    m->batch = (struct train_batch){m->ids, m->starts, count, m->labels};
}
