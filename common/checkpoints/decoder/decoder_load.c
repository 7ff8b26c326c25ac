#include "common/checkpoints/decoder/decoder_load.h"

#include "common/base/file.h"

enum { CONFIG_LIMIT = 16 << 20 };

enum status decoder_check_tensor(void *context, const struct decoder_weight *tensor) {
    const struct decoder_loader *loader = context;
    return decoder_shards_check(loader->shards, tensor->name, tensor->shape, tensor->rank,
                                loader->error);
}

struct decoder_stored_tensor decoder_stored_at(const struct decoder_weight *tensor,
                                               const void *data, enum nn_dtype dtype) {
    bool vector = tensor->rank == 1;
    return (struct decoder_stored_tensor){.data = data,
                                          .dtype = dtype,
                                          .rows = vector ? 1 : tensor->shape[0],
                                          .columns = tensor->shape[vector ? 0 : 1]};
}

enum status decoder_point_tensor(void *context, const struct decoder_weight *tensor) {
    static const enum nn_dtype dtypes[] = {
        [SAFETENSORS_F32] = NN_F32, [SAFETENSORS_F16] = NN_F16, [SAFETENSORS_BF16] = NN_BF16};
    const struct decoder_loader *loader = context;
    const struct decoder_located *located = decoder_shards_find(loader->shards, tensor->name);
    if (located == NULL || !safetensors_is_weight(located->tensor->dtype)) {
        return STATUS_BAD_FORMAT; /* checked before */
    }
    *tensor->stored =
        decoder_stored_at(tensor, located->tensor->data, dtypes[located->tensor->dtype]);
    return STATUS_OK;
}

enum status decoder_check_layers(const struct decoder_loader *loader, const char *next, size_t L) {
    return decoder_shards_find(loader->shards, next) == NULL
               ? STATUS_OK
               : error_set(loader->error, STATUS_MISMATCH,
                           "%s: there is a tensor \"%s\", but \"num_hidden_layers\" in config.json "
                           "is %zu",
                           loader->shards->path, next, L);
}

enum status decoder_config_read(const char *folder, char **text, size_t *size,
                                char path[FOLDER_PATH_BYTES], struct error *error) {
    TRY(folder_join(path, folder, "config.json", "checkpoint", error));
    return file_read(path, CONFIG_LIMIT, text, size, error);
}
