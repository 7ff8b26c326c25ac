#include "common/models/engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/models/engine_operators.h"

/* Scratch of attention: one row of scores, which grows as needed. */
struct reference {
    double *scores;
    size_t capacity;
};

static void reference_destroy(void *context) {
    struct reference *reference = context;
    if (reference != NULL) {
        free(reference->scores);
        free(reference);
    }
}

static enum status reference_alloc(void *context, size_t bytes, void **memory) {
    (void)context;
    size_t padded;
    if (!checked_add(bytes, 64, &padded)) {
        return STATUS_OVERFLOW;
    }
    *memory = aligned_alloc(64, padded / 64 * 64);
    return *memory != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void reference_release(void *context, void *memory) {
    (void)context;
    free(memory);
}

static enum status reference_weights(void *context, const void *host, size_t bytes,
                                     const void **resident) {
    (void)context;
    (void)bytes;
    *resident = host;
    return STATUS_OK;
}

static void reference_release_weights(void *context, const void *resident) {
    (void)context;
    (void)resident;
}

static enum status reference_copy(void *context, void *destination, const void *source,
                                  size_t bytes) {
    (void)context;
    if (bytes > 0) {
        memcpy(destination, source, bytes);
    }
    return STATUS_OK;
}

static enum status reference_synchronize(void *context) {
    (void)context;
    return STATUS_OK;
}

#define REFERENCE_ENTRY(NAME, name, parameters, ...) \
    static enum status reference_##name parameters { \
        (void)context;                               \
        nn_##name(__VA_ARGS__);                      \
        return STATUS_OK;                            \
    }
ENGINE_NN_OPERATORS(REFERENCE_ENTRY)

static enum status reference_rope_table(void *context, float *x, size_t T, size_t heads, size_t HS,
                                        size_t stride, size_t position, const float *frequencies,
                                        enum nn_rope_layout layout) {
    (void)context;
    nn_rope_table(x, T, heads, HS, stride, position, frequencies, layout);
    return STATUS_OK;
}

static enum status reference_attention(void *context, float *out, const struct nn_attention *a) {
    struct reference *reference = context;
    if (a->S > reference->capacity) {
        size_t capacity = reference->capacity * 2 > a->S ? reference->capacity * 2 : a->S;
        size_t bytes;
        if (!checked_multiply(capacity, sizeof(double), &bytes)) {
            return STATUS_OVERFLOW;
        }
        double *scores = realloc(reference->scores, bytes);
        if (scores == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        reference->scores = scores;
        reference->capacity = capacity;
    }
    nn_attention(out, a, reference->scores);
    return STATUS_OK;
}

enum status engine_reference_create(struct engine *engine) {
    *engine = (struct engine){
        .name = "reference",
        .context = calloc(1, sizeof(struct reference)),
        .destroy = reference_destroy,
        .alloc = reference_alloc,
        .release = reference_release,
        .weights = reference_weights,
        .release_weights = reference_release_weights,
        .write = reference_copy,
        .read = reference_copy,
        .synchronize = reference_synchronize,
        .attention = reference_attention,
        .rope_table = reference_rope_table,
    };
#define SET_ENTRY(NAME, name, ...) engine->name = reference_##name;
    ENGINE_NN_OPERATORS(SET_ENTRY)
    return engine->context != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

void engine_destroy(struct engine *engine) {
    if (engine->destroy != NULL) {
        engine->destroy(engine->context);
    }
    *engine = (struct engine){0};
}
