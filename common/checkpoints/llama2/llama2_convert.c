/* Converts a checkpoint's weights to fp32, for engines that read no other type. */
#include "common/base/checked.h"
#include "common/checkpoints/decoder/decoder_stored.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"

/* The first visit of all tensors measures them, the second converts them. */
struct converter {
    size_t bytes; /* from the first visit: size of the arena without the layers' structs */
    struct arena *arena;
    struct error *error;
};

static enum status measure_tensor(void *context, const struct decoder_weight *tensor) {
    struct converter *converter = context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    size_t bytes = decoder_stored_is_fp32(stored)
                       ? 0
                       : arena_footprint(stored->rows * stored->columns, sizeof(float));
    if (!checked_add(converter->bytes, bytes, &converter->bytes)) {
        return error_set(converter->error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
    }
    return STATUS_OK;
}

static enum status convert_tensor(void *context, const struct decoder_weight *tensor) {
    struct converter *converter = context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    if (decoder_stored_is_fp32(stored)) {
        *tensor->plain[0] = stored->data;
        return STATUS_OK;
    }
    size_t count = stored->rows * stored->columns;
    float *values = arena_alloc(converter->arena, count, sizeof *values);
    if (values == NULL) {
        return error_set(converter->error, STATUS_OUT_OF_MEMORY, "out of memory for \"%s\"",
                         tensor->name);
    }
    *tensor->plain[0] = values;
    return decoder_stored_read(stored->dtype, stored->data, values, count);
}

static enum status convert_weights(const struct llama2_checkpoint *checkpoint, size_t most_bytes,
                                   struct llama2_fp32 *fp32, struct error *error) {
    const struct llama2_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    struct llama2_stored_weights source = checkpoint->weights; /* visitors get writable pointers */
    struct llama2_weights *weights = &fp32->weights;
    struct converter converter = {.arena = &fp32->arena, .error = error};
    TRY(llama2_tensors_visit(c, shared, &source, NULL, measure_tensor, &converter));
    TRY(decoder_fp32_arena(&fp32->arena, converter.bytes, c->L, sizeof *weights->layers, most_bytes,
                           (void **)&weights->layers, error));
    TRY(llama2_tensors_visit(c, shared, &source, weights, convert_tensor, &converter));
    if (shared) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}

enum status llama2_checkpoint_convert(const struct llama2_checkpoint *checkpoint, size_t most_bytes,
                                      struct llama2_fp32 *fp32, struct error *error) {
    *fp32 = (struct llama2_fp32){0};
    enum status status = convert_weights(checkpoint, most_bytes, fp32, error);
    if (status != STATUS_OK) {
        llama2_fp32_free(fp32);
    }
    return status;
}

void llama2_fp32_free(struct llama2_fp32 *fp32) {
    arena_free(&fp32->arena);
    *fp32 = (struct llama2_fp32){0};
}
