/* config.json: the keys of a Hugging Face configuration that a BERT needs. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_object.h"
#include "common/checkpoints/bert/bert_checkpoint.h"

static const char MODEL_TYPE[] = "bert";
static const char POSITIONS[] = "absolute";

struct size_key {
    const char *key;
    size_t offset;   /* of its member in struct bert_config */
    size_t fallback; /* value if the key is absent; 0: the key is required */
};

static const struct size_key size_keys[] = {
    {"hidden_size", offsetof(struct bert_config, C), 0},
    {"intermediate_size", offsetof(struct bert_config, hidden), 0},
    {"num_hidden_layers", offsetof(struct bert_config, L), 0},
    {"num_attention_heads", offsetof(struct bert_config, NH), 0},
    {"vocab_size", offsetof(struct bert_config, V), 0},
    {"max_position_embeddings", offsetof(struct bert_config, T), 0},
    {"type_vocab_size", offsetof(struct bert_config, types), 2},
};

enum { SIZE_KEYS = sizeof size_keys / sizeof *size_keys };

struct activation_name {
    const char *name;
    enum nn_activation activation;
};

/* Of several names for one activation, the first is written. */
static const struct activation_name activation_names[] = {
    {"gelu", NN_GELU}, {"gelu_new", NN_GELU_TANH}, {"gelu_pytorch_tanh", NN_GELU_TANH},
    {"relu", NN_RELU}, {"silu", NN_SILU},          {"swish", NN_SILU},
};

enum { ACTIVATION_NAMES = sizeof activation_names / sizeof *activation_names };

static enum status read_sizes(struct bert_config *config, const cJSON *json, struct error *error) {
    for (size_t i = 0; i < SIZE_KEYS; i++) {
        size_t value;
        TRY(json_read_size(json, size_keys[i].key, size_keys[i].fallback, &value, error));
        memcpy((char *)config + size_keys[i].offset, &value, sizeof value);
    }
    if (config->C % config->NH != 0) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "\"hidden_size\" is %zu, must be a multiple of \"num_attention_heads\", %zu", config->C,
            config->NH);
    }
    return STATUS_OK;
}

static enum status read_activation(struct bert_config *config, const cJSON *json,
                                   struct error *error) {
    const cJSON *item = json_member(json, "hidden_act");
    if (item == NULL) {
        config->activation = NN_GELU;
        return STATUS_OK;
    }
    if (!cJSON_IsString(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"hidden_act\" is not a string");
    }
    for (size_t i = 0; i < ACTIVATION_NAMES; i++) {
        if (strcmp(item->valuestring, activation_names[i].name) == 0) {
            config->activation = activation_names[i].activation;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"hidden_act\" is \"%.*s\", supported are gelu, gelu_new, "
                     "gelu_pytorch_tanh, relu, silu and swish",
                     json_shown(item->valuestring), item->valuestring);
}

/* A key that may be absent; if present, its value must be `want`. */
static enum status expect_string(const cJSON *json, const char *key, const char *want,
                                 struct error *error) {
    const cJSON *item = json_member(json, key);
    if (item == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsString(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is not a string", key);
    }
    if (strcmp(item->valuestring, want) != 0) {
        return error_set(error, STATUS_UNSUPPORTED, "\"%s\" is \"%.*s\", supported is \"%s\"", key,
                         json_shown(item->valuestring), item->valuestring, want);
    }
    return STATUS_OK;
}

/* A decoder has the same tensors, but its attention is causal. */
static enum status refuse_decoder(const cJSON *json, struct error *error) {
    const cJSON *item = json_member(json, "is_decoder");
    if (item == NULL || cJSON_IsFalse(item)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"is_decoder\" is not false: only encoders are "
                     "supported");
}

static enum status read_labels(struct bert_config *config, const cJSON *json, struct error *error) {
    const cJSON *names = json_member(json, "id2label");
    if (names == NULL) {
        return json_read_size(json, "num_labels", 2, &config->labels, error);
    }
    if (!cJSON_IsObject(names)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"id2label\" is not an object");
    }
    config->labels = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, names) {
        config->labels++;
    }
    if (config->labels == 0) {
        return error_set(error, STATUS_BAD_FORMAT, "\"id2label\" is empty");
    }
    return STATUS_OK;
}

static enum status read_config(struct bert_config *config, const cJSON *json, struct error *error) {
    TRY(expect_string(json, "model_type", MODEL_TYPE, error));
    TRY(read_sizes(config, json, error));
    TRY(read_activation(config, json, error));
    TRY(expect_string(json, "position_embedding_type", POSITIONS, error));
    TRY(refuse_decoder(json, error));
    TRY(json_read_fraction(json, "layer_norm_eps", 1e-12f, &config->norm_eps, error));
    return read_labels(config, json, error);
}

enum status bert_config_parse(struct bert_config *config, const char *json, size_t size,
                              struct error *error) {
    *config = (struct bert_config){0};
    cJSON *object;
    TRY(json_object_parse(&object, json, size, error));
    struct bert_config found = {0};
    enum status status = read_config(&found, object, error);
    cJSON_Delete(object);
    if (status == STATUS_OK) {
        *config = found;
    }
    return status;
}

static bool add_labels(cJSON *json, size_t labels) {
    cJSON *names = cJSON_AddObjectToObject(json, "id2label");
    bool added = names != NULL;
    for (size_t i = 0; i < labels && added; i++) {
        char key[32];
        char name[32];
        snprintf(key, sizeof key, "%zu", i);
        snprintf(name, sizeof name, "LABEL_%zu", i);
        added = cJSON_AddStringToObject(names, key, name) != NULL;
    }
    return added;
}

static bool add_config(cJSON *json, const struct bert_config *config, const char *activation) {
    bool added = cJSON_AddStringToObject(json, "model_type", MODEL_TYPE) != NULL;
    for (size_t i = 0; i < SIZE_KEYS && added; i++) {
        size_t value;
        memcpy(&value, (const char *)config + size_keys[i].offset, sizeof value);
        added = cJSON_AddNumberToObject(json, size_keys[i].key, (double)value) != NULL;
    }
    added = added && cJSON_AddStringToObject(json, "hidden_act", activation) != NULL &&
            cJSON_AddStringToObject(json, "position_embedding_type", POSITIONS) != NULL &&
            cJSON_AddNumberToObject(json, "layer_norm_eps", config->norm_eps) != NULL;
    return added && (config->labels == 0 || add_labels(json, config->labels));
}

enum status bert_config_serialize(const struct bert_config *config, char **json) {
    *json = NULL;
    const char *activation = NULL;
    for (size_t i = ACTIVATION_NAMES; i > 0; i--) {
        if (activation_names[i - 1].activation == config->activation) {
            activation = activation_names[i - 1].name;
        }
    }
    if (activation == NULL) {
        return STATUS_UNSUPPORTED;
    }
    cJSON *object = cJSON_CreateObject();
    if (object != NULL && add_config(object, config, activation)) {
        *json = cJSON_Print(object);
    }
    cJSON_Delete(object);
    return *json != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/* ---- Names of the labels ---- */

static void keep(struct bert_label *label, const char *name) {
    size_t length = strlen(name);
    if (length >= sizeof label->name) {
        length = sizeof label->name - 1;
        while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80) {
            length--; /* do not cut inside a character */
        }
    }
    memcpy(label->name, name, length);
    label->name[length] = '\0';
    for (char *c = label->name; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
}

static void keep_all(const cJSON *id2label, struct bert_label *names, size_t labels) {
    for (size_t i = 0; i < labels; i++) {
        char key[32];
        snprintf(key, sizeof key, "%zu", i);
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(id2label, key));
        if (name != NULL && name[0] != '\0') {
            keep(&names[i], name);
        } else {
            snprintf(names[i].name, sizeof names[i].name, "LABEL_%zu", i);
        }
    }
}

enum status bert_labels_parse(const char *json, size_t size, size_t labels,
                              struct bert_label **names, struct error *error) {
    cJSON *object = NULL;
    *names = NULL;
    if (json != NULL) {
        TRY(json_object_parse(&object, json, size, error));
    }
    *names = calloc(labels > 0 ? labels : 1, sizeof **names);
    if (*names != NULL) {
        keep_all(cJSON_GetObjectItemCaseSensitive(object, "id2label"), *names, labels);
    }
    cJSON_Delete(object);
    return *names != NULL ? STATUS_OK
                          : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the labels");
}
