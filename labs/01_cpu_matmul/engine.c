/**
 * @file engine.c
 * @brief The reference engine with one entry replaced: matmul is cpu_matmul().
 *
 * All other entries hand their arguments on to the reference. So what changes
 * in the model's speed is the matmul's doing, and nothing else's.
 */
#include "labs/01_cpu_matmul/engine.h"

#include <stdlib.h>

#include "labs/01_cpu_matmul/matmul.h"

struct stage {
    struct engine reference;
    int threads;
};

static enum status stage_matmul(void *context, float *out, const float *in, const float *weight,
                                size_t M, size_t N, size_t K) {
    const struct stage *stage = context;
    return cpu_matmul(out, in, weight, M, N, K, stage->threads);
}

/* Calls an entry of the reference with its own context. */
#define REFERENCE(entry, ...)                                       \
    const struct engine *e = &((struct stage *)context)->reference; \
    return e->entry(e->context, __VA_ARGS__)

static void stage_destroy(void *context) {
    struct stage *stage = context;
    engine_destroy(&stage->reference);
    free(stage);
}

static enum status stage_alloc(void *context, size_t bytes, void **memory) {
    REFERENCE(alloc, bytes, memory);
}

static void stage_release(void *context, void *memory) {
    const struct engine *e = &((struct stage *)context)->reference;
    e->release(e->context, memory);
}

static enum status stage_weights(void *context, const void *host, size_t bytes,
                                 const void **resident) {
    REFERENCE(weights, host, bytes, resident);
}

static void stage_release_weights(void *context, const void *resident) {
    const struct engine *e = &((struct stage *)context)->reference;
    e->release_weights(e->context, resident);
}

static enum status stage_write(void *context, void *resident, const void *host, size_t bytes) {
    REFERENCE(write, resident, host, bytes);
}

static enum status stage_read(void *context, void *host, const void *resident, size_t bytes) {
    REFERENCE(read, host, resident, bytes);
}

static enum status stage_synchronize(void *context) {
    const struct engine *e = &((struct stage *)context)->reference;
    return e->synchronize(e->context);
}

static enum status stage_bias_add(void *context, float *x, const float *bias, size_t rows,
                                  size_t C) {
    REFERENCE(bias_add, x, bias, rows, C);
}

static enum status stage_activation(void *context, float *out, const float *in, size_t count,
                                    enum nn_activation f) {
    REFERENCE(activation, out, in, count, f);
}

static enum status stage_silu_gate(void *context, float *out, const float *gate, const float *up,
                                   size_t count) {
    REFERENCE(silu_gate, out, gate, up, count);
}

static enum status stage_residual(void *context, float *out, const float *a, const float *b,
                                  size_t count) {
    REFERENCE(residual, out, a, b, count);
}

static enum status stage_layernorm(void *context, float *out, const float *in, const float *weight,
                                   const float *bias, size_t rows, size_t C, float eps) {
    REFERENCE(layernorm, out, in, weight, bias, rows, C, eps);
}

static enum status stage_rmsnorm(void *context, float *out, const float *in, const float *weight,
                                 size_t rows, size_t C, float eps) {
    REFERENCE(rmsnorm, out, in, weight, rows, C, eps);
}

static enum status stage_softmax(void *context, float *out, const float *in, size_t rows,
                                 size_t C) {
    REFERENCE(softmax, out, in, rows, C);
}

static enum status stage_rope(void *context, float *x, size_t T, size_t heads, size_t HS,
                              size_t stride, size_t position, float theta,
                              enum nn_rope_layout layout) {
    REFERENCE(rope, x, T, heads, HS, stride, position, theta, layout);
}

static enum status stage_attention(void *context, float *out, const struct nn_attention *a) {
    REFERENCE(attention, out, a);
}

static enum status stage_embedding(void *context, float *out, const float *table,
                                   const int32_t *ids, size_t T, size_t C, bool accumulate) {
    REFERENCE(embedding, out, table, ids, T, C, accumulate);
}

enum status engine_cpu_matmul_create(struct engine *engine, int threads) {
    *engine = (struct engine){0};
    struct stage *stage = calloc(1, sizeof *stage);
    if (stage == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    stage->threads = threads;
    enum status status = engine_reference_create(&stage->reference);
    if (status != STATUS_OK) {
        free(stage);
        return status;
    }
    *engine = (struct engine){
        .name = "01_cpu_matmul",
        .context = stage,
        .destroy = stage_destroy,
        .alloc = stage_alloc,
        .release = stage_release,
        .weights = stage_weights,
        .release_weights = stage_release_weights,
        .write = stage_write,
        .read = stage_read,
        .synchronize = stage_synchronize,
        .matmul = stage_matmul,
        .bias_add = stage_bias_add,
        .activation = stage_activation,
        .silu_gate = stage_silu_gate,
        .residual = stage_residual,
        .layernorm = stage_layernorm,
        .rmsnorm = stage_rmsnorm,
        .softmax = stage_softmax,
        .rope = stage_rope,
        .attention = stage_attention,
        .embedding = stage_embedding,
    };
    return STATUS_OK;
}
