#include "common/checkpoints/packed/packed_config.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "common/base/json_object.h"

static bool is_text(const cJSON *object, const char *key, const char *want) {
    const char *text = cJSON_GetStringValue(json_member(object, key));
    return text != NULL && strcmp(text, want) == 0;
}

/* "KEY" is VALUE: WHY. */
static enum status refuse(const cJSON *object, const char *key, const char *supported,
                          struct error *error) {
    const cJSON *item = json_member(object, key);
    const char *text = cJSON_GetStringValue(item);
    text = text != NULL ? text : item == NULL ? "missing" : "no text";
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"quantization_config\": \"%s\" is \"%.*s\"; supported is %s", key,
                     json_shown(text), text, supported);
}

static enum status read_bits(const cJSON *object, const char *key, struct packed_config *c,
                             struct error *error) {
    if (!json_size(json_member(object, key), &c->bits) || (c->bits != 4 && c->bits != 8)) {
        return error_set(error, STATUS_UNSUPPORTED, "\"quantization_config\": \"%s\" is not 4 or 8",
                         key);
    }
    return STATUS_OK;
}

/* -1 or null: a row. */
static enum status read_group(const cJSON *object, struct packed_config *c, struct error *error) {
    const cJSON *item = json_member(object, "group_size");
    bool row = item == NULL || cJSON_GetNumberValue(item) == -1.0;
    c->group = 0;
    if (row || (json_size(item, &c->group) && c->group > 0)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_FORMAT,
                     "\"quantization_config\": \"group_size\" is no positive whole number");
}

static enum status read_switch(const cJSON *object, const char *key, bool fallback, bool *out,
                               struct error *error) {
    const cJSON *item = json_member(object, key);
    if (item != NULL && !cJSON_IsBool(item)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"quantization_config\": \"%s\" is neither true nor false", key);
    }
    *out = item != NULL ? cJSON_IsTrue(item) : fallback;
    return STATUS_OK;
}

/* ---- compressed-tensors ---- */

static enum status read_weights(struct packed_config *c, const cJSON *weights,
                                struct error *error) {
    if (!cJSON_IsObject(weights)) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"quantization_config\": \"weights\" is missing or not an object");
    }
    if (json_member(weights, "type") != NULL && !is_text(weights, "type", "int")) {
        return refuse(weights, "type", "\"int\"", error);
    }
    TRY(read_bits(weights, "num_bits", c, error));
    TRY(read_switch(weights, "symmetric", true, &c->symmetric, error));
    TRY(read_group(weights, c, error));
    bool grouped = is_text(weights, "strategy", "group");
    if (!grouped && !is_text(weights, "strategy", "channel") &&
        json_member(weights, "strategy") != NULL) {
        return refuse(weights, "strategy", "\"group\" or \"channel\"", error);
    }
    if (grouped && c->group == 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"quantization_config\": the strategy is \"group\", but there is no "
                         "\"group_size\"");
    }
    return STATUS_OK;
}

static enum status read_compressed(struct packed_config *c, const cJSON *object,
                                   struct error *error) {
    const cJSON *groups = json_member(object, "config_groups");
    c->format = PACKED_COMPRESSED;
    if (!is_text(object, "format", "pack-quantized")) {
        return refuse(object, "format", "\"pack-quantized\"", error);
    }
    if (cJSON_GetArraySize(groups) != 1 || !cJSON_IsObject(groups)) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"quantization_config\": \"config_groups\" does not have one group; "
                         "several are not supported");
    }
    if (json_member(groups->child, "input_activations") != NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"quantization_config\": \"input_activations\" are quantized, which is "
                         "not supported");
    }
    return read_weights(c, json_member(groups->child, "weights"), error);
}

/* ---- GPTQ ---- */

static enum status read_gptq(struct packed_config *c, const cJSON *object, struct error *error) {
    bool second = is_text(object, "checkpoint_format", "gptq_v2");
    c->format = PACKED_GPTQ;
    c->zero_add = second ? 0 : 1;
    if (!second && json_member(object, "checkpoint_format") != NULL &&
        !is_text(object, "checkpoint_format", "gptq")) {
        return refuse(object, "checkpoint_format", "\"gptq\" or \"gptq_v2\"", error);
    }
    TRY(read_bits(object, "bits", c, error));
    return read_group(object, c, error);
}

static enum status read_config(struct packed_config *c, const cJSON *root, struct error *error) {
    const cJSON *object = json_member(root, "quantization_config");
    if (object == NULL || cJSON_IsFalse(object)) {
        return STATUS_OK;
    }
    if (is_text(object, "quant_method", "compressed-tensors")) {
        return read_compressed(c, object, error);
    }
    return is_text(object, "quant_method", "gptq")
               ? read_gptq(c, object, error)
               : refuse(object, "quant_method", "\"compressed-tensors\" or \"gptq\"", error);
}

enum status packed_config_parse(struct packed_config *config, const char *json, size_t size,
                                struct error *error) {
    cJSON *root;
    struct packed_config found = {.format = PACKED_NONE};
    *config = found;
    TRY(json_object_parse(&root, json, size, error));
    enum status status = read_config(&found, root, error);
    cJSON_Delete(root);
    if (status == STATUS_OK) {
        *config = found;
    }
    return status;
}

/* ---- Writing ---- */

static bool add_weights(cJSON *weights, const struct packed_config *c) {
    return cJSON_AddNumberToObject(weights, "num_bits", (double)c->bits) != NULL &&
           cJSON_AddStringToObject(weights, "type", "int") != NULL &&
           cJSON_AddBoolToObject(weights, "symmetric", c->symmetric) != NULL &&
           cJSON_AddStringToObject(weights, "strategy", c->group > 0 ? "group" : "channel") !=
               NULL &&
           (c->group == 0 ||
            cJSON_AddNumberToObject(weights, "group_size", (double)c->group) != NULL);
}

bool packed_config_add(struct cJSON *json, const struct packed_config *config, const char *method) {
    cJSON *object = cJSON_AddObjectToObject(json, "quantization_config");
    cJSON *group =
        cJSON_AddObjectToObject(cJSON_AddObjectToObject(object, "config_groups"), "group_0");
    cJSON *targets = cJSON_AddArrayToObject(group, "targets");
    cJSON *ignored = cJSON_AddArrayToObject(object, "ignore");
    cJSON *weights = cJSON_AddObjectToObject(group, "weights");
    return targets != NULL && ignored != NULL && weights != NULL &&
           cJSON_AddItemToArray(targets, cJSON_CreateString("Linear")) &&
           cJSON_AddItemToArray(ignored, cJSON_CreateString("lm_head")) &&
           cJSON_AddStringToObject(object, "quant_method", "compressed-tensors") != NULL &&
           cJSON_AddStringToObject(object, "format", "pack-quantized") != NULL &&
           cJSON_AddStringToObject(object, "quantization_status", "compressed") != NULL &&
           cJSON_AddStringToObject(object, "rounding", method) != NULL &&
           add_weights(weights, config);
}
