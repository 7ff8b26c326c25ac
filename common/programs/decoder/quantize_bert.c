#include "common/programs/decoder/quantize_bert.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/folder.h"
#include "common/base/whole_folder.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/packed/packed_weights.h"
#include "common/checkpoints/safetensors/safetensors_write.h"
#include "common/programs/decoder/quantize_write.h"

/* What a tensor of the new file is made of. */
struct entry {
    const struct safetensors_tensor *from;
    bool copied; /* as it is; else a part */
    enum quantize_part part;
};

struct writing {
    const struct packed_config *config;
    struct safetensors file;
    struct safetensors_tensor *tensors; /* (count) */
    struct entry *entries;              /* (count) */
    size_t count, matrices;
    float *weights;               /* scratch (most) */
    struct low_bit_matrix matrix; /* the one whose words were written last */
    size_t most;                  /* weights of the largest matrix */
    struct error *error;
};

bool quantize_is_bert(const char *checkpoint) {
    cJSON *json;
    if (!folder_exists(checkpoint) || quantize_read_config(checkpoint, &json, NULL) != STATUS_OK) {
        return false;
    }
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "model_type"));
    bool is_bert = type != NULL && strcmp(type, "bert") == 0;
    cJSON_Delete(json);
    return is_bert;
}

/* Of the layers: queries, keys, values and the others; not embeddings, pooler and classifier. */
static bool is_rounded(const struct safetensors_tensor *t) {
    return t->rank == 2 && strstr(t->name, "encoder.layer.") != NULL &&
           safetensors_is_weight(t->dtype);
}

static struct low_bit_layout layout_of(const struct writing *w,
                                       const struct safetensors_tensor *t) {
    return quantize_layout(w->config, t->shape[0], t->shape[1]);
}

static enum status add(struct writing *w, const struct entry *entry, const char *suffix,
                       enum safetensors_dtype dtype, size_t element, size_t rows, size_t columns) {
    size_t length = strlen(entry->from->name) + strlen(suffix) + 1;
    struct safetensors_tensor t = {.name = malloc(length),
                                   .dtype = dtype,
                                   .rank = 2,
                                   .shape = {rows, columns},
                                   .count = rows * columns,
                                   .bytes = rows * columns * element};
    if (t.name == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for a name");
    }
    snprintf(t.name, length, "%s%s", entry->from->name, suffix);
    w->entries[w->count] = *entry;
    w->tensors[w->count++] = t;
    return STATUS_OK;
}

static enum status add_copy(struct writing *w, const struct safetensors_tensor *from) {
    struct safetensors_tensor t = *from;
    t.name = strdup(from->name);
    if (t.name == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for a name");
    }
    w->entries[w->count] = (struct entry){.from = from, .copied = true};
    w->tensors[w->count++] = t;
    return STATUS_OK;
}

static enum status add_tensor(struct writing *w, const struct safetensors_tensor *t) {
    if (!is_rounded(t)) {
        return add_copy(w, t);
    }
    const struct low_bit_layout l = layout_of(w, t);
    size_t groups = low_bit_groups(&l), bits = w->config->bits;
    w->most = t->count > w->most ? t->count : w->most;
    w->matrices++;
    TRY(add(w, &(struct entry){t, false, QUANTIZE_WORDS}, "_packed", SAFETENSORS_I32,
            sizeof(uint32_t), l.rows, packed_row_words(l.columns, bits)));
    TRY(add(w, &(struct entry){t, false, QUANTIZE_SCALES}, "_scale", SAFETENSORS_BF16,
            sizeof(uint16_t), l.rows, groups));
    return l.has_zeros ? add(w, &(struct entry){t, false, QUANTIZE_ZEROS}, "_zero_point",
                             SAFETENSORS_I32, sizeof(uint32_t), (l.rows + 7) / 8, groups)
                       : STATUS_OK;
}

static enum status fill(void *context, size_t index, void *data, struct error *error) {
    struct writing *w = context;
    const struct entry *e = &w->entries[index];
    if (e->copied) {
        memcpy(data, e->from->data, e->from->bytes);
        return STATUS_OK;
    }
    if (e->part != QUANTIZE_WORDS) {
        quantize_put_part(&w->matrix, e->part, data);
        return STATUS_OK;
    }
    w->matrix.layout = layout_of(w, e->from);
    TRY(safetensors_read_f32(e->from, w->weights));
    enum status status = low_bit_quantize(w->weights, &w->matrix, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, e->from->name);
    }
    quantize_put_part(&w->matrix, QUANTIZE_WORDS, data);
    return STATUS_OK;
}

static enum status write_weights(struct writing *w, const char *folder) {
    char path[FOLDER_PATH_BYTES];
    const struct safetensors_source source = {.fill = fill, .context = w};
    TRY(folder_join(path, folder, "model.safetensors", "checkpoint", w->error));
    w->tensors = calloc(QUANTIZE_PARTS * w->file.count, sizeof *w->tensors);
    w->entries = calloc(QUANTIZE_PARTS * w->file.count, sizeof *w->entries);
    if (w->tensors == NULL || w->entries == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors",
                         w->file.count);
    }
    for (size_t i = 0; i < w->file.count; i++) {
        TRY(add_tensor(w, &w->file.tensors[i]));
    }
    w->weights = malloc(w->most * sizeof *w->weights + 1);
    if (w->weights == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for a matrix of %zu",
                         w->most);
    }
    TRY(quantize_allocate(&w->matrix, w->most, w->error));
    return safetensors_write(path, w->tensors, w->count, &source, w->error);
}

static enum status write_files(struct writing *w, const char *folder, const char *checkpoint) {
    static const char *const names[] = {"vocab.txt", "tokenizer.json", "tokenizer_config.json",
                                        "special_tokens_map.json"};
    char path[FOLDER_PATH_BYTES];
    cJSON *json;
    TRY(write_weights(w, folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        TRY(folder_join(path, checkpoint, names[i], "checkpoint", w->error));
        TRY(path_exists(path) ? quantize_copy_file(path, folder, names[i], w->error) : STATUS_OK);
    }
    TRY(quantize_read_config(checkpoint, &json, w->error));
    return quantize_put_config(json, w->config, "rtn", folder, w->error);
}

static enum status write_folder(struct writing *w, const char *output, const char *checkpoint) {
    char partial[FOLDER_PATH_BYTES];
    TRY(whole_folder_begin(output, partial, w->error));
    enum status status = write_files(w, partial, checkpoint);
    if (status != STATUS_OK) {
        whole_folder_abandon(output);
        return status;
    }
    return whole_folder_finish(output, w->error);
}

/* Refuses what classify would refuse, and few bits. */
static enum status check(const char *checkpoint, const struct safetensors *file,
                         struct error *error) {
    struct bert_checkpoint bert;
    TRY(bert_checkpoint_open(&bert, checkpoint, error));
    bert_checkpoint_close(&bert);
    for (size_t i = 0; i < file->count; i++) {
        if (strstr(file->tensors[i].name, "_packed") != NULL) {
            return error_set(error, STATUS_UNSUPPORTED, "%s: its weights have few bits already",
                             checkpoint);
        }
    }
    return STATUS_OK;
}

enum status quantize_bert(const char *output, const char *checkpoint,
                          const struct packed_config *config, size_t *matrices,
                          struct error *error) {
    struct writing w = {.config = config, .error = error};
    char path[FOLDER_PATH_BYTES];
    TRY(folder_join(path, checkpoint, "model.safetensors", "checkpoint", error));
    TRY(safetensors_open(&w.file, path, error));
    enum status status = check(checkpoint, &w.file, error);
    status = status == STATUS_OK ? write_folder(&w, output, checkpoint) : status;
    *matrices = w.matrices;
    for (size_t i = 0; i < w.count; i++) {
        free(w.tensors[i].name);
    }
    free(w.tensors);
    free(w.entries);
    free(w.weights);
    quantize_free(&w.matrix);
    safetensors_close(&w.file);
    return status;
}
