#include "common/programs/decoder/quantize_list.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/checkpoints/packed/packed_weights.h"

enum status quantize_list_reserve(struct quantize_list *list, size_t tensors, struct error *error) {
    list->capacity = QUANTIZE_PARTS * tensors;
    list->tensors = calloc(list->capacity + 1, sizeof *list->tensors);
    list->items = calloc(list->capacity + 1, sizeof *list->items);
    return list->tensors != NULL && list->items != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors",
                           list->capacity);
}

static enum status add(struct quantize_list *list, const char *name, const char *suffix,
                       const struct safetensors_tensor *like, size_t source,
                       enum quantize_part part, struct error *error) {
    if (list->count == list->capacity) {
        return STATUS_OVERFLOW;
    }
    size_t length = strlen(name) + strlen(suffix) + 1;
    struct safetensors_tensor t = *like;
    t.name = malloc(length);
    if (t.name == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a name");
    }
    snprintf(t.name, length, "%s%s", name, suffix);
    list->items[list->count] = (struct quantize_item){source, part};
    list->tensors[list->count++] = t;
    return STATUS_OK;
}

enum status quantize_list_add_plain(struct quantize_list *list, const char *name,
                                    const struct safetensors_tensor *like, size_t source,
                                    struct error *error) {
    list->most = like->count > list->most ? like->count : list->most;
    return add(list, name, "", like, source, QUANTIZE_PLAIN, error);
}

static struct safetensors_tensor part_of(enum safetensors_dtype dtype, size_t element, size_t rows,
                                         size_t columns) {
    return (struct safetensors_tensor){.dtype = dtype,
                                       .rank = 2,
                                       .shape = {rows, columns},
                                       .count = rows * columns,
                                       .bytes = rows * columns * element};
}

enum status quantize_list_add_parts(struct quantize_list *list, const char *name,
                                    const struct low_bit_layout *layout, size_t source,
                                    struct error *error) {
    size_t rows = layout->rows, columns = layout->columns, groups = low_bit_groups(layout);
    size_t words = packed_row_words(columns, layout->type == LOW_BIT_INT4 ? 4 : 8);
    const struct safetensors_tensor values =
        part_of(SAFETENSORS_I32, sizeof(uint32_t), rows, words);
    const struct safetensors_tensor scales =
        part_of(SAFETENSORS_BF16, sizeof(uint16_t), rows, groups);
    const struct safetensors_tensor zeros =
        part_of(SAFETENSORS_I32, sizeof(uint32_t), ceil_div(rows, 8), groups);
    list->most = rows * columns > list->most ? rows * columns : list->most;
    TRY(add(list, name, "_packed", &values, source, QUANTIZE_WORDS, error));
    TRY(add(list, name, "_scale", &scales, source, QUANTIZE_SCALES, error));
    return layout->has_zeros ? add(list, name, "_zero_point", &zeros, source, QUANTIZE_ZEROS, error)
                             : STATUS_OK;
}

enum status quantize_list_allocate(struct quantize_list *list, struct error *error) {
    struct low_bit_matrix *matrix = &list->matrix;
    list->scratch = malloc(list->most * sizeof *list->scratch + 1);
    matrix->values = malloc(list->most + 1);
    matrix->scales = malloc(list->most * sizeof(uint16_t) + 1);
    matrix->zeros = malloc(list->most + 1);
    return list->scratch != NULL && matrix->values != NULL && matrix->scales != NULL &&
                   matrix->zeros != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a matrix of %zu",
                           list->most);
}

void quantize_list_put_part(const struct quantize_list *list, enum quantize_part part, void *data) {
    const struct low_bit_matrix *matrix = &list->matrix;
    if (part == QUANTIZE_WORDS) {
        packed_words(matrix, data);
    } else if (part == QUANTIZE_SCALES) {
        memcpy(data, matrix->scales, low_bit_scales_bytes(&matrix->layout));
    } else {
        packed_zeros(matrix, data);
    }
}

void quantize_list_free(struct quantize_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->tensors[i].name);
    }
    free(list->tensors);
    free(list->items);
    free(list->scratch);
    free(list->matrix.values);
    free(list->matrix.scales);
    free(list->matrix.zeros);
}
