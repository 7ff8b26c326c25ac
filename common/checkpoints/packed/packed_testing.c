#include "common/checkpoints/packed/packed_testing.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

static uint32_t draw(struct packed_testing *t) {
    t->state = t->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->state >> 33);
}

void packed_testing_add(struct packed_testing *t, const char *name, const char *suffix,
                        enum safetensors_dtype dtype, size_t rank, size_t rows, size_t columns) {
    size_t count = rows * columns;
    uint32_t *data = malloc(count * sizeof *data);
    char *text = malloc(strlen(name) + strlen(suffix) + 1);
    if (data == NULL || text == NULL || t->count == PACKED_TESTING_MOST) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        float scale = (float)(draw(t) % 1000 + 1) * 0x1p-12f;
        data[i] = draw(t) * 2 + draw(t) % 2;
        if (dtype == SAFETENSORS_F32) {
            memcpy(&data[i], &scale, sizeof scale);
        }
    }
    t->tensors[t->count++] = (struct safetensors_tensor){
        .name = strcat(strcpy(text, name), suffix),
        .dtype = dtype,
        .rank = rank,
        .shape = {rank == 1 ? columns : rows, columns},
        .count = count,
        .data = data,
        .bytes = count * sizeof *data,
    };
}

static void add_gptq(struct packed_testing *t, const struct packed_config *c, const char *name,
                     size_t rows, size_t columns, size_t groups) {
    size_t a_word = 32 / c->bits;
    packed_testing_add(t, name, ".qweight", SAFETENSORS_I32, 2, columns / a_word, rows);
    packed_testing_add(t, name, ".scales", SAFETENSORS_F32, 2, groups, rows);
    packed_testing_add(t, name, ".qzeros", SAFETENSORS_I32, 2, groups, rows / a_word);
    packed_testing_add(t, name, ".g_idx", SAFETENSORS_I32, 1, 1, columns);
    int32_t *order = (int32_t *)t->tensors[t->count - 1].data;
    for (size_t i = 0; i < columns; i++) {
        order[i] = (int32_t)((uint32_t)order[i] % groups);
    }
}

void packed_testing_add_matrix(struct packed_testing *t, const struct packed_config *c,
                               const char *name, size_t rows, size_t columns) {
    size_t a_word = 32 / c->bits, groups = c->group > 0 ? ceil_div(columns, c->group) : 1;
    if (c->format == PACKED_GPTQ) {
        add_gptq(t, c, name, rows, columns, groups);
        return;
    }
    packed_testing_add(t, name, ".weight_packed", SAFETENSORS_I32, 2, rows,
                       ceil_div(columns, a_word));
    packed_testing_add(t, name, ".weight_scale", SAFETENSORS_F32, 2, rows, groups);
    if (!c->symmetric) {
        packed_testing_add(t, name, ".weight_zero_point", SAFETENSORS_I32, 2,
                           ceil_div(rows, a_word), groups);
    }
}

enum status packed_testing_serialize(const struct packed_testing *t, unsigned char **data,
                                     size_t *size) {
    return safetensors_serialize(t->tensors, t->count, data, size, NULL);
}

void packed_testing_free(struct packed_testing *t) {
    for (size_t i = 0; i < t->count; i++) {
        free(t->tensors[i].name);
        free((void *)t->tensors[i].data);
    }
    t->count = 0;
}
