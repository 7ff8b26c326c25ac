/**
 * @file reference.c
 * @brief The reference engine's table, and its memory: the host's.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/train/reference/reference_internal.h"
#include "common/train/train_engine.h"

enum { ALIGNMENT = 256 };

static void destroy(void *context) {
    (void)context; /* holds nothing */
}

static enum status allocate(void *context, size_t bytes, void **memory, struct error *error) {
    (void)context;
    size_t padded;
    *memory = NULL;
    if (!checked_add(bytes, ALIGNMENT, &padded)) {
        return error_set(error, STATUS_OVERFLOW, "%zu bytes of memory are too many", bytes);
    }
    padded -= padded % ALIGNMENT;
    void *block = aligned_alloc(ALIGNMENT, padded);
    if (block == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
    }
    memset(block, 0, padded);
    *memory = block;
    return STATUS_OK;
}

static void release(void *context, void *memory) {
    (void)context;
    free(memory);
}

static enum status copy_bytes(void *to, const void *from, size_t bytes) {
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return STATUS_OK;
}

static enum status write_bytes(void *context, void *resident, const void *host, size_t bytes) {
    (void)context;
    return copy_bytes(resident, host, bytes);
}

static enum status read_bytes(void *context, void *host, const void *resident, size_t bytes) {
    (void)context;
    return copy_bytes(host, resident, bytes);
}

static enum status zero(void *context, void *resident, size_t bytes) {
    (void)context;
    if (bytes > 0) {
        memset(resident, 0, bytes);
    }
    return STATUS_OK;
}

/* Both types are double. */
static enum status convert(void *context, void *copy, const void *weights, size_t count) {
    (void)context;
    return copy_bytes(copy, weights, count * sizeof(double));
}

static enum status synchronize(void *context, struct error *error) {
    (void)context;
    (void)error;
    return STATUS_OK;
}

enum status train_reference_create(struct train_engine *engine) {
    *engine = (struct train_engine){
        .name = "reference",
        .activations = TRAIN_F64,
        .weights = TRAIN_F64,
        .destroy = destroy,
        .alloc = allocate,
        .release = release,
        .write = write_bytes,
        .read = read_bytes,
        .zero = zero,
        .convert = convert,
        .synchronize = synchronize,
        .at_once = train_engine_just_do,
        .linear = reference_linear,
        .linear_backward = reference_linear_backward,
        .activation = reference_activation,
        .activation_backward = reference_activation_backward,
        .activation_bias_backward = reference_activation_bias_backward,
        .dropout_bias_backward = reference_dropout_bias_backward,
        .silu_gate = reference_silu_gate,
        .silu_gate_backward = reference_silu_gate_backward,
        .dropout = reference_dropout,
        .layernorm = reference_layernorm,
        .layernorm_backward = reference_layernorm_backward,
        .rmsnorm = reference_rmsnorm,
        .rmsnorm_backward = reference_rmsnorm_backward,
        .attention = reference_attention,
        .attention_backward = reference_attention_backward,
        .rope = reference_rope,
        .embedding = reference_embedding,
        .embedding_backward = reference_embedding_backward,
        .gather = reference_gather,
        .scatter = reference_scatter,
        .cross_entropy = reference_cross_entropy,
        .clip = reference_clip,
        .adamw = reference_adamw,
    };
    return STATUS_OK;
}
