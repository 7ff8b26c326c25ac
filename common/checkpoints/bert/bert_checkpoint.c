#include "common/checkpoints/bert/bert_checkpoint.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/grow.h"
#include "common/base/json_object.h"
#include "common/checkpoints/bert/bert_tensors.h"
#include "common/checkpoints/packed/packed_weights.h"

enum { CONFIG_LIMIT = 16 << 20, NAME_BYTES = 256 };

static const char PREFIX[] = "bert.";

/* Loading visits all tensors twice: first to check and measure them, then to copy them. */
struct loader {
    const struct safetensors *file;
    const struct bert_packed *packed; /* NULL: no matrix is stored in few bits */
    const char *prefix;               /* "bert." or "" */
    size_t bytes; /* from the first visit: size of the arena without the layers' structs */
    struct arena *arena;
    struct error *error;
};

/* What matrices of few bits are found by. */
struct bert_packed {
    struct packed_config config;
    struct decoder_shards shards;
};

static const char *full_name(const char *prefix, const struct bert_tensor *tensor, const char *name,
                             char *buffer) {
    snprintf(buffer, NAME_BYTES, "%s%s", tensor->outside ? "" : prefix, name);
    return buffer;
}

/* Finds a tensor by its current or its old name, or NULL; writes the current name to @p name. */
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

/* Takes the path from the front of a message: messages get it when the file is closed. */
static void remove_path(struct error *error, const char *path) {
    size_t length = strlen(path);
    if (error != NULL && strncmp(error->message, path, length) == 0 &&
        strncmp(error->message + length, ": ", 2) == 0) {
        char *rest = error->message + length + 2;
        memmove(error->message, rest, strlen(rest) + 1);
    }
}

/* The same of a matrix of few bits; found->words is NULL where it is none. */
static enum status find_packed(const struct loader *loader, const struct bert_tensor *tensor,
                               const char *name, struct packed_matrix *found) {
    *found = (struct packed_matrix){0};
    if (loader->packed == NULL || tensor->rank != 2) {
        return STATUS_OK;
    }
    const struct decoder_shards *shards = &loader->packed->shards;
    enum status status = packed_find(found, shards, &loader->packed->config, name, tensor->shape[0],
                                     tensor->shape[1], loader->error);
    if (status != STATUS_OK) {
        remove_path(loader->error, shards->path);
    }
    return status;
}

static enum status measure(struct loader *loader, size_t count) {
    return checked_add(loader->bytes, arena_footprint(count, sizeof(float)), &loader->bytes)
               ? STATUS_OK
               : error_set(loader->error, STATUS_OVERFLOW, "size of all tensors overflows");
}

static enum status check_tensor(void *context, const struct bert_tensor *tensor) {
    struct loader *loader = context;
    char name[NAME_BYTES];
    const struct safetensors_tensor *found = find_tensor(loader, tensor, name);
    struct packed_matrix packed;
    TRY(find_packed(loader, tensor, name, &packed));
    if (packed.words != NULL) {
        return measure(loader, packed.rows * packed.columns);
    }
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
    return measure(loader, found->count);
}

static enum status copy_tensor(void *context, const struct bert_tensor *tensor) {
    struct loader *loader = context;
    char name[NAME_BYTES];
    const struct safetensors_tensor *found = find_tensor(loader, tensor, name);
    struct packed_matrix packed;
    TRY(find_packed(loader, tensor, name, &packed));
    size_t count = packed.words != NULL ? packed.rows * packed.columns : found->count;
    float *values = arena_alloc(loader->arena, count, sizeof *values);
    if (values == NULL) {
        return error_set(loader->error, STATUS_OUT_OF_MEMORY, "out of memory for tensor \"%s\"",
                         name);
    }
    *tensor->slot = values;
    if (packed.words != NULL) {
        packed_dequantize(&packed, values);
        return STATUS_OK;
    }
    return safetensors_read_f32(found, values);
}

/* Creates the arena, in the size that the first visit measured. */
static enum status create_arena(struct bert_checkpoint *checkpoint, struct loader *loader) {
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

/* Which heads the file has. */
static struct bert_heads find_heads(const struct safetensors *file, const char *prefix) {
    char pooler[NAME_BYTES];
    snprintf(pooler, sizeof pooler, "%spooler.dense.weight", prefix);
    return (struct bert_heads){
        .pooler = safetensors_find(file, pooler) != NULL,
        .classifier = safetensors_find(file, "classifier.weight") != NULL,
    };
}

static enum status load_weights(struct bert_checkpoint *checkpoint, struct bert_heads heads,
                                struct loader *loader) {
    const struct bert_config *c = &checkpoint->config;
    struct bert_weights *weights = &checkpoint->weights;
    TRY(bert_tensors_visit(c, heads, weights, check_tensor, loader));
    TRY(create_arena(checkpoint, loader));
    return bert_tensors_visit(c, heads, weights, copy_tensor, loader);
}

/* A file with more layers would give a model that computes something else. */
static enum status check_layers(const struct loader *loader, size_t L) {
    char next[NAME_BYTES];
    snprintf(next, sizeof next, "%sencoder.layer.%zu.attention.self.query.weight", loader->prefix,
             L);
    char packed[NAME_BYTES + 8];
    snprintf(packed, sizeof packed, "%s_packed", next);
    return safetensors_find(loader->file, next) == NULL &&
                   safetensors_find(loader->file, packed) == NULL
               ? STATUS_OK
               : error_set(loader->error, STATUS_MISMATCH,
                           "there is a tensor \"%s\", but \"num_hidden_layers\" in config.json is "
                           "%zu",
                           next, L);
}

static enum status load(struct bert_checkpoint *checkpoint, const struct bert_config *config,
                        const struct safetensors *file, const struct bert_packed *packed,
                        struct error *error) {
    *checkpoint = (struct bert_checkpoint){.config = *config};
    const char *prefixed_name = "bert.embeddings.word_embeddings.weight";
    struct loader loader = {
        .file = file,
        .packed = packed,
        .prefix = safetensors_find(file, prefixed_name) != NULL ? PREFIX : "",
        .error = error,
    };
    const struct bert_heads heads = find_heads(file, loader.prefix);
    if (!heads.classifier) {
        checkpoint->config.labels = 0;
    }
    enum status status = check_layers(&loader, config->L);
    status = status == STATUS_OK ? load_weights(checkpoint, heads, &loader) : status;
    if (status != STATUS_OK) {
        bert_checkpoint_close(checkpoint);
    }
    return status;
}

enum status bert_checkpoint_load(struct bert_checkpoint *checkpoint,
                                 const struct bert_config *config, const struct safetensors *file,
                                 struct error *error) {
    return load(checkpoint, config, file, NULL, error);
}

static enum status read_config(struct bert_config *config, struct packed_config *packed,
                               const char *folder, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(folder_join(path, folder, "config.json", "checkpoint", error));
    char *text;
    size_t size;
    TRY(file_read(path, CONFIG_LIMIT, &text, &size, error));
    enum status status = bert_config_parse(config, text, size, error);
    status = status == STATUS_OK ? packed_config_parse(packed, text, size, error) : status;
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

enum status bert_checkpoint_open_file(struct bert_checkpoint *checkpoint,
                                      const struct bert_config *config,
                                      const struct packed_config *packed, const char *path,
                                      struct error *error) {
    struct bert_packed few = {.config = *packed};
    *checkpoint = (struct bert_checkpoint){0};
    TRY(decoder_shards_open_file(&few.shards, path, error));
    const struct bert_packed *used = packed->format != PACKED_NONE ? &few : NULL;
    enum status status = load(checkpoint, config, &few.shards.shards[0].file, used, error);
    decoder_shards_close(&few.shards);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

enum status bert_checkpoint_open(struct bert_checkpoint *checkpoint, const char *folder,
                                 struct error *error) {
    *checkpoint = (struct bert_checkpoint){0};
    struct bert_config config;
    struct packed_config packed;
    char path[FOLDER_PATH_BYTES];
    TRY(read_config(&config, &packed, folder, error));
    TRY(folder_join(path, folder, "model.safetensors", "checkpoint", error));
    return bert_checkpoint_open_file(checkpoint, &config, &packed, path, error);
}

void bert_checkpoint_close(struct bert_checkpoint *checkpoint) {
    arena_free(&checkpoint->arena);
    *checkpoint = (struct bert_checkpoint){0};
}

/* The list of tensors for safetensors_serialize(). */
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
    if (entry.name == NULL || !array_grow(&writer->tensors, &writer->capacity, writer->count + 1,
                                          sizeof *writer->tensors)) {
        free(entry.name);
        return error_set(writer->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors",
                         writer->count + 1);
    }
    writer->tensors[writer->count++] = entry;
    return STATUS_OK;
}

static enum status serialize_tensors(struct writer *writer, const struct bert_config *config,
                                     struct bert_heads heads, const struct bert_weights *weights,
                                     unsigned char **data, size_t *size) {
    struct bert_weights source = *weights; /* visitors get writable pointers: give them a copy */
    TRY(bert_tensors_visit(config, heads, &source, add_tensor, writer));
    return safetensors_serialize(writer->tensors, writer->count, data, size, writer->error);
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
    enum status status = serialize_tensors(&writer, config, heads, weights, data, size);
    for (size_t i = 0; i < writer.count; i++) {
        free(writer.tensors[i].name);
    }
    free(writer.tensors);
    return status;
}
