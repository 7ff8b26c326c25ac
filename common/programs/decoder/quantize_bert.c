#include "common/programs/decoder/quantize_bert.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/folder.h"
#include "common/base/whole_folder.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/programs/decoder/quantize_list.h"
#include "common/programs/decoder/quantize_write.h"

struct writing {
    const struct packed_config *config;
    struct safetensors file;
    struct quantize_list list; /* its sources: the file's tensors */
    size_t matrices;
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

static enum status add_tensor(struct writing *w, size_t source) {
    const struct safetensors_tensor *t = &w->file.tensors[source];
    if (!is_rounded(t)) {
        return quantize_list_add_plain(&w->list, t->name, t, source, w->error);
    }
    const struct low_bit_layout layout = layout_of(w, t);
    w->matrices++;
    return quantize_list_add_parts(&w->list, t->name, &layout, source, w->error);
}

static enum status fill(void *context, size_t index, void *data, struct error *error) {
    struct writing *w = context;
    const struct quantize_item *item = &w->list.items[index];
    const struct safetensors_tensor *from = &w->file.tensors[item->source];
    if (item->part == QUANTIZE_PLAIN) {
        memcpy(data, from->data, from->bytes);
        return STATUS_OK;
    }
    if (item->part == QUANTIZE_WORDS) {
        w->list.matrix.layout = layout_of(w, from);
        TRY(safetensors_read_f32(from, w->list.scratch));
        enum status status = low_bit_quantize(w->list.scratch, &w->list.matrix, error);
        if (status != STATUS_OK) {
            return error_prefix(error, status, from->name);
        }
    }
    quantize_list_put_part(&w->list, item->part, data);
    return STATUS_OK;
}

static enum status write_weights(struct writing *w, const char *folder) {
    char path[FOLDER_PATH_BYTES];
    const struct safetensors_source source = {.fill = fill, .context = w};
    TRY(folder_join(path, folder, "model.safetensors", "checkpoint", w->error));
    TRY(quantize_list_reserve(&w->list, w->file.count, w->error));
    for (size_t i = 0; i < w->file.count; i++) {
        TRY(add_tensor(w, i));
    }
    TRY(quantize_list_allocate(&w->list, w->error));
    return safetensors_write(path, w->list.tensors, w->list.count, &source, w->error);
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
    quantize_list_free(&w.list);
    safetensors_close(&w.file);
    return status;
}
