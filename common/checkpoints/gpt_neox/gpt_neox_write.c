#include "common/checkpoints/gpt_neox/gpt_neox_write.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/checked.h"
#include "common/base/folder.h"
#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"
#include "common/checkpoints/safetensors/safetensors.h"

/* The first visit of all tensors counts and measures them, the second stores them. */
struct writer {
    const struct gpt_neox_config *config;
    enum nn_dtype dtype;
    size_t bytes;
    struct arena arena; /* values as stored */
    struct safetensors_tensor *tensors;
    size_t count;
    struct error *error;
};

static enum status measure_tensor(void *context, const struct gpt_neox_tensor *tensor) {
    struct writer *w = context;
    size_t count = tensor->shape[0];
    if ((tensor->rank == 2 && !checked_multiply(count, tensor->shape[1], &count)) ||
        !checked_add(w->bytes, arena_footprint(count, nn_dtype_bytes(w->dtype)), &w->bytes)) {
        return error_set(w->error, STATUS_OVERFLOW, "size of all tensors overflows");
    }
    w->count++;
    return STATUS_OK;
}

/* Puts the rows of q, k and v where query_key_value has them. A bias has rows of one element. */
static void join(const struct writer *w, const struct gpt_neox_tensor *tensor,
                 unsigned char *kept) {
    size_t columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    for (size_t part = 0; part < tensor->parts; part++) {
        for (size_t row = 0; row < w->config->C; row++) {
            size_t to = gpt_neox_qkv_row(w->config, part, row);
            nn_dtype_store(kept + to * columns * nn_dtype_bytes(w->dtype),
                           *tensor->plain[part] + row * columns, columns, w->dtype);
        }
    }
}

static enum status add_tensor(void *context, const struct gpt_neox_tensor *tensor) {
    static const enum safetensors_dtype dtypes[] = {
        [NN_F32] = SAFETENSORS_F32, [NN_F16] = SAFETENSORS_F16, [NN_BF16] = SAFETENSORS_BF16};
    struct writer *w = context;
    size_t count = gpt_neox_tensor_count(tensor), element = nn_dtype_bytes(w->dtype);
    void *kept = arena_alloc(&w->arena, count, element);
    struct safetensors_tensor entry = {
        .name = strdup(tensor->name),
        .dtype = dtypes[w->dtype],
        .rank = tensor->rank,
        .shape = {tensor->shape[0], tensor->shape[1]},
        .count = count,
        .data = kept,
        .bytes = count * element,
    };
    w->tensors[w->count++] = entry; /* the caller frees all names, after a failure, too */
    if (entry.name == NULL || kept == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for tensor \"%s\"",
                         tensor->name);
    }
    if (tensor->parts > 1) {
        join(w, tensor, kept);
    } else {
        nn_dtype_store(kept, *tensor->plain[0], count, w->dtype);
    }
    return STATUS_OK;
}

static enum status serialize(struct writer *w, const struct gpt_neox_weights *weights,
                             unsigned char **data, size_t *size) {
    struct gpt_neox_weights source =
        *weights; /* visitors get writable pointers: give them a copy */
    bool shared = weights->classifier == weights->embedding;
    TRY(gpt_neox_tensors_visit(w->config, shared, NULL, &source, measure_tensor, w));
    enum status status = arena_create(&w->arena, w->bytes);
    w->tensors = calloc(w->count, sizeof *w->tensors);
    w->count = 0;
    if (status != STATUS_OK || w->tensors == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of weights",
                         w->bytes);
    }
    TRY(gpt_neox_tensors_visit(w->config, shared, NULL, &source, add_tensor, w));
    return safetensors_serialize(w->tensors, w->count, data, size, w->error);
}

enum status gpt_neox_serialize(const struct gpt_neox_config *config,
                               const struct gpt_neox_weights *weights, enum nn_dtype dtype,
                               unsigned char **data, size_t *size, struct error *error) {
    struct writer w = {.config = config, .dtype = dtype, .error = error};
    *data = NULL;
    *size = 0;
    enum status status = serialize(&w, weights, data, size);
    for (size_t i = 0; i < w.count && w.tensors != NULL; i++) {
        free(w.tensors[i].name);
    }
    free(w.tensors);
    arena_free(&w.arena);
    return status;
}

/* The share of a head's channels whose product with HS rounds down to `rotary` again, as it is
   written: cJSON may round it to 15 digits. */
static double rotary_share(const struct gpt_neox_config *c) {
    char text[32];
    double share = (double)c->rotary / (double)c->HS;
    snprintf(text, sizeof text, "%.15g", share);
    bool kept = (size_t)(share * (double)c->HS) == c->rotary &&
                (size_t)(strtod(text, NULL) * (double)c->HS) == c->rotary;
    return kept ? share : ((double)c->rotary + 0.5) / (double)c->HS;
}

static bool add_config(cJSON *json, const struct gpt_neox_config *c, bool shared_classifier,
                       enum nn_dtype dtype) {
    static const char *const names[] = {
        [NN_F32] = "float32", [NN_F16] = "float16", [NN_BF16] = "bfloat16"};
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"hidden_size", (double)c->C},       {"intermediate_size", (double)c->hidden},
        {"num_hidden_layers", (double)c->L}, {"num_attention_heads", (double)c->NH},
        {"vocab_size", (double)c->V},        {"max_position_embeddings", (double)c->T},
        {"rotary_pct", rotary_share(c)},     {"rotary_emb_base", c->rope_theta},
        {"layer_norm_eps", c->norm_eps},
    };
    const char *activation = c->activation == NN_GELU ? "gelu" : "gelu_new";
    cJSON *architectures = cJSON_AddArrayToObject(json, "architectures");
    bool added = architectures != NULL &&
                 cJSON_AddItemToArray(architectures, cJSON_CreateString("GPTNeoXForCausalLM")) &&
                 cJSON_AddStringToObject(json, "model_type", "gpt_neox") != NULL &&
                 cJSON_AddStringToObject(json, "hidden_act", activation) != NULL &&
                 cJSON_AddStringToObject(json, "torch_dtype", names[dtype]) != NULL &&
                 cJSON_AddBoolToObject(json, "use_parallel_residual", c->parallel) != NULL &&
                 cJSON_AddBoolToObject(json, "attention_bias", c->attention_bias) != NULL &&
                 cJSON_AddBoolToObject(json, "tie_word_embeddings", shared_classifier) != NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && added; i++) {
        added = cJSON_AddNumberToObject(json, numbers[i].key, numbers[i].value) != NULL;
    }
    return added;
}

enum status gpt_neox_config_serialize(const struct gpt_neox_config *config, bool shared_classifier,
                                      enum nn_dtype dtype, char **json) {
    *json = NULL;
    cJSON *object = cJSON_CreateObject();
    if (object != NULL && add_config(object, config, shared_classifier, dtype)) {
        *json = cJSON_Print(object);
    }
    cJSON_Delete(object);
    return *json != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

enum status gpt_neox_checkpoint_write(const char *folder, const struct gpt_neox_config *config,
                                      const struct gpt_neox_weights *weights, enum nn_dtype dtype,
                                      struct error *error) {
    unsigned char *data;
    size_t size;
    char *json;
    TRY(gpt_neox_serialize(config, weights, dtype, &data, &size, error));
    enum status status = folder_write(folder, "model.safetensors", data, size, "checkpoint", error);
    free(data);
    TRY(status);
    bool shared = weights->classifier == weights->embedding;
    if (gpt_neox_config_serialize(config, shared, dtype, &json) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a configuration");
    }
    status = folder_write(folder, "config.json", json, strlen(json), "checkpoint", error);
    free(json);
    return status;
}
