#include "common/checkpoints/decoder/decoder_shards.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/json_object.h"

enum { INDEX_LIMIT = 64 << 20 };

static const char SINGLE[] = "model.safetensors";
static const char INDEX[] = "model.safetensors.index.json";

static enum status out_of_memory(struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a checkpoint's files");
}

/* ---- The list of all tensors ---- */

static int by_name(const void *a, const void *b) {
    const struct decoder_located *x = a, *y = b;
    return strcmp(x->tensor->name, y->tensor->name);
}

/* Tensors of the same name are in the order of their shards. */
static int by_name_and_shard(const void *a, const void *b) {
    const struct decoder_located *x = a, *y = b;
    int order = by_name(a, b);
    return order != 0 ? order : (x->shard > y->shard) - (x->shard < y->shard);
}

static enum status check_duplicates(const struct decoder_shards *shards, struct error *error) {
    for (size_t i = 1; i < shards->tensor_count; i++) {
        const struct decoder_located *a = &shards->tensors[i - 1], *b = &shards->tensors[i];
        if (by_name(a, b) == 0) {
            const char *name = a->tensor->name;
            return error_set(error, STATUS_BAD_FORMAT, "%s: tensor \"%.*s\" is also in %s",
                             b->shard->path, json_shown(name), name, a->shard->path);
        }
    }
    return STATUS_OK;
}

static enum status check_index(const struct decoder_shards *shards,
                               const struct decoder_index *index, struct error *error) {
    for (size_t i = 0; i < index->count; i++) {
        const struct decoder_index_entry *entry = &index->entries[i];
        const struct decoder_shard *shard = &shards->shards[entry->file];
        if (safetensors_find(&shard->file, entry->tensor) == NULL) {
            return error_set(error, STATUS_BAD_FORMAT,
                             "%s: tensor \"%.*s\" is missing; the index says that it is here",
                             shard->path, json_shown(entry->tensor), entry->tensor);
        }
    }
    return STATUS_OK;
}

enum status decoder_shards_join(struct decoder_shards *shards, const struct decoder_index *index,
                                struct error *error) {
    size_t count = 0;
    for (size_t i = 0; i < shards->count; i++) {
        count += shards->shards[i].file.count; /* cannot overflow: all tensors are in memory */
    }
    shards->tensors = calloc(count > 0 ? count : 1, sizeof *shards->tensors);
    if (shards->tensors == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < shards->count; i++) {
        const struct decoder_shard *shard = &shards->shards[i];
        for (size_t k = 0; k < shard->file.count; k++) {
            shards->tensors[shards->tensor_count++] =
                (struct decoder_located){&shard->file.tensors[k], shard};
        }
    }
    qsort(shards->tensors, count, sizeof *shards->tensors, by_name_and_shard);
    TRY(check_duplicates(shards, error));
    return index != NULL ? check_index(shards, index, error) : STATUS_OK;
}

const struct decoder_located *decoder_shards_find(const struct decoder_shards *shards,
                                                  const char *name) {
    struct safetensors_tensor tensor = {.name = (char *)(uintptr_t)name};
    const struct decoder_located key = {.tensor = &tensor};
    return bsearch(&key, shards->tensors, shards->tensor_count, sizeof key, by_name);
}

enum status decoder_shards_check(const struct decoder_shards *shards, const char *name,
                                 const size_t *shape, size_t rank, struct error *error) {
    const struct decoder_located *located = decoder_shards_find(shards, name);
    if (located == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: tensor \"%s\" is missing", shards->path,
                         name);
    }
    const struct safetensors_tensor *found = located->tensor;
    if (found->rank != rank || memcmp(found->shape, shape, rank * sizeof *shape) != 0) {
        char got[SAFETENSORS_SHAPE_BYTES];
        char want[SAFETENSORS_SHAPE_BYTES];
        return error_set(
            error, STATUS_MISMATCH, "%s: tensor \"%s\" has shape %s, the configuration says %s",
            located->shard->path, name, safetensors_shape_text(found->shape, found->rank, got),
            safetensors_shape_text(shape, rank, want));
    }
    if (!safetensors_is_weight(found->dtype)) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s: tensor \"%s\": its type is none of F32, F16 and BF16",
                         located->shard->path, name);
    }
    return STATUS_OK;
}

/* ---- Files ---- */

static enum status open_shard(struct decoder_shards *shards, const char *folder, const char *name,
                              struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(folder_join(path, folder, name, "checkpoint", error));
    struct decoder_shard *shard = &shards->shards[shards->count];
    TRY(safetensors_open(&shard->file, path, error));
    shards->count++;
    shard->path = strdup(path);
    return shard->path != NULL ? STATUS_OK : out_of_memory(error);
}

static enum status open_files(struct decoder_shards *shards, const char *folder,
                              const char *const *names, size_t count, struct error *error) {
    shards->shards = calloc(count, sizeof *shards->shards);
    if (shards->shards == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(open_shard(shards, folder, names[i], error));
    }
    return STATUS_OK;
}

static enum status read_index(struct decoder_index *index, const char *path, struct error *error) {
    char *text;
    size_t size;
    TRY(file_read(path, INDEX_LIMIT, &text, &size, error));
    enum status status = decoder_index_parse(index, text, size, error);
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static enum status open_listed(struct decoder_shards *shards, const char *folder,
                               const struct decoder_index *index, struct error *error) {
    TRY(open_files(shards, folder, index->files, index->file_count, error));
    return decoder_shards_join(shards, index, error);
}

static enum status open_indexed(struct decoder_shards *shards, const char *folder,
                                struct error *error) {
    struct decoder_index index;
    TRY(read_index(&index, shards->path, error));
    enum status status = open_listed(shards, folder, &index, error);
    decoder_index_free(&index);
    return status;
}

static enum status open_single(struct decoder_shards *shards, const char *folder,
                               struct error *error) {
    const char *const names[] = {SINGLE};
    TRY(open_files(shards, folder, names, 1, error));
    return decoder_shards_join(shards, NULL, error);
}

/* If a folder has both, the single file is used, as in transformers. */
static enum status open_any(struct decoder_shards *shards, const char *folder,
                            struct error *error) {
    char single[FOLDER_PATH_BYTES], index[FOLDER_PATH_BYTES];
    TRY(folder_join(single, folder, SINGLE, "checkpoint", error));
    TRY(folder_join(index, folder, INDEX, "checkpoint", error));
    bool is_single = path_exists(single);
    if (!is_single && !path_exists(index)) {
        return error_set(error, STATUS_NOT_FOUND, "%s: neither %s nor %s is in this folder", folder,
                         SINGLE, INDEX);
    }
    shards->path = strdup(is_single ? single : index);
    if (shards->path == NULL) {
        return out_of_memory(error);
    }
    return is_single ? open_single(shards, folder, error) : open_indexed(shards, folder, error);
}

enum status decoder_shards_open(struct decoder_shards *shards, const char *folder,
                                struct error *error) {
    *shards = (struct decoder_shards){0};
    enum status status = open_any(shards, folder, error);
    if (status != STATUS_OK) {
        decoder_shards_close(shards);
    }
    return status;
}

static enum status open_file(struct decoder_shards *shards, const char *path, struct error *error) {
    shards->path = strdup(path);
    shards->shards = calloc(1, sizeof *shards->shards);
    if (shards->path == NULL || shards->shards == NULL) {
        return out_of_memory(error);
    }
    struct decoder_shard *shard = shards->shards;
    TRY(safetensors_open(&shard->file, path, error));
    shards->count = 1;
    shard->path = strdup(path);
    return shard->path != NULL ? decoder_shards_join(shards, NULL, error) : out_of_memory(error);
}

enum status decoder_shards_open_file(struct decoder_shards *shards, const char *path,
                                     struct error *error) {
    *shards = (struct decoder_shards){0};
    enum status status = open_file(shards, path, error);
    if (status != STATUS_OK) {
        decoder_shards_close(shards);
    }
    return status;
}

void decoder_shards_close(struct decoder_shards *shards) {
    for (size_t i = 0; i < shards->count; i++) {
        free(shards->shards[i].path);
        safetensors_close(&shards->shards[i].file);
    }
    free(shards->shards);
    free(shards->tensors);
    free(shards->path);
    *shards = (struct decoder_shards){0};
}
