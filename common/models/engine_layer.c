#include "common/models/engine_layer.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/engine_operators.h"

struct layer {
    struct engine base;
    void *own;
    void (*destroy_own)(void *own);
    _Alignas(max_align_t) unsigned char copy[]; /* of the stage's context, if it is a copy */
};

/* Calls an entry of the base with the base's context. */
#define PASS_ON(entry, ...)                                 \
    const struct engine *base = engine_layer_base(context); \
    return base->entry(base->context, __VA_ARGS__)

void *engine_layer_own(void *context) {
    return ((struct layer *)context)->own;
}

const struct engine *engine_layer_base(void *context) {
    return &((struct layer *)context)->base;
}

static void layer_destroy(void *context) {
    struct layer *layer = context;
    if (layer->destroy_own != NULL) {
        layer->destroy_own(layer->own);
    }
    engine_destroy(&layer->base);
    free(layer);
}

static enum status layer_alloc(void *context, size_t bytes, void **memory) {
    PASS_ON(alloc, bytes, memory);
}

static void layer_release(void *context, void *memory) {
    const struct engine *base = engine_layer_base(context);
    base->release(base->context, memory);
}

static enum status layer_weights(void *context, const void *host, size_t bytes,
                                 const void **resident) {
    PASS_ON(weights, host, bytes, resident);
}

static void layer_release_weights(void *context, const void *resident) {
    const struct engine *base = engine_layer_base(context);
    base->release_weights(base->context, resident);
}

static enum status layer_synchronize(void *context) {
    const struct engine *base = engine_layer_base(context);
    return base->synchronize(base->context);
}

/* An entry that calls the base's. */
#define LAYER_ENTRY(NAME, name, parameters, ...) \
    static enum status layer_##name parameters { \
        PASS_ON(name, __VA_ARGS__);              \
    }
ENGINE_COPIES(LAYER_ENTRY)
ENGINE_OPERATORS(LAYER_ENTRY)
ENGINE_FUSED_OPERATORS(LAYER_ENTRY)

/* The layer fuses the same operators as its base. */
static struct engine engine_of(const char *name, struct layer *layer) {
    const struct engine *base = &layer->base;
    struct engine engine = {
        .name = name,
        .context = layer,
        .destroy = layer_destroy,
        .alloc = layer_alloc,
        .release = layer_release,
        .weights = layer_weights,
        .release_weights = layer_release_weights,
        .synchronize = layer_synchronize,
    };
#define SET_ENTRY(NAME, name, ...) engine.name = layer_##name;
    ENGINE_COPIES(SET_ENTRY)
    ENGINE_OPERATORS(SET_ENTRY)
#define SET_FUSED(NAME, name, ...) engine.name = base->name != NULL ? layer_##name : NULL;
    ENGINE_FUSED_OPERATORS(SET_FUSED)
    return engine;
}

/* A layer with `bytes` bytes of `own` in it, or with `own` itself if there are none. */
static enum status create(struct engine *engine, const char *name, struct engine *base, void *own,
                          size_t bytes, void (*destroy_own)(void *own)) {
    *engine = (struct engine){0};
    struct layer *layer = malloc(sizeof *layer + bytes);
    if (layer == NULL) {
        if (destroy_own != NULL) {
            destroy_own(own);
        }
        engine_destroy(base);
        return STATUS_OUT_OF_MEMORY;
    }
    *layer = (struct layer){.base = *base, .own = own, .destroy_own = destroy_own};
    if (bytes > 0) {
        layer->own = memcpy(layer->copy, own, bytes);
    }
    *base = (struct engine){0};
    *engine = engine_of(name, layer);
    return STATUS_OK;
}

enum status engine_layer_create(struct engine *engine, const char *name, struct engine *base,
                                void *own, void (*destroy_own)(void *own)) {
    return create(engine, name, base, own, 0, destroy_own);
}

enum status engine_layer_create_copy(struct engine *engine, const char *name, struct engine *base,
                                     const void *own, size_t bytes, void (*release)(void *own),
                                     struct error *error) {
    enum status status = create(engine, name, base, (void *)own, bytes, release);
    return status == STATUS_OK ? status : error_set(error, status, "out of memory for the engine");
}
