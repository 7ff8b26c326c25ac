#include "common/testing/device_buffer.h"

#include <stdlib.h>
#include <string.h>

static size_t block_bytes(const struct device_buffer *buffer) {
    return buffer->before + buffer->bytes + buffer->after;
}

static enum status create(struct device_buffer *buffer, size_t bytes, bool guarded, size_t skew,
                          uint32_t poison, struct error *error) {
    size_t guard = guarded ? DEVICE_BUFFER_GUARD * sizeof(float) : 0;
    *buffer = (struct device_buffer){.count = bytes / sizeof(float),
                                     .bytes = bytes,
                                     .before = guard + skew,
                                     .after = guard,
                                     .poison = poison};
    size_t all = block_bytes(buffer);
    buffer->expect = malloc(all + 1);
    if (buffer->expect == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(device_alloc(&buffer->block, all, error));
    if (all == 0) {
        return STATUS_OK;
    }
    buffer->data = (float *)((char *)buffer->block + buffer->before);
    return device_buffer_put(buffer, NULL, error);
}

enum status device_buffer_create(struct device_buffer *buffer, size_t count, bool guarded,
                                 size_t skew, struct error *error) {
    return create(buffer, count * sizeof(float), guarded, skew * sizeof(float), 0x7fc00000, error);
}

enum status device_buffer_create_bytes(struct device_buffer *buffer, size_t bytes, bool guarded,
                                       size_t skew, struct error *error) {
    return create(buffer, bytes, guarded, skew, 0xffffffff, error);
}

enum status device_buffer_put(struct device_buffer *buffer, const void *values,
                              struct error *error) {
    size_t all = block_bytes(buffer);
    for (size_t i = 0; i < all; i++) {
        ((unsigned char *)buffer->expect)[i] = (unsigned char)(buffer->poison >> 8 * (i % 4));
    }
    if (values != NULL) {
        memcpy((char *)buffer->expect + buffer->before, values, buffer->bytes);
    }
    return all == 0 ? STATUS_OK : device_write(buffer->block, buffer->expect, all, NULL, error);
}

/* Reads the whole block into `got` and compares canaries and data with what they must hold. */
static enum status read_and_compare(const struct device_buffer *buffer, unsigned char *got,
                                    bool *intact, bool *changed, struct error *error) {
    size_t before = buffer->before, bytes = buffer->bytes;
    if (block_bytes(buffer) > 0) {
        TRY(device_read(got, buffer->block, block_bytes(buffer), NULL, error));
    }
    const unsigned char *expect = buffer->expect;
    *intact = memcmp(got, expect, before) == 0 &&
              memcmp(got + before + bytes, expect + before + bytes, buffer->after) == 0;
    *changed = memcmp(got + before, expect + before, bytes) != 0;
    return STATUS_OK;
}

enum status device_buffer_get(const struct device_buffer *buffer, void *values, bool *intact,
                              bool *changed, struct error *error) {
    unsigned char *got = malloc(block_bytes(buffer) + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = read_and_compare(buffer, got, intact, changed, error);
    if (status == STATUS_OK && values != NULL) {
        memcpy(values, got + buffer->before, buffer->bytes);
    }
    free(got);
    return status;
}

void device_buffer_free(struct device_buffer *buffer) {
    device_free(buffer->block);
    free(buffer->expect);
    *buffer = (struct device_buffer){0};
}
