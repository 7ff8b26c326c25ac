/* Converts a checkpoint's weights to fp32, for engines that read no other type. */
#include "common/base/checked.h"
#include "common/checkpoints/decoder/decoder_stored.h"
#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"

/* The first visit of all tensors measures them, the second converts them. */
struct converter {
    const struct gpt_neox_config *config;
    size_t bytes; /* from the first visit: size of the arena without the layers' structs */
    struct arena *arena;
    struct error *error;
};

/* query_key_value is always copied, as its rows are separated. */
static bool used_in_place(const struct decoder_weight *tensor) {
    return tensor->parts == 1 && decoder_stored_is_fp32(tensor->stored);
}

static enum status measure_tensor(void *context, const struct decoder_weight *tensor) {
    struct converter *converter = context;
    size_t part = decoder_weight_count(tensor) / tensor->parts;
    size_t bytes = used_in_place(tensor) ? 0 : arena_footprint(part, sizeof(float));
    for (size_t i = 0; i < tensor->parts; i++) {
        if (!checked_add(converter->bytes, bytes, &converter->bytes)) {
            return error_set(converter->error, STATUS_OVERFLOW,
                             "size of all fp32 weights overflows");
        }
    }
    return STATUS_OK;
}

/* One part of query_key_value, row by row. A bias has rows of one element. */
static enum status separate(const struct converter *converter, const struct decoder_weight *tensor,
                            size_t part, float *values) {
    const struct decoder_stored_tensor *stored = tensor->stored;
    size_t rows = converter->config->C, columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    size_t row_bytes = columns * nn_dtype_bytes(stored->dtype);
    for (size_t row = 0; row < rows; row++) {
        size_t from = gpt_neox_qkv_row(converter->config, part, row);
        const unsigned char *source = (const unsigned char *)stored->data + from * row_bytes;
        TRY(decoder_stored_read(stored->dtype, source, values + row * columns, columns));
    }
    return STATUS_OK;
}

static enum status convert_tensor(void *context, const struct decoder_weight *tensor) {
    struct converter *converter = context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    size_t count = decoder_weight_count(tensor) / tensor->parts;
    if (used_in_place(tensor)) {
        *tensor->plain[0] = stored->data;
        return STATUS_OK;
    }
    for (size_t part = 0; part < tensor->parts; part++) {
        float *values = arena_alloc(converter->arena, count, sizeof *values);
        if (values == NULL) {
            return error_set(converter->error, STATUS_OUT_OF_MEMORY, "out of memory for \"%s\"",
                             tensor->name);
        }
        *tensor->plain[part] = values;
        TRY(tensor->parts > 1 ? separate(converter, tensor, part, values)
                              : decoder_stored_read(stored->dtype, stored->data, values, count));
    }
    return STATUS_OK;
}

static enum status convert_weights(const struct gpt_neox_checkpoint *checkpoint, size_t most_bytes,
                                   struct gpt_neox_fp32 *fp32, struct error *error) {
    const struct gpt_neox_config *c = &checkpoint->config;
    struct gpt_neox_stored_weights source = checkpoint->weights; /* visitors get writable ones */
    struct gpt_neox_weights *weights = &fp32->weights;
    struct converter converter = {.config = c, .arena = &fp32->arena, .error = error};
    bool shared = checkpoint->shared_classifier;
    TRY(gpt_neox_tensors_visit(c, shared, &source, NULL, measure_tensor, &converter));
    TRY(decoder_fp32_arena(&fp32->arena, converter.bytes, c->L, sizeof *weights->layers, most_bytes,
                           (void **)&weights->layers, error));
    TRY(gpt_neox_tensors_visit(c, shared, &source, weights, convert_tensor, &converter));
    if (shared) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}

enum status gpt_neox_checkpoint_convert(const struct gpt_neox_checkpoint *checkpoint,
                                        size_t most_bytes, struct gpt_neox_fp32 *fp32,
                                        struct error *error) {
    *fp32 = (struct gpt_neox_fp32){0};
    enum status status = convert_weights(checkpoint, most_bytes, fp32, error);
    if (status != STATUS_OK) {
        gpt_neox_fp32_free(fp32);
    }
    return status;
}

void gpt_neox_fp32_free(struct gpt_neox_fp32 *fp32) {
    arena_free(&fp32->arena);
    *fp32 = (struct gpt_neox_fp32){0};
}
