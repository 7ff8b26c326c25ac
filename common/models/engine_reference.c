#include "common/models/engine.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

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

static enum status reference_matmul(void *context, float *out, const float *in, const float *weight,
                                    size_t M, size_t N, size_t K) {
    (void)context;
    nn_matmul(out, in, weight, M, N, K);
    return STATUS_OK;
}

static enum status reference_bias_add(void *context, float *x, const float *bias, size_t rows,
                                      size_t C) {
    (void)context;
    nn_bias_add(x, bias, rows, C);
    return STATUS_OK;
}

static enum status reference_activation(void *context, float *out, const float *in, size_t count,
                                        enum nn_activation f) {
    (void)context;
    nn_activation(out, in, count, f);
    return STATUS_OK;
}

static enum status reference_silu_gate(void *context, float *out, const float *gate,
                                       const float *up, size_t count) {
    (void)context;
    nn_silu_gate(out, gate, up, count);
    return STATUS_OK;
}

static enum status reference_residual(void *context, float *out, const float *a, const float *b,
                                      size_t count) {
    (void)context;
    nn_residual(out, a, b, count);
    return STATUS_OK;
}

static enum status reference_layernorm(void *context, float *out, const float *in,
                                       const float *weight, const float *bias, size_t rows,
                                       size_t C, float eps) {
    (void)context;
    nn_layernorm(out, in, weight, bias, rows, C, eps);
    return STATUS_OK;
}

static enum status reference_rmsnorm(void *context, float *out, const float *in,
                                     const float *weight, size_t rows, size_t C, float eps) {
    (void)context;
    nn_rmsnorm(out, in, weight, rows, C, eps);
    return STATUS_OK;
}

static enum status reference_softmax(void *context, float *out, const float *in, size_t rows,
                                     size_t C) {
    (void)context;
    nn_softmax(out, in, rows, C);
    return STATUS_OK;
}

static enum status reference_rope(void *context, float *x, size_t T, size_t heads, size_t HS,
                                  size_t stride, size_t position, float theta,
                                  enum nn_rope_layout layout) {
    (void)context;
    nn_rope(x, T, heads, HS, stride, position, theta, layout);
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

static enum status reference_embedding(void *context, float *out, const float *table,
                                       const int32_t *ids, size_t T, size_t C, bool accumulate) {
    (void)context;
    nn_embedding(out, table, ids, T, C, accumulate);
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
        .matmul = reference_matmul,
        .bias_add = reference_bias_add,
        .activation = reference_activation,
        .silu_gate = reference_silu_gate,
        .residual = reference_residual,
        .layernorm = reference_layernorm,
        .rmsnorm = reference_rmsnorm,
        .softmax = reference_softmax,
        .rope = reference_rope,
        .attention = reference_attention,
        .embedding = reference_embedding,
    };
    return engine->context != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

void engine_destroy(struct engine *engine) {
    if (engine->destroy != NULL) {
        engine->destroy(engine->context);
    }
    *engine = (struct engine){0};
}
