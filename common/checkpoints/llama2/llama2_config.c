/* config.json: the keys of a Hugging Face configuration that a Llama2 needs. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "common/base/json_object.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"

static const char *const model_types[] = {"llama", "mistral"};
static const char *const activations[] = {"silu", "swish"};

static bool is_one_of(const char *text, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A key that may be absent; if present, its value must be one of two names. */
static enum status expect_name(const cJSON *json, const char *key, const char *const names[2],
                               struct error *error) {
    const cJSON *item = json_member(json, key);
    if (item == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsString(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is not a string", key);
    }
    if (!is_one_of(item->valuestring, names, 2)) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"%s\" is \"%.*s\", supported are \"%s\" and \"%s\"", key,
                         json_shown(item->valuestring), item->valuestring, names[0], names[1]);
    }
    return STATUS_OK;
}

/* A key that must be absent, null or false: otherwise it asks for another architecture. */
static enum status expect_unset(const cJSON *json, const char *key, const char *why,
                                struct error *error) {
    const cJSON *item = json_member(json, key);
    if (item == NULL || cJSON_IsFalse(item)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED, "\"%s\" is set: %s", key, why);
}

static enum status check_architecture(const cJSON *json, struct error *error) {
    TRY(expect_name(json, "model_type", model_types, error));
    TRY(expect_name(json, "hidden_act", activations, error));
    TRY(expect_unset(json, "attention_bias", "projections with bias are not supported", error));
    TRY(expect_unset(json, "mlp_bias", "projections with bias are not supported", error));
    TRY(expect_unset(json, "sliding_window",
                     "attention within a window is not supported, only over the whole context",
                     error));
    return expect_unset(json, "quantization_config", "quantized weights are not supported", error);
}

static enum status read_sizes(struct llama2_config *c, const cJSON *json, struct error *error) {
    TRY(json_read_size(json, "hidden_size", 0, &c->C, error));
    TRY(json_read_size(json, "intermediate_size", 0, &c->hidden, error));
    TRY(json_read_size(json, "num_hidden_layers", 0, &c->L, error));
    TRY(json_read_size(json, "num_attention_heads", 0, &c->NH, error));
    TRY(json_read_size(json, "num_key_value_heads", c->NH, &c->KVH, error));
    TRY(json_read_size(json, "vocab_size", 0, &c->V, error));
    TRY(json_read_size(json, "max_position_embeddings", 0, &c->T, error));
    if (json_member(json, "head_dim") == NULL && c->C % c->NH != 0) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "\"hidden_size\" is %zu, must be a multiple of \"num_attention_heads\", %zu", c->C,
            c->NH);
    }
    return json_read_size(json, "head_dim", c->C / c->NH, &c->HS, error);
}

static enum status check_heads(const struct llama2_config *c, struct error *error) {
    if (c->HS % 2 != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "head size is %zu, must be even", c->HS);
    }
    if (c->NH % c->KVH != 0) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "\"num_attention_heads\" is %zu, must be a multiple of \"num_key_value_heads\", %zu",
            c->NH, c->KVH);
    }
    return STATUS_OK;
}

/* Scaled rotary embedding is not supported: the key must be absent or of type "default". */
static enum status check_scaling(const cJSON *json, const char *key, struct error *error) {
    const cJSON *scaling = json_member(json, key);
    if (scaling == NULL) {
        return STATUS_OK;
    }
    const cJSON *type = json_member(scaling, "rope_type");
    type = type != NULL ? type : json_member(scaling, "type");
    const char *name = cJSON_GetStringValue(type);
    if (name == NULL || strcmp(name, "default") != 0) {
        name = name != NULL ? name : "";
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"%s\" is of type \"%.*s\": scaled rotary embedding is not supported",
                         key, json_shown(name), name);
    }
    return STATUS_OK;
}

static enum status check_partial(const cJSON *json, struct error *error) {
    const cJSON *item = json_member(json, "partial_rotary_factor");
    if (item == NULL || (cJSON_IsNumber(item) && item->valuedouble == 1.0)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"partial_rotary_factor\" is not 1: rotary embedding of only a part of each "
                     "head is not supported");
}

static enum status read_rope(struct llama2_config *c, const cJSON *json, struct error *error) {
    const cJSON *parameters = json_member(json, "rope_parameters"); /* since transformers 5 */
    TRY(check_scaling(json, "rope_scaling", error));
    TRY(check_scaling(json, "rope_parameters", error));
    TRY(check_partial(json, error));
    TRY(check_partial(parameters, error));
    c->rope_layout = NN_ROPE_HALVES;
    c->rope_theta = 10000.0f;
    const cJSON *theta = json_member(parameters, "rope_theta");
    theta = theta != NULL ? theta : json_member(json, "rope_theta");
    if (theta == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsNumber(theta) || !(theta->valuedouble >= 1.0 && theta->valuedouble <= 1e30)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"rope_theta\" is not a number from 1 to 1e30");
    }
    c->rope_theta = (float)theta->valuedouble;
    return STATUS_OK;
}

static enum status read_shared_classifier(bool *shared_classifier, const cJSON *json,
                                          struct error *error) {
    const cJSON *item = json_member(json, "tie_word_embeddings");
    if (item != NULL && !cJSON_IsBool(item)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"tie_word_embeddings\" is neither true nor false");
    }
    *shared_classifier = cJSON_IsTrue(item);
    return STATUS_OK;
}

static enum status read_config(struct llama2_config *config, bool *shared_classifier,
                               const cJSON *json, struct error *error) {
    TRY(check_architecture(json, error));
    TRY(read_sizes(config, json, error));
    TRY(check_heads(config, error));
    TRY(read_rope(config, json, error));
    TRY(json_read_fraction(json, "rms_norm_eps", 1e-6f, &config->norm_eps, error));
    return read_shared_classifier(shared_classifier, json, error);
}

enum status llama2_config_parse(struct llama2_config *config, bool *shared_classifier,
                                const char *json, size_t size, struct error *error) {
    *config = (struct llama2_config){0};
    *shared_classifier = false;
    cJSON *object;
    TRY(json_object_parse(&object, json, size, error));
    struct llama2_config found = {0};
    enum status status = read_config(&found, shared_classifier, object, error);
    cJSON_Delete(object);
    if (status == STATUS_OK) {
        *config = found;
    }
    return status;
}
