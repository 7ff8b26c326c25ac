/**
 * @file memory.cu
 * @brief All steps: the encoder's memory.
 */
#include <stdlib.h>

#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/07_attention/attention.h"
#include "solutions/08_bert_classifier/steps/ladder.h"

/* Numbers in the lists of e1, which has the most: ids, types, positions, rows kept, first rows and
 * a mask. e4 has three lists, and one of B + 1 numbers. */
static size_t list_numbers(size_t rows) {
    return 6 * rows + 1;
}

static void free_buffers(struct encoder *e) {
    void *const all[] = {e->x, e->qkv, e->attended, e->projected, e->inner, e->lists};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_free(all[i]);
    }
    device_free_host(e->staged);
    e->x = e->qkv = e->attended = e->projected = e->inner = NULL;
    e->lists = e->staged = NULL;
    e->capacity = 0;
}

static enum status allocate(float **memory, size_t rows, size_t columns, struct error *error) {
    return device_alloc((void **)memory, rows * columns * sizeof(float), error);
}

static enum status allocate_buffers(struct encoder *e, size_t rows, struct error *error) {
    size_t C = e->model->C, bytes = list_numbers(rows) * sizeof(int32_t);
    TRY(allocate(&e->x, rows, C, error));
    TRY(allocate(&e->qkv, rows, 3 * C, error));
    TRY(allocate(&e->attended, rows, C, error));
    TRY(allocate(&e->projected, rows, C, error));
    TRY(allocate(&e->inner, rows, e->model->hidden, error));
    TRY(device_alloc((void **)&e->lists, bytes, error));
    return device_alloc_host((void **)&e->staged, bytes, error);
}

enum status encoder_reserve(struct encoder *e, size_t rows, struct error *error) {
    if (rows <= e->capacity) {
        return STATUS_OK;
    }
    free_buffers(e);
    TRY(allocate_buffers(e, rows, error));
    e->capacity = rows;
    return STATUS_OK;
}

static enum status allocate_all(struct encoder *e, size_t max_tokens, struct error *error) {
    TRY(device_alloc(&e->workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(e->workspace, 0, FUSED_ZERO_BYTES, e->stream, error));
    return encoder_reserve(e, max_tokens, error);
}

enum status encoder_create(struct encoder **encoder, const struct encoder_model *model,
                           size_t max_tokens, device_stream stream, struct error *error) {
    *encoder = NULL;
    if (model->C / model->NH > ATTENTION_MAX_HS) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "encoder: heads of %zu channels; attention supports up to %zu",
                         model->C / model->NH, ATTENTION_MAX_HS);
    }
    struct encoder *e = (struct encoder *)calloc(1, sizeof *e);
    if (e == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "encoder: out of memory");
    }
    e->model = model;
    e->stream = stream;
    enum status status = allocate_all(e, max_tokens, error);
    if (status != STATUS_OK) {
        encoder_free(e);
        return status;
    }
    *encoder = e;
    return STATUS_OK;
}

void encoder_free(struct encoder *e) {
    if (e != NULL) {
        free_buffers(e);
        device_free(e->workspace);
        free(e);
    }
}
