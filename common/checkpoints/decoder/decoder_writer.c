#include "common/checkpoints/decoder/decoder_writer.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum status decoder_writer_measure(struct decoder_writer *w, const struct decoder_weight *tensor) {
    size_t count = tensor->shape[0];
    if ((tensor->rank == 2 && !checked_multiply(count, tensor->shape[1], &count)) ||
        !checked_add(w->bytes, arena_footprint(count, nn_dtype_bytes(w->dtype)), &w->bytes)) {
        return error_set(w->error, STATUS_OVERFLOW, "size of all tensors overflows");
    }
    w->count++;
    return STATUS_OK;
}

enum status decoder_writer_allocate(struct decoder_writer *w) {
    enum status status = arena_create(&w->arena, w->bytes);
    w->tensors = calloc(w->count, sizeof *w->tensors);
    if (status == STATUS_OK && w->tensors == NULL) {
        status = STATUS_OUT_OF_MEMORY;
    }
    w->count = 0;
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(w->error, status, "no memory for %zu bytes of weights", w->bytes);
}

enum status decoder_writer_keep(struct decoder_writer *w, const struct decoder_weight *tensor,
                                void **kept) {
    static const enum safetensors_dtype dtypes[] = {
        [NN_F32] = SAFETENSORS_F32, [NN_F16] = SAFETENSORS_F16, [NN_BF16] = SAFETENSORS_BF16};
    size_t count = decoder_weight_count(tensor), element = nn_dtype_bytes(w->dtype);
    *kept = arena_alloc(&w->arena, count, element);
    struct safetensors_tensor entry = {
        .name = strdup(tensor->name),
        .dtype = dtypes[w->dtype],
        .rank = tensor->rank,
        .shape = {tensor->shape[0], tensor->shape[1]},
        .count = count,
        .data = *kept,
        .bytes = count * element,
    };
    w->tensors[w->count++] = entry; /* decoder_writer_free() frees the name, also after a failure */
    return entry.name != NULL && *kept != NULL
               ? STATUS_OK
               : error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for tensor \"%s\"",
                           tensor->name);
}

enum status decoder_writer_serialize(const struct decoder_writer *w, unsigned char **data,
                                     size_t *size) {
    return safetensors_serialize(w->tensors, w->count, data, size, w->error);
}

void decoder_writer_free(struct decoder_writer *w) {
    for (size_t i = 0; i < w->count && w->tensors != NULL; i++) {
        free(w->tensors[i].name);
    }
    free(w->tensors);
    arena_free(&w->arena);
    *w = (struct decoder_writer){0};
}

bool decoder_config_add(void *object, const char *architecture, const char *model_type,
                        const char *activation, enum nn_dtype dtype, bool shared_classifier,
                        const struct decoder_number *numbers, size_t count) {
    static const char *const names[] = {
        [NN_F32] = "float32", [NN_F16] = "float16", [NN_BF16] = "bfloat16"};
    cJSON *json = object, *architectures = cJSON_AddArrayToObject(json, "architectures");
    bool added = architectures != NULL &&
                 cJSON_AddItemToArray(architectures, cJSON_CreateString(architecture)) &&
                 cJSON_AddStringToObject(json, "model_type", model_type) != NULL &&
                 cJSON_AddStringToObject(json, "hidden_act", activation) != NULL &&
                 cJSON_AddStringToObject(json, "torch_dtype", names[dtype]) != NULL &&
                 cJSON_AddBoolToObject(json, "tie_word_embeddings", shared_classifier) != NULL;
    for (size_t i = 0; i < count && added; i++) {
        added = cJSON_AddNumberToObject(json, numbers[i].key, numbers[i].value) != NULL;
    }
    return added;
}
