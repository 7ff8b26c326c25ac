#include "common/testing/device_buffer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t block_floats(const struct device_buffer *buffer) {
    return buffer->before + buffer->count + buffer->after;
}

enum status device_buffer_create(struct device_buffer *buffer, size_t count, bool guarded,
                                 size_t skew, struct error *error) {
    size_t guard = guarded ? DEVICE_BUFFER_GUARD : 0;
    *buffer = (struct device_buffer){.count = count, .before = guard + skew, .after = guard};
    size_t floats = block_floats(buffer);
    buffer->expect = malloc(floats * sizeof(float) + 1);
    if (buffer->expect == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    void *memory = NULL;
    enum status status = device_alloc(&memory, floats * sizeof(float), error);
    buffer->block = memory;
    if (status != STATUS_OK || floats == 0) {
        return status;
    }
    buffer->data = buffer->block + buffer->before;
    return device_buffer_put(buffer, NULL, error);
}

enum status device_buffer_put(struct device_buffer *buffer, const float *values,
                              struct error *error) {
    size_t floats = block_floats(buffer);
    for (size_t i = 0; i < floats; i++) {
        buffer->expect[i] = NAN;
    }
    if (values != NULL) {
        memcpy(buffer->expect + buffer->before, values, buffer->count * sizeof(float));
    }
    return floats == 0
               ? STATUS_OK
               : device_write(buffer->block, buffer->expect, floats * sizeof(float), NULL, error);
}

/* Reads the whole block into `got` and compares canaries and data with what they must hold. */
static enum status read_and_compare(const struct device_buffer *buffer, unsigned char *got,
                                    bool *intact, bool *changed, struct error *error) {
    size_t before = buffer->before * sizeof(float);
    size_t data = buffer->count * sizeof(float);
    size_t after = buffer->after * sizeof(float);
    if (before + data + after > 0) {
        TRY(device_read(got, buffer->block, before + data + after, NULL, error));
    }
    const unsigned char *expect = (const unsigned char *)buffer->expect;
    *intact = memcmp(got, expect, before) == 0 &&
              memcmp(got + before + data, expect + before + data, after) == 0;
    *changed = memcmp(got + before, expect + before, data) != 0;
    return STATUS_OK;
}

enum status device_buffer_get(const struct device_buffer *buffer, float *values, bool *intact,
                              bool *changed, struct error *error) {
    unsigned char *got = malloc(block_floats(buffer) * sizeof(float) + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = read_and_compare(buffer, got, intact, changed, error);
    if (status == STATUS_OK && values != NULL) {
        memcpy(values, got + buffer->before * sizeof(float), buffer->count * sizeof(float));
    }
    free(got);
    return status;
}

void device_buffer_free(struct device_buffer *buffer) {
    device_free(buffer->block);
    free(buffer->expect);
    *buffer = (struct device_buffer){0};
}
