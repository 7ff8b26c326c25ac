/* Checks a batch and makes its numbers resident on the engine with one write. */
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/train/models/train_model_internal.h"
#include "common/train/occurrences.h"

/* The upload consists of arrays, each aligned to 64 numbers (256 bytes). */
enum { ARRAY_ALIGNMENT = 64, MOST_ARRAYS = 9 };

/* ---- Memory ---- */

/* Arrays: ids, positions, kinds, targets, labels; starts; occurrences of three tables. */
static bool count_numbers(const struct train_config *c, size_t *numbers) {
    size_t occurrences = train_occurrences_most(c->most_rows);
    return occurrences != SIZE_MAX && checked_multiply(c->most_rows, 5, numbers) &&
           checked_add(*numbers, c->most_sequences + 1, numbers) &&
           checked_multiply(occurrences, 3, &occurrences) &&
           checked_add(*numbers, occurrences, numbers) &&
           checked_add(*numbers, (size_t)MOST_ARRAYS * ARRAY_ALIGNMENT, numbers);
}

enum status train_upload_create(struct train_model *m, struct error *error) {
    const struct train_config *c = &m->config;
    struct train_upload *u = &m->upload;
    size_t vocabulary = m->architecture->vocabulary(c), longest = m->architecture->longest(c);
    size_t scratch = vocabulary > longest ? vocabulary : longest;
    size_t bytes;
    if (!count_numbers(c, &u->capacity) ||
        !checked_multiply(u->capacity, sizeof *u->host, &bytes)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "batches of %zu rows are more than memory can hold", c->most_rows);
    }
    u->host = malloc(bytes);
    u->scratch = calloc(scratch, sizeof *u->scratch);
    if (u->host == NULL || u->scratch == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "out of memory for the numbers of batches of %zu rows", c->most_rows);
    }
    void *resident = NULL;
    TRY(m->engine->alloc(m->engine->context, bytes, &resident, error));
    u->resident = resident;
    return STATUS_OK;
}

void train_upload_free(struct train_model *m) {
    m->engine->release(m->engine->context, m->upload.resident);
    free(m->upload.host);
    free(m->upload.scratch);
}

/* Begins an array; the capacity is enough for all arrays. */
static int32_t *begin_array(struct train_upload *u) {
    u->used = ceil_div(u->used, ARRAY_ALIGNMENT) * ARRAY_ALIGNMENT;
    return u->host + u->used;
}

/* Ends an array of `count` numbers. @return its resident address */
static const int32_t *end_array(struct train_upload *u, const int32_t *array, size_t count) {
    u->used = (size_t)(array - u->host) + count;
    return u->resident + (array - u->host);
}

/* ---- Checks ---- */

/* Checks that each sequence begins where the one before ends, and has at least one token. */
static enum status check_starts(const struct train_model *m, const struct train_batch *batch,
                                struct train_pass *pass, struct error *error) {
    size_t most = m->architecture->longest(&m->config);
    if (batch->starts[0] != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "the first sequence begins at row %d",
                         batch->starts[0]);
    }
    for (size_t b = 0; b < batch->B; b++) {
        int32_t begin = batch->starts[b], end = batch->starts[b + 1];
        if (end <= begin) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "sequence %zu begins at row %d and ends at row %d", b, begin, end);
        }
        size_t length = (size_t)(end - begin);
        if (length > most) {
            return error_set(error, STATUS_TOO_LONG,
                             "sequence %zu has %zu tokens, the model takes %zu", b, length, most);
        }
        pass->longest = length > pass->longest ? length : pass->longest;
    }
    pass->rows = (size_t)batch->starts[batch->B];
    return STATUS_OK;
}

static enum status check_sizes(const struct train_model *m, const struct train_batch *batch,
                               struct train_pass *pass, struct error *error) {
    const struct train_config *c = &m->config;
    if (batch->B == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "a batch without sequences");
    }
    if (batch->B > c->most_sequences) {
        return error_set(error, STATUS_TOO_LONG,
                         "a batch of %zu sequences, the model was made for %zu", batch->B,
                         c->most_sequences);
    }
    TRY(check_starts(m, batch, pass, error));
    if (pass->rows > c->most_rows) {
        return error_set(error, STATUS_TOO_LONG, "a batch of %zu rows, the model was made for %zu",
                         pass->rows, c->most_rows);
    }
    return STATUS_OK;
}

/* Checks that the numbers lie in [least, bound). */
static enum status check_numbers(const char *of, const char *what, const int32_t *numbers,
                                 size_t count, int32_t least, size_t bound, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < least || (numbers[i] >= 0 && (size_t)numbers[i] >= bound)) {
            return error_set(error, STATUS_INVALID_ARGUMENT,
                             "%s %zu has %s %d, which is not one of %zu", of, i, what, numbers[i],
                             bound);
        }
    }
    return STATUS_OK;
}

static enum status check_batch(const struct train_model *m, const struct train_batch *batch,
                               struct train_pass *pass, struct error *error) {
    size_t V = m->architecture->vocabulary(&m->config);
    TRY(check_sizes(m, batch, pass, error));
    TRY(check_numbers("row", "id", batch->ids, pass->rows, 0, V, error));
    return m->config.task == TRAIN_CLASSIFY
               ? check_numbers("sequence", "label", batch->labels, batch->B, 0,
                               m->config.bert.labels, error)
               : check_numbers("row", "label", batch->labels, pass->rows, -1, V, error);
}

/* ---- Arrays ---- */

static const int32_t *copy_array(struct train_upload *u, const int32_t *from, size_t count) {
    int32_t *array = begin_array(u);
    memcpy(array, from, count * sizeof *array);
    return end_array(u, array, count);
}

/* Writes positions 0, 1, ... of each sequence. */
static const int32_t *number_positions(struct train_upload *u, const struct train_batch *batch,
                                       size_t rows) {
    int32_t *positions = begin_array(u);
    for (size_t b = 0; b < batch->B; b++) {
        for (int32_t i = batch->starts[b]; i < batch->starts[b + 1]; i++) {
            positions[i] = i - batch->starts[b];
        }
    }
    return end_array(u, positions, rows);
}

/* Lists the rows that the head reads, and their labels. */
static void list_targets(struct train_upload *u, enum train_task task,
                         const struct train_batch *batch, struct train_pass *pass) {
    if (task == TRAIN_CLASSIFY) {
        pass->target_count = batch->B;
        pass->targets = pass->starts;
        pass->labels = copy_array(u, batch->labels, batch->B);
        return;
    }
    int32_t *targets = begin_array(u);
    size_t count = 0;
    for (size_t i = 0; i < pass->rows; i++) {
        if (batch->labels[i] >= 0) {
            targets[count++] = (int32_t)i;
        }
    }
    pass->targets = end_array(u, targets, count);
    int32_t *labels = begin_array(u);
    for (size_t i = 0; i < count; i++) {
        labels[i] = batch->labels[targets[i]];
    }
    pass->labels = end_array(u, labels, count);
    pass->target_count = count;
}

/* Lists the rows of each id, for an embedding table of `bound` rows. */
static enum status list_occurrences(struct train_upload *u, const int32_t *resident_ids,
                                    size_t rows, size_t bound,
                                    struct train_occurrences *occurrences, struct error *error) {
    const int32_t *ids = u->host + (resident_ids - u->resident);
    int32_t *array = begin_array(u);
    struct train_occurrences host;
    TRY(train_occurrences_build(&host, array, u->scratch, ids, rows, bound, error));
    *occurrences = train_occurrences_at(&host, end_array(u, array, train_occurrences_used(&host)));
    return STATUS_OK;
}

static enum status list_tables(struct train_model *m, struct train_pass *pass,
                               struct error *error) {
    struct train_upload *u = &m->upload;
    const struct train_config *c = &m->config;
    TRY(list_occurrences(u, pass->ids, pass->rows, m->architecture->vocabulary(c), &pass->words,
                         error));
    if (c->task == TRAIN_LM) {
        return STATUS_OK;
    }
    TRY(list_occurrences(u, pass->positions, pass->rows, c->bert.T, &pass->places, error));
    return list_occurrences(u, pass->kinds, pass->rows, 1, &pass->types, error);
}

enum status train_batch_begin(struct train_model *m, const struct train_batch *batch, bool backward,
                              struct train_pass *pass, struct error *error) {
    struct train_upload *u = &m->upload;
    const struct train_engine *e = m->engine;
    *pass = (struct train_pass){.B = batch->B, .backward = backward};
    TRY(check_batch(m, batch, pass, error));
    u->used = 0;
    pass->ids = copy_array(u, batch->ids, pass->rows);
    pass->positions = number_positions(u, batch, pass->rows);
    pass->starts = copy_array(u, batch->starts, batch->B + 1);
    pass->host_starts = batch->starts;
    int32_t *kinds = begin_array(u);
    memset(kinds, 0, pass->rows * sizeof *kinds);
    pass->kinds = end_array(u, kinds, pass->rows);
    list_targets(u, m->config.task, batch, pass);
    if (backward) {
        TRY(list_tables(m, pass, error));
    }
    return e->write(e->context, u->resident, u->host, u->used * sizeof *u->host);
}
