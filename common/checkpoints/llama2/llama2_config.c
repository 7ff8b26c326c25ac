/* config.json: the keys of a Hugging Face configuration that a Llama2 or a relative needs. */
#include <cjson/cJSON.h>
#include <string.h>

#include "common/base/json_object.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/checkpoints/llama2/llama2_rope_config.h"

enum { QWEN2_FULL = 28 }; /* Qwen2's "max_window_layers" where it is absent */

static const char *const activations[] = {"silu", "swish"};

/* A relative of Llama2: which settings of a configuration it heeds. */
struct family {
    const char *type;    /* "model_type" */
    bool bias_keys;      /* "attention_bias" and "mlp_bias" */
    bool qkv_bias;       /* queries, keys and values always have a bias */
    bool window;         /* "sliding_window" */
    bool window_is_used; /* it counts without "use_sliding_window" */
};

static const struct family families[] = {
    {"llama", .bias_keys = true},
    {"mistral", .window = true, .window_is_used = true},
    {"qwen2", .qkv_bias = true, .window = true},
};

/* Other architectures that people have, and what would be missing here. */
static const struct {
    const char *type, *missing;
} strangers[] = {
    {"mixtral", "mixture of experts"},
    {"qwen2_moe", "mixture of experts"},
    {"qwen3_moe", "mixture of experts"},
    {"olmoe", "mixture of experts"},
    {"deepseek_v2", "mixture of experts, compressed keys and values"},
    {"deepseek_v3", "mixture of experts, compressed keys and values"},
    {"llama4", "mixture of experts, images"},
    {"qwen3", "norms of queries and keys"},
    {"olmo2", "norms of queries and keys, norms after the sublayers"},
    {"gemma", "Gemma's norms, GELU in the feed-forward, scaled embeddings"},
    {"gemma2", "Gemma's norms, capped logits"},
    {"gemma3_text", "Gemma's norms, norms of queries and keys"},
    {"phi3", "queries, keys and values in one tensor"},
    {"gpt2", "learned positions, LayerNorm"},
    {"gpt_neox", "LayerNorm, parallel sublayers"},
};

static bool is_one_of(const char *text, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static enum status refuse_type(const char *type, struct error *error) {
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        missing = strcmp(type, strangers[i].type) == 0 ? strangers[i].missing : missing;
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"model_type\" is \"%.*s\"%s%s; supported are \"llama\", \"mistral\" and "
                     "\"qwen2\"",
                     json_shown(type), type, missing != NULL ? ", which needs " : "",
                     missing != NULL ? missing : "");
}

/* Without "model_type" it is a Llama. */
static enum status find_family(const struct family **family, const cJSON *json,
                               struct error *error) {
    const cJSON *item = json_member(json, "model_type");
    *family = &families[0];
    if (item == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsString(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"model_type\" is not a string");
    }
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(item->valuestring, families[i].type) == 0) {
            *family = &families[i];
            return STATUS_OK;
        }
    }
    return refuse_type(item->valuestring, error);
}

static enum status check_activation(const cJSON *json, struct error *error) {
    const cJSON *item = json_member(json, "hidden_act");
    if (item == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsString(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"hidden_act\" is not a string");
    }
    if (!is_one_of(item->valuestring, activations, 2)) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"hidden_act\" is \"%.*s\", supported are \"%s\" and \"%s\"",
                         json_shown(item->valuestring), item->valuestring, activations[0],
                         activations[1]);
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

/* Reads true or false; *out stays if the key is absent. */
static enum status read_bool(const cJSON *json, const char *key, bool *out, struct error *error) {
    const cJSON *item = json_member(json, key);
    if (item != NULL && !cJSON_IsBool(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is neither true nor false", key);
    }
    *out = item != NULL ? cJSON_IsTrue(item) : *out;
    return STATUS_OK;
}

static enum status check_architecture(const cJSON *json, struct error *error) {
    static const char experts[] = "mixture of experts is not supported";
    TRY(check_activation(json, error));
    TRY(expect_unset(json, "num_local_experts", experts, error));
    return expect_unset(json, "num_experts", experts, error);
}

static enum status read_biases(struct llama2_config *c, const struct family *family,
                               const cJSON *json, struct error *error) {
    c->qkv_bias = family->qkv_bias;
    if (!family->bias_keys) {
        return STATUS_OK;
    }
    TRY(read_bool(json, "attention_bias", &c->qkv_bias, error));
    c->out_bias = c->qkv_bias;
    return read_bool(json, "mlp_bias", &c->mlp_bias, error);
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

/* A layer of "layer_types": sliding or full attention. */
static enum status read_layer_type(const cJSON *type, bool *slides, struct error *error) {
    const char *name = cJSON_GetStringValue(type);
    name = name != NULL ? name : "";
    *slides = strcmp(name, "sliding_attention") == 0;
    if (*slides || strcmp(name, "full_attention") == 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"layer_types\" has \"%.*s\"; supported are \"full_attention\" and "
                     "\"sliding_attention\"",
                     json_shown(name), name);
}

/* "layer_types" says it of each layer; supported is: first all full ones, then all with a window.
 */
static enum status read_layer_types(struct llama2_config *c, const cJSON *types,
                                    struct error *error) {
    size_t layer = 0;
    const cJSON *type;
    if (!cJSON_IsArray(types) || (size_t)cJSON_GetArraySize(types) != c->L) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"layer_types\" is not an array with one entry for each of %zu layers",
                         c->L);
    }
    c->full_layers = c->L;
    cJSON_ArrayForEach(type, types) {
        bool slides;
        TRY(read_layer_type(type, &slides, error));
        if (!slides && layer > c->full_layers) {
            return error_set(error, STATUS_UNSUPPORTED,
                             "\"layer_types\": layer %zu has full attention behind layers with a "
                             "sliding window; supported is that all full ones come first",
                             layer);
        }
        c->full_layers = slides && layer < c->full_layers ? layer : c->full_layers;
        layer++;
    }
    return STATUS_OK;
}

static enum status read_window(struct llama2_config *c, const struct family *family,
                               const cJSON *json, struct error *error) {
    const cJSON *types = json_member(json, "layer_types"), *first;
    bool used = family->window_is_used;
    if (!family->window) {
        return expect_unset(json, "sliding_window", "a \"llama\" has none", error);
    }
    TRY(read_bool(json, "use_sliding_window", &used, error));
    if (!used || json_member(json, "sliding_window") == NULL) {
        return STATUS_OK;
    }
    TRY(json_read_size(json, "sliding_window", 0, &c->window, error));
    if (types != NULL) {
        return read_layer_types(c, types, error);
    }
    first = json_member(json, "max_window_layers"); /* counts the layers without a window */
    if (first != NULL && !json_size(first, &c->full_layers)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"max_window_layers\" is not a whole number");
    }
    c->full_layers = family->window_is_used ? 0 : first != NULL ? c->full_layers : QWEN2_FULL;
    return STATUS_OK;
}

static enum status read_config(struct llama2_config *config, bool *shared_classifier,
                               const cJSON *json, struct error *error) {
    const struct family *family;
    TRY(find_family(&family, json, error));
    TRY(check_architecture(json, error));
    TRY(read_sizes(config, json, error));
    TRY(check_heads(config, error));
    TRY(read_biases(config, family, json, error));
    TRY(read_window(config, family, json, error));
    TRY(llama2_rope_read(config, json, error));
    TRY(json_read_fraction(json, "rms_norm_eps", 1e-6f, &config->norm_eps, error));
    return read_bool(json, "tie_word_embeddings", shared_classifier, error);
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
