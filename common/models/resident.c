#include "common/models/resident.h"

#include "common/base/checked.h"

static bool bytes_of(size_t rows, size_t columns, size_t *bytes) {
    return checked_multiply(rows, columns, bytes) && checked_multiply(*bytes, sizeof(float), bytes);
}

enum status resident_tensors_load(const struct engine *engine,
                                  const struct resident_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        if (tensors[i].host == NULL) {
            continue;
        }
        if (!bytes_of(tensors[i].rows, tensors[i].columns, &bytes)) {
            return STATUS_OVERFLOW;
        }
        const void *memory = NULL;
        TRY(engine->weights(engine->context, tensors[i].host, bytes, &memory));
        *tensors[i].resident = memory;
    }
    return STATUS_OK;
}

void resident_tensors_unload(const struct engine *engine, const struct resident_tensor *tensors,
                             size_t count) {
    for (size_t i = 0; i < count; i++) {
        engine->release_weights(engine->context, *tensors[i].resident);
        *tensors[i].resident = NULL;
    }
}

enum status resident_buffers_alloc(const struct engine *engine,
                                   const struct resident_buffer *buffers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        if (!bytes_of(buffers[i].rows, buffers[i].columns, &bytes)) {
            return STATUS_OVERFLOW;
        }
        void *memory = NULL;
        TRY(bytes > 0 ? engine->alloc(engine->context, bytes, &memory) : STATUS_OK);
        *buffers[i].resident = memory;
    }
    return STATUS_OK;
}

void resident_buffers_release(const struct engine *engine, const struct resident_buffer *buffers,
                              size_t count) {
    for (size_t i = 0; i < count; i++) {
        engine->release(engine->context, *buffers[i].resident);
        *buffers[i].resident = NULL;
    }
}
