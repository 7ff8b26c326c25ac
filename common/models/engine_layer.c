#include "common/models/engine_layer.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

static enum status layer_write(void *context, void *resident, const void *host, size_t bytes) {
    PASS_ON(write, resident, host, bytes);
}

static enum status layer_read(void *context, void *host, const void *resident, size_t bytes) {
    PASS_ON(read, host, resident, bytes);
}

static enum status layer_synchronize(void *context) {
    const struct engine *base = engine_layer_base(context);
    return base->synchronize(base->context);
}

static enum status layer_matmul(void *context, float *out, const float *in, const float *weight,
                                size_t M, size_t N, size_t K) {
    PASS_ON(matmul, out, in, weight, M, N, K);
}

static enum status layer_bias_add(void *context, float *x, const float *bias, size_t rows,
                                  size_t C) {
    PASS_ON(bias_add, x, bias, rows, C);
}

static enum status layer_activation(void *context, float *out, const float *in, size_t count,
                                    enum nn_activation f) {
    PASS_ON(activation, out, in, count, f);
}

static enum status layer_silu_gate(void *context, float *out, const float *gate, const float *up,
                                   size_t count) {
    PASS_ON(silu_gate, out, gate, up, count);
}

static enum status layer_residual(void *context, float *out, const float *a, const float *b,
                                  size_t count) {
    PASS_ON(residual, out, a, b, count);
}

static enum status layer_layernorm(void *context, float *out, const float *in, const float *weight,
                                   const float *bias, size_t rows, size_t C, float eps) {
    PASS_ON(layernorm, out, in, weight, bias, rows, C, eps);
}

static enum status layer_rmsnorm(void *context, float *out, const float *in, const float *weight,
                                 size_t rows, size_t C, float eps) {
    PASS_ON(rmsnorm, out, in, weight, rows, C, eps);
}

static enum status layer_softmax(void *context, float *out, const float *in, size_t rows,
                                 size_t C) {
    PASS_ON(softmax, out, in, rows, C);
}

static enum status layer_rope(void *context, float *x, size_t T, size_t heads, size_t HS,
                              size_t stride, size_t position, float theta,
                              enum nn_rope_layout layout) {
    PASS_ON(rope, x, T, heads, HS, stride, position, theta, layout);
}

static enum status layer_attention(void *context, float *out, const struct nn_attention *a) {
    PASS_ON(attention, out, a);
}

static enum status layer_linear(void *context, float *out, const float *in, const float *weight,
                                const float *bias, size_t M, size_t N, size_t K) {
    PASS_ON(linear, out, in, weight, bias, M, N, K);
}

static enum status layer_linear_activation(void *context, float *out, const float *in,
                                           const float *weight, const float *bias, size_t M,
                                           size_t N, size_t K, enum nn_activation f) {
    PASS_ON(linear_activation, out, in, weight, bias, M, N, K, f);
}

static enum status layer_linear_residual_layernorm(void *context, float *x, const float *in,
                                                   const float *weight, const float *bias,
                                                   const struct nn_norm *norm, float *scratch,
                                                   size_t M, size_t N, size_t K) {
    PASS_ON(linear_residual_layernorm, x, in, weight, bias, norm, scratch, M, N, K);
}

static enum status layer_residual_layernorm(void *context, float *out, const float *a,
                                            const float *b, const struct nn_norm *norm, size_t rows,
                                            size_t C) {
    PASS_ON(residual_layernorm, out, a, b, norm, rows, C);
}

static enum status layer_attention_packed(void *context, float *out, const struct nn_attention *a,
                                          const int32_t *starts, const int32_t *host_starts) {
    PASS_ON(attention_packed, out, a, starts, host_starts);
}

/* The layer fuses the same operators as its base. */
static void pass_on_fused(struct engine *engine, const struct engine *base) {
    engine->linear = base->linear != NULL ? layer_linear : NULL;
    engine->linear_activation = base->linear_activation != NULL ? layer_linear_activation : NULL;
    engine->linear_residual_layernorm =
        base->linear_residual_layernorm != NULL ? layer_linear_residual_layernorm : NULL;
    engine->residual_layernorm = base->residual_layernorm != NULL ? layer_residual_layernorm : NULL;
    engine->attention_packed = base->attention_packed != NULL ? layer_attention_packed : NULL;
}

static enum status layer_embedding(void *context, float *out, const float *table,
                                   const int32_t *ids, size_t T, size_t C, bool accumulate) {
    PASS_ON(embedding, out, table, ids, T, C, accumulate);
}

static struct engine engine_of(const char *name, struct layer *layer) {
    struct engine engine = {
        .name = name,
        .context = layer,
        .destroy = layer_destroy,
        .alloc = layer_alloc,
        .release = layer_release,
        .weights = layer_weights,
        .release_weights = layer_release_weights,
        .write = layer_write,
        .read = layer_read,
        .synchronize = layer_synchronize,
        .matmul = layer_matmul,
        .bias_add = layer_bias_add,
        .activation = layer_activation,
        .silu_gate = layer_silu_gate,
        .residual = layer_residual,
        .layernorm = layer_layernorm,
        .rmsnorm = layer_rmsnorm,
        .softmax = layer_softmax,
        .rope = layer_rope,
        .attention = layer_attention,
        .embedding = layer_embedding,
    };
    pass_on_fused(&engine, &layer->base);
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
