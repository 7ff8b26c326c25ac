#include "common/checkpoints/bert/bert_checkpoint.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/json_object.h"
#include "common/checkpoints/bert/bert_tensors.h"

enum { CONFIG_LIMIT = 16 << 20, NAME_BYTES = 256 };

static const char PREFIX[] = "bert.";

/* Loading walks the tensors twice: once to check and measure, once to copy. */
struct loader {
    const struct safetensors *file;
    const char *prefix; /* "bert." or "" */
    size_t bytes;       /* first walk: what the arena must hold */
    struct arena *arena;
    struct error *error;
};

static const char *full_name(const char *prefix, const struct bert_tensor *tensor, const char *name,
                             char *buffer) {
    snprintf(buffer, NAME_BYTES, "%s%s", tensor->outside ? "" : prefix, name);
    return buffer;
}

/* The tensor under its new or old name, or NULL; the new name is left in @p name. */
static const struct safetensors_tensor *find_tensor(const struct loader *loader,
                                                    const struct bert_tensor *tensor, char *name) {
    const struct safetensors_tensor *found = NULL;
    if (tensor->old_name != NULL) {
        full_name(loader->prefix, tensor, tensor->old_name, name);
        found = safetensors_find(loader->file, name);
    }
    full_name(loader->prefix, tensor, tensor->name, name);
    const struct safetensors_tensor *current = safetensors_find(loader->file, name);
    return current != NULL ? current : found;
}

static enum status check_tensor(void *context, const struct bert_tensor *tensor) {
    struct loader *loader = context;
    char name[NAME_BYTES];
    const struct safetensors_tensor *found = find_tensor(loader, tensor, name);
    if (found == NULL) {
        return error_set(loader->error, STATUS_BAD_FORMAT, "tensor \"%s\" is missing", name);
    }
    if (found->rank != tensor->rank ||
        memcmp(found->shape, tensor->shape, tensor->rank * sizeof *tensor->shape) != 0) {
        char got[SAFETENSORS_SHAPE_BYTES];
        char want[SAFETENSORS_SHAPE_BYTES];
        return error_set(loader->error, STATUS_MISMATCH,
                         "tensor \"%s\" has shape %s, the configuration says %s", found->name,
                         safetensors_shape_text(found->shape, found->rank, got),
                         safetensors_shape_text(tensor->shape, tensor->rank, want));
    }
    if (!safetensors_is_weight(found->dtype)) {
        return error_set(loader->error, STATUS_UNSUPPORTED,
                         "tensor \"%s\": its type is none of F32, F16 and BF16", found->name);
    }
    if (!checked_add(loader->bytes, arena_footprint(found->count, sizeof(float)), &loader->bytes)) {
        return error_set(loader->error, STATUS_OVERFLOW, "size of all tensors overflows");
    }
    return STATUS_OK;
}

static enum status copy_tensor(void *context, const struct bert_tensor *tensor) {
    struct loader *loader = context;
    char name[NAME_BYTES];
    const struct safetensors_tensor *found = find_tensor(loader, tensor, name);
    float *values = arena_alloc(loader->arena, found->count, sizeof *values);
    if (values == NULL) {
        return error_set(loader->error, STATUS_OUT_OF_MEMORY, "out of memory for tensor \"%s\"",
                         name);
    }
    *tensor->slot = values;
    return safetensors_read_f32(found, values);
}

/* Takes the arena, of exactly the size that the first walk found. */
static enum status take_memory(struct bert_checkpoint *checkpoint, struct loader *loader) {
    size_t L = checkpoint->config.L;
    size_t layers = arena_footprint(L, sizeof *checkpoint->weights.layers);
    size_t bytes;
    if (layers == SIZE_MAX || !checked_add(loader->bytes, layers, &bytes)) {
        return error_set(loader->error, STATUS_OVERFLOW, "size of all tensors overflows");
    }
    enum status status = arena_create(&checkpoint->arena, bytes);
    if (status != STATUS_OK) {
        return error_set(loader->error, status, "no memory for %zu bytes of weights", bytes);
    }
    loader->arena = &checkpoint->arena;
    checkpoint->weights.layers =
        arena_alloc(&checkpoint->arena, L, sizeof *checkpoint->weights.layers);
    return checkpoint->weights.layers != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

enum status bert_checkpoint_load(struct bert_checkpoint *checkpoint,
                                 const struct bert_config *config, const struct safetensors *file,
                                 struct error *error) {
    *checkpoint = (struct bert_checkpoint){.config = *config};
    const char *landmark = "bert.embeddings.word_embeddings.weight";
    struct loader loader = {
        .file = file,
        .prefix = safetensors_find(file, landmark) != NULL ? PREFIX : "",
        .error = error,
    };
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%spooler.dense.weight", loader.prefix);
    struct bert_heads heads = {
        .pooler = safetensors_find(file, name) != NULL,
        .classifier = safetensors_find(file, "classifier.weight") != NULL,
    };
    if (!heads.classifier) {
        checkpoint->config.labels = 0;
    }
    const struct bert_config *c = &checkpoint->config;
    struct bert_weights *weights = &checkpoint->weights;
    enum status status = bert_tensors_visit(c, heads, weights, check_tensor, &loader);
    if (status == STATUS_OK) {
        status = take_memory(checkpoint, &loader);
    }
    if (status == STATUS_OK) {
        status = bert_tensors_visit(c, heads, weights, copy_tensor, &loader);
    }
    if (status != STATUS_OK) {
        bert_checkpoint_close(checkpoint);
    }
    return status;
}

static enum status open_config(struct bert_config *config, const char *folder,
                               struct error *error) {
    char path[FOLDER_PATH_BYTES];
    enum status status = folder_join(path, folder, "config.json", "checkpoint", error);
    if (status != STATUS_OK) {
        return status;
    }
    char *text;
    size_t size;
    status = file_read(path, CONFIG_LIMIT, &text, &size, error);
    if (status != STATUS_OK) {
        return status;
    }
    status = bert_config_parse(config, text, size, error);
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

enum status bert_checkpoint_open(struct bert_checkpoint *checkpoint, const char *folder,
                                 struct error *error) {
    *checkpoint = (struct bert_checkpoint){0};
    struct bert_config config;
    char path[FOLDER_PATH_BYTES];
    enum status status = open_config(&config, folder, error);
    if (status == STATUS_OK) {
        status = folder_join(path, folder, "model.safetensors", "checkpoint", error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct safetensors file;
    status = safetensors_open(&file, path, error);
    if (status != STATUS_OK) {
        return status;
    }
    status = bert_checkpoint_load(checkpoint, &config, &file, error);
    safetensors_close(&file);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

void bert_checkpoint_close(struct bert_checkpoint *checkpoint) {
    arena_free(&checkpoint->arena);
    *checkpoint = (struct bert_checkpoint){0};
}

/* Collects what safetensors_serialize() takes. */
struct writer {
    const char *prefix;
    struct safetensors_tensor *tensors;
    size_t count, capacity;
    struct error *error;
};

static enum status add_tensor(void *context, const struct bert_tensor *tensor) {
    struct writer *writer = context;
    char name[NAME_BYTES];
    full_name(writer->prefix, tensor, tensor->name, name);
    struct safetensors_tensor entry = {
        .name = strdup(name),
        .dtype = SAFETENSORS_F32,
        .rank = tensor->rank,
        .count = tensor->rank == 2 ? tensor->shape[0] * tensor->shape[1] : tensor->shape[0],
        .data = *tensor->slot,
    };
    memcpy(entry.shape, tensor->shape, sizeof tensor->shape);
    entry.bytes = entry.count * sizeof(float);
    if (writer->count == writer->capacity && entry.name != NULL) {
        size_t capacity = writer->capacity * 2 + 16;
        void *grown = realloc(writer->tensors, capacity * sizeof *writer->tensors);
        writer->tensors = grown != NULL ? grown : writer->tensors;
        writer->capacity = grown != NULL ? capacity : writer->capacity;
    }
    if (entry.name == NULL || writer->count == writer->capacity) {
        free(entry.name);
        return error_set(writer->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors",
                         writer->count + 1);
    }
    writer->tensors[writer->count++] = entry;
    return STATUS_OK;
}

enum status bert_checkpoint_serialize(const struct bert_config *config,
                                      const struct bert_weights *weights, unsigned char **data,
                                      size_t *size, struct error *error) {
    *data = NULL;
    *size = 0;
    const struct bert_heads heads = {
        .pooler = weights->pooler.weight != NULL,
        .classifier = weights->classifier.weight != NULL,
    };
    struct writer writer = {.prefix = heads.classifier ? PREFIX : "", .error = error};
    struct bert_weights source = *weights; /* the walk hands out pointers one could write to */
    enum status status = bert_tensors_visit(config, heads, &source, add_tensor, &writer);
    if (status == STATUS_OK) {
        status = safetensors_serialize(writer.tensors, writer.count, data, size, error);
    }
    for (size_t i = 0; i < writer.count; i++) {
        free(writer.tensors[i].name);
    }
    free(writer.tensors);
    return status;
}
