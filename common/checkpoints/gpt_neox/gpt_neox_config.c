/* config.json: the keys of a Hugging Face configuration that a GPT-NeoX needs. */
#include <cjson/cJSON.h>
#include <string.h>

#include "common/base/json_object.h"
#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"

static const char MODEL_TYPE[] = "gpt_neox";
static const double LARGEST_THETA = 1e30;

static const struct {
    const char *name;
    enum nn_activation activation;
} activations[] = {
    {"gelu", NN_GELU},
    {"gelu_new", NN_GELU_TANH},
    {"gelu_fast", NN_GELU_TANH},
    {"gelu_pytorch_tanh", NN_GELU_TANH},
};

static enum status check_type(const cJSON *json, struct error *error) {
    const cJSON *item = json_member(json, "model_type");
    const char *type = cJSON_GetStringValue(item);
    if (item == NULL || type == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "\"model_type\" is %s, must be \"%s\"",
                         item == NULL ? "missing" : "not a string", MODEL_TYPE);
    }
    return strcmp(type, MODEL_TYPE) == 0
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED, "\"model_type\" is \"%.*s\", not \"%s\"",
                           json_shown(type), type, MODEL_TYPE);
}

bool gpt_neox_config_is(const char *json, size_t size) {
    cJSON *object;
    if (json_object_parse(&object, json, size, NULL) != STATUS_OK) {
        return false;
    }
    const char *type = cJSON_GetStringValue(json_member(object, "model_type"));
    bool is = type != NULL && strcmp(type, MODEL_TYPE) == 0;
    cJSON_Delete(object);
    return is;
}

static enum status read_activation(struct gpt_neox_config *c, const cJSON *json,
                                   struct error *error) {
    const cJSON *item = json_member(json, "hidden_act");
    const char *name = item != NULL ? cJSON_GetStringValue(item) : activations[0].name;
    if (name == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "\"hidden_act\" is not a string");
    }
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        if (strcmp(name, activations[i].name) == 0) {
            c->activation = activations[i].activation;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"hidden_act\" is \"%.*s\", supported are gelu, gelu_new, gelu_fast and "
                     "gelu_pytorch_tanh",
                     json_shown(name), name);
}

/* Reads true or false; *out stays if the key is absent. */
static enum status read_bool(const cJSON *json, const char *key, bool *out, struct error *error) {
    const cJSON *item = json_member(json, key);
    if (item != NULL && !cJSON_IsBool(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is neither true nor false", key);
    }
    *out = item != NULL ? cJSON_IsTrue(item) : *out;
    return STATUS_OK;
}

static enum status read_sizes(struct gpt_neox_config *c, const cJSON *json, struct error *error) {
    TRY(json_read_size(json, "hidden_size", 0, &c->C, error));
    TRY(json_read_size(json, "intermediate_size", 0, &c->hidden, error));
    TRY(json_read_size(json, "num_hidden_layers", 0, &c->L, error));
    TRY(json_read_size(json, "num_attention_heads", 0, &c->NH, error));
    TRY(json_read_size(json, "vocab_size", 0, &c->V, error));
    TRY(json_read_size(json, "max_position_embeddings", 0, &c->T, error));
    if (c->C % c->NH != 0) {
        return error_set(
            error, STATUS_BAD_FORMAT,
            "\"hidden_size\" is %zu, must be a multiple of \"num_attention_heads\", %zu", c->C,
            c->NH);
    }
    c->HS = c->C / c->NH;
    return c->HS % 2 == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT,
                           "\"hidden_size\" %zu over \"num_attention_heads\" %zu gives heads of "
                           "%zu channels, must be even",
                           c->C, c->NH, c->HS);
}

/* Newer files have rope's keys in an object of their own, "rope_parameters". */
static const cJSON *rope_member(const cJSON *json, const char *new_key, const char *key) {
    const cJSON *item = json_member(json_member(json, "rope_parameters"), new_key);
    item = item != NULL ? item : json_member(json, key);
    return item != NULL ? item : json_member(json, new_key);
}

static enum status read_rotary(struct gpt_neox_config *c, const cJSON *json, struct error *error) {
    const cJSON *item = rope_member(json, "partial_rotary_factor", "rotary_pct");
    double part = item == NULL ? 0.25 : cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    if (!(part > 0.0 && part <= 1.0)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"rotary_pct\" is not a number above 0 and up to 1");
    }
    c->rotary = (size_t)((double)c->HS * part);
    return c->rotary > 0 && c->rotary % 2 == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT,
                           "\"rotary_pct\" %g of heads of %zu channels rotates %zu channels, must "
                           "be an even number from 2 on",
                           part, c->HS, c->rotary);
}

static enum status read_theta(struct gpt_neox_config *c, const cJSON *json, struct error *error) {
    const cJSON *item = rope_member(json, "rope_theta", "rotary_emb_base");
    double theta = item == NULL ? 10000.0 : cJSON_IsNumber(item) ? item->valuedouble : 0.0;
    if (!(theta >= 1.0 && theta <= LARGEST_THETA)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"rotary_emb_base\" is not a number from 1 to %g", LARGEST_THETA);
    }
    c->rope_theta = (float)theta;
    return STATUS_OK;
}

/* Rotary embedding must not be scaled. */
static enum status check_scaling(const cJSON *json, const char *key, struct error *error) {
    const cJSON *object = json_member(json, key);
    const cJSON *type = json_member(object, "rope_type");
    type = type != NULL ? type : json_member(object, "type");
    const char *name = cJSON_GetStringValue(type);
    bool plain = object == NULL || (cJSON_IsObject(object) &&
                                    (type == NULL ? strcmp(key, "rope_parameters") == 0
                                                  : name != NULL && strcmp(name, "default") == 0));
    return plain
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "\"%s\" is set: scaled rotary embedding of a GPT-NeoX is not supported",
                           key);
}

static enum status check_architecture(const cJSON *json, struct error *error) {
    TRY(check_type(json, error));
    TRY(check_scaling(json, "rope_scaling", error));
    TRY(check_scaling(json, "rope_parameters", error));
    return json_member(json, "quantization_config") == NULL
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "\"quantization_config\" is set: quantized weights are not supported");
}

static enum status read_config(struct gpt_neox_config *config, bool *shared_classifier,
                               const cJSON *json, struct error *error) {
    config->parallel = config->attention_bias = true;
    TRY(check_architecture(json, error));
    TRY(read_sizes(config, json, error));
    TRY(read_rotary(config, json, error));
    TRY(read_theta(config, json, error));
    TRY(read_activation(config, json, error));
    TRY(json_read_fraction(json, "layer_norm_eps", 1e-5f, &config->norm_eps, error));
    TRY(read_bool(json, "use_parallel_residual", &config->parallel, error));
    TRY(read_bool(json, "attention_bias", &config->attention_bias, error));
    return read_bool(json, "tie_word_embeddings", shared_classifier, error);
}

enum status gpt_neox_config_parse(struct gpt_neox_config *config, bool *shared_classifier,
                                  const char *json, size_t size, struct error *error) {
    *config = (struct gpt_neox_config){0};
    *shared_classifier = false;
    cJSON *object;
    TRY(json_object_parse(&object, json, size, error));
    struct gpt_neox_config found = {0};
    enum status status = read_config(&found, shared_classifier, object, error);
    cJSON_Delete(object);
    if (status == STATUS_OK) {
        *config = found;
    }
    return status;
}
