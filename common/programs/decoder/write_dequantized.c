/*
 * Writes a folder of compressed-tensors' layout once more with its weights in fp32, for tests: by
 * the layout's definition, without what reads such folders otherwise. usage: write_dequantized
 * FOLDER UNROUNDED NEW UNROUNDED is the folder that was rounded: it knows the shapes. NEW has all
 * but model.safetensors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/checkpoints/safetensors/safetensors.h"
#include "common/checkpoints/safetensors/safetensors_write.h"

enum { PATH = 4096, NAME = 256, GROUP = 16 /* columns, where a row has several */ };

struct copying {
    struct safetensors file;
    struct safetensors_tensor *tensors;
    const struct safetensors_tensor **from;
    size_t count;
};

static const struct safetensors_tensor *
part(const struct copying *c, const struct safetensors_tensor *packed, const char *suffix) {
    char name[NAME];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(packed->name) - strlen("_packed")),
             packed->name, suffix);
    return safetensors_find(&c->file, name);
}

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static uint32_t word(const struct safetensors_tensor *t, size_t index) {
    uint32_t value;
    memcpy(&value, (const char *)t->data + index * sizeof value, sizeof value);
    return value;
}

static float bf16(const struct safetensors_tensor *t, size_t index) {
    uint16_t half;
    memcpy(&half, (const char *)t->data + index * sizeof half, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The number of words in a row says how many bits. */
static void dequantize(const struct copying *c, const struct safetensors_tensor *packed,
                       size_t rows, size_t columns, float *out) {
    const struct safetensors_tensor *scale = part(c, packed, "_scale"),
                                    *zero = part(c, packed, "_zero_point");
    size_t words = packed->shape[1], bits = words * 4 >= columns ? 8 : 4, fields = 32 / bits;
    size_t groups = scale->shape[1];
    size_t group = groups == 1 ? columns : GROUP;
    uint32_t mask = (1u << bits) - 1;
    for (size_t r = 0; r < rows; r++) {
        for (size_t k = 0; k < columns; k++) {
            uint32_t q = word(packed, r * words + k / fields) >> (k % fields * bits) & mask;
            uint32_t z = 1u << (bits - 1);
            if (zero != NULL) { /* words go down the column of a group */
                z = word(zero, r / fields * groups + k / group) >> (r % fields * bits) & mask;
            }
            out[r * columns + k] = bf16(scale, r * groups + k / group) * (float)((int)q - (int)z);
        }
    }
}

static enum status fill(void *context, size_t index, void *data, struct error *error) {
    const struct copying *c = context;
    const struct safetensors_tensor *to = &c->tensors[index], *from = c->from[index];
    (void)error;
    if (ends_with(from->name, "_packed")) {
        dequantize(c, from, to->shape[0], to->shape[1], data);
    } else {
        memcpy(data, from->data, from->bytes);
    }
    return STATUS_OK;
}

/* Packed matrices by their own names and shapes, and what is not packed. */
static enum status list(struct copying *c, const char *shape_source, struct error *error) {
    struct safetensors shapes;
    TRY(safetensors_open(&shapes, shape_source, error));
    c->tensors = calloc(c->file.count, sizeof *c->tensors);
    c->from = calloc(c->file.count, sizeof *c->from);
    for (size_t i = 0; i < c->file.count; i++) {
        const struct safetensors_tensor *t = &c->file.tensors[i];
        if (ends_with(t->name, "_scale") || ends_with(t->name, "_zero_point")) {
            continue;
        }
        struct safetensors_tensor *to = &c->tensors[c->count];
        *to = *t;
        to->name = strdup(t->name);
        if (ends_with(t->name, "_packed")) {
            to->name[strlen(to->name) - strlen("_packed")] = '\0';
            const struct safetensors_tensor *plain = safetensors_find(&shapes, to->name);
            to->dtype = SAFETENSORS_F32;
            memcpy(to->shape, plain->shape, sizeof to->shape);
            to->count = plain->count;
            to->bytes = plain->count * sizeof(float);
        }
        c->from[c->count++] = t;
    }
    safetensors_close(&shapes);
    return STATUS_OK;
}

static enum status run(const char *folder, const char *plain, const char *output,
                       struct error *error) {
    struct copying c = {0};
    char path[PATH];
    const struct safetensors_source source = {.fill = fill, .context = &c};
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    TRY(safetensors_open(&c.file, path, error));
    snprintf(path, sizeof path, "%s/model.safetensors", plain);
    TRY(list(&c, path, error));
    snprintf(path, sizeof path, "%s/model.safetensors", output);
    TRY(safetensors_write(path, c.tensors, c.count, &source, error));
    for (size_t i = 0; i < c.count; i++) {
        free(c.tensors[i].name);
    }
    free(c.tensors);
    free(c.from);
    safetensors_close(&c.file);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct error error = {0};
    enum status status = argc == 4 ? run(argv[1], argv[2], argv[3], &error)
                                   : error_set(&error, STATUS_INVALID_ARGUMENT,
                                               "usage: write_dequantized FOLDER UNROUNDED NEW");
    if (status != STATUS_OK) {
        fprintf(stderr, "write_dequantized: %s\n", error_text(&error, status));
        return 1;
    }
    return 0;
}
