#include "common/train/program/train_config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"
#include "common/checkpoints/gpt_neox/gpt_neox_write.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/checkpoints/llama2/llama2_write.h"

enum { CONFIG_LIMIT = 16 << 20 };

/* ---- Reading ---- */

static enum status parse(struct train_config *config, const char *text, size_t size,
                         struct error *error) {
    config->is_gpt_neox = config->task == TRAIN_LM && gpt_neox_config_is(text, size);
    return config->task != TRAIN_LM ? bert_config_parse(&config->bert, text, size, error)
           : config->is_gpt_neox
               ? gpt_neox_config_parse(&config->gpt_neox, &config->tied, text, size, error)
               : llama2_config_parse(&config->llama2, &config->tied, text, size, error);
}

static enum status read_file(struct train_config *config, const char *path, struct error *error) {
    char *text;
    size_t size;
    TRY(file_read(path, CONFIG_LIMIT, &text, &size, error));
    enum status status = parse(config, text, size, error);
    free(text);
    if (status == STATUS_OK && llama2_extra(&config->llama2) != NULL) {
        status = error_set(error, STATUS_UNSUPPORTED, "training does not support %s",
                           llama2_extra(&config->llama2));
    }
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static size_t or_else(int given, size_t otherwise) {
    return given > 0 ? (size_t)given : otherwise;
}

static void take_bert(struct bert_config *c, const struct train_options *o) {
    *c = (struct bert_config){
        .C = (size_t)o->hidden,
        .hidden = or_else(o->intermediate, 4 * (size_t)o->hidden),
        .L = (size_t)o->layers,
        .NH = (size_t)o->heads,
        .T = or_else(o->positions, (size_t)o->max_length),
        .types = 2,
        .norm_eps = 1e-12f,
        .activation = NN_GELU,
    };
}

static void take_llama2(struct llama2_config *c, const struct train_options *o) {
    size_t C = (size_t)o->hidden;
    *c = (struct llama2_config){
        .C = C,
        .hidden = or_else(o->intermediate, (8 * C / 3 + 7) / 8 * 8),
        .L = (size_t)o->layers,
        .NH = (size_t)o->heads,
        .KVH = or_else(o->kv_heads, (size_t)o->heads),
        .HS = C / (size_t)o->heads,
        .T = or_else(o->positions, (size_t)o->max_length),
        .rope_theta = 10000.0f,
        .norm_eps = 1e-5f,
        .rope_layout = NN_ROPE_HALVES,
    };
}

static void take_gpt_neox(struct gpt_neox_config *c, const struct train_options *o) {
    size_t HS = (size_t)(o->hidden / o->heads);
    *c = (struct gpt_neox_config){
        .C = (size_t)o->hidden,
        .hidden = or_else(o->intermediate, 4 * (size_t)o->hidden),
        .L = (size_t)o->layers,
        .NH = (size_t)o->heads,
        .HS = HS,
        .T = or_else(o->positions, (size_t)o->max_length),
        .rotary = HS / 4 > 2 ? HS / 8 * 2 : 2,
        .rope_theta = 10000.0f,
        .norm_eps = 1e-5f,
        .activation = NN_GELU,
        .parallel = true,
        .attention_bias = true,
    };
}

static enum status take_flags(struct train_config *config, const struct train_options *o,
                              struct error *error) {
    if (o->hidden % o->heads != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--hidden %d is no multiple of --heads %d",
                         o->hidden, o->heads);
    }
    config->tied = o->tied;
    config->is_gpt_neox = o->task == TRAIN_LM && train_options_new_gpt_neox(o);
    if (config->is_gpt_neox) {
        take_gpt_neox(&config->gpt_neox, o);
    } else if (o->task == TRAIN_LM) {
        take_llama2(&config->llama2, o);
    } else {
        take_bert(&config->bert, o);
    }
    return STATUS_OK;
}

static enum status take(struct train_config *config, const struct train_options *o,
                        struct error *error) {
    char path[FOLDER_PATH_BYTES];
    if (o->config != NULL) {
        return read_file(config, o->config, error);
    }
    if (o->load == NULL) {
        return take_flags(config, o, error);
    }
    if (!path_exists(o->load)) {
        return error_set(error, STATUS_NOT_FOUND, "--load-checkpoint %s: there is no such folder",
                         o->load);
    }
    TRY(folder_join(path, o->load, "config.json", "checkpoint", error));
    return read_file(config, path, error);
}

enum status train_config_choose(struct train_config *config, const struct train_options *o,
                                struct error *error) {
    *config = (struct train_config){.task = o->task, .dropout = o->dropout};
    TRY(take(config, o, error));
    config->bert.labels = 0;
    size_t positions = o->task != TRAIN_LM   ? config->bert.T
                       : config->is_gpt_neox ? config->gpt_neox.T
                                             : config->llama2.T;
    if ((size_t)o->max_length > positions) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--max-length %d: the model has %zu positions", o->max_length, positions);
    }
    return STATUS_OK;
}

size_t train_config_vocabulary(const struct train_config *config) {
    return config->task != TRAIN_LM ? config->bert.V
           : config->is_gpt_neox    ? config->gpt_neox.V
                                    : config->llama2.V;
}

/* ---- Writing ---- */

static bool add_names(cJSON *root, const char *const *names, size_t count) {
    cJSON_DeleteItemFromObjectCaseSensitive(root, "id2label");
    cJSON_DeleteItemFromObjectCaseSensitive(root, "label2id");
    cJSON *by_id = cJSON_AddObjectToObject(root, "id2label");
    cJSON *by_name = cJSON_AddObjectToObject(root, "label2id");
    bool added = by_id != NULL && by_name != NULL;
    for (size_t i = 0; i < count && added; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        added = cJSON_AddStringToObject(by_id, key, names[i]) != NULL &&
                cJSON_AddNumberToObject(by_name, names[i], (double)i) != NULL;
    }
    return added;
}

/* Adds the fields that transformers needs beside the sizes. */
static bool add_rest(cJSON *root, const struct train_config *config, const char *const *names,
                     enum nn_dtype dtype) {
    static const char *const dtypes[] = {
        [NN_F32] = "float32", [NN_F16] = "float16", [NN_BF16] = "bfloat16"};
    const char *name =
        config->task == TRAIN_MLM ? "BertForMaskedLM" : "BertForSequenceClassification";
    cJSON *architectures = cJSON_AddArrayToObject(root, "architectures");
    return architectures != NULL && cJSON_AddItemToArray(architectures, cJSON_CreateString(name)) &&
           cJSON_AddStringToObject(root, "torch_dtype", dtypes[dtype]) != NULL &&
           cJSON_AddNumberToObject(root, "hidden_dropout_prob", (double)config->dropout) != NULL &&
           (names == NULL || add_names(root, names, config->bert.labels));
}

static enum status serialize_bert(const struct train_config *config, const char *const *names,
                                  enum nn_dtype dtype, char **json) {
    char *sizes;
    TRY(bert_config_serialize(&config->bert, &sizes));
    cJSON *root = cJSON_Parse(sizes);
    free(sizes);
    if (root != NULL && add_rest(root, config, names, dtype)) {
        *json = cJSON_Print(root);
    }
    cJSON_Delete(root);
    return *json != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

enum status train_config_serialize(const struct train_config *config,
                                   const char *const *label_names, enum nn_dtype dtype, char **json,
                                   struct error *error) {
    *json = NULL;
    enum status status =
        config->task != TRAIN_LM ? serialize_bert(config, label_names, dtype, json)
        : config->is_gpt_neox
            ? gpt_neox_config_serialize(&config->gpt_neox, config->tied, dtype, json)
            : llama2_config_serialize(&config->llama2, config->tied, dtype, json);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "cannot write the configuration: %s",
                                           status_message(status));
}
