#include "grader/isolation/remote_buffer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grader/isolation/remote.h"

enum { CANARY_BYTE = 0xa5 };

static size_t block_floats(const struct remote_buffer *buffer) {
    return buffer->before + buffer->count + buffer->after;
}

enum status remote_buffer_create(struct remote_buffer *buffer, size_t count, size_t skew,
                                 struct error *error) {
    void *block;
    *buffer = (struct remote_buffer){
        .count = count, .before = REMOTE_BUFFER_GUARD + skew, .after = REMOTE_BUFFER_GUARD};
    size_t bytes = block_floats(buffer) * sizeof(float);
    buffer->expect = malloc(bytes);
    if (buffer->expect == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(remote_alloc(&block, bytes, error));
    buffer->block = block;
    buffer->data = buffer->block + buffer->before;
    remote_buffer_put(buffer, NULL);
    return STATUS_OK;
}

void remote_buffer_put(struct remote_buffer *buffer, const float *values) {
    size_t bytes = block_floats(buffer) * sizeof(float);
    float *data = buffer->expect + buffer->before;
    memset(buffer->expect, CANARY_BYTE, bytes);
    for (size_t i = 0; i < buffer->count; i++) {
        data[i] = values != NULL ? values[i] : NAN;
    }
    memcpy(buffer->block, buffer->expect, bytes);
}

enum status remote_buffer_get(const struct remote_buffer *buffer, float *values, bool *intact,
                              bool *changed, struct error *error) {
    size_t before = buffer->before, count = buffer->count, after = buffer->after;
    const float *expect = buffer->expect;
    float *got = malloc(block_floats(buffer) * sizeof *got);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    memcpy(got, buffer->block, block_floats(buffer) * sizeof *got);
    *intact = memcmp(got, expect, before * sizeof *got) == 0 &&
              memcmp(got + before + count, expect + before + count, after * sizeof *got) == 0;
    if (changed != NULL) {
        *changed = memcmp(got + before, expect + before, count * sizeof *got) != 0;
    }
    if (values != NULL) {
        memcpy(values, got + before, count * sizeof *got);
    }
    free(got);
    return STATUS_OK;
}

void remote_buffer_free(struct remote_buffer *buffer) {
    free(buffer->expect);
    *buffer = (struct remote_buffer){0};
}
