#include "common/checkpoints/llama2/llama2_write.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/folder.h"
#include "common/checkpoints/decoder/decoder_writer.h"
#include "common/checkpoints/llama2/llama2_tensors.h"

/* State while all tensors are visited; visitors skip the tensors of other shards. */
struct writer {
    const struct llama2_config *config;
    const struct llama2_write_options *options;
    size_t shard;               /* the shard to write */
    size_t total;               /* tensors of all shards */
    size_t index;               /* of the tensor under visit */
    size_t bytes;               /* of the index: of all tensors */
    struct decoder_writer kept; /* the shard's tensors */
    size_t most_permuted; /* elements of the largest tensor to permute; from the first visit */
    float *permuted;      /* (most_permuted) */
    cJSON *map;           /* "weight_map" of the index */
};

static size_t tensor_total(const struct llama2_config *config, bool shared_classifier) {
    return llama2_layer_tensors(config) * config->L + (shared_classifier ? 2 : 3);
}

static enum status check_shards(const struct llama2_write_options *options, size_t total,
                                size_t shard, struct error *error) {
    if (options->shards < 1 || options->shards > total || shard >= options->shards) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "shard %zu of %zu: there can be 1 to %zu shards of %zu tensors", shard,
                         options->shards, total, total);
    }
    return STATUS_OK;
}

/* The shard that the tensor under visit belongs to; advances to the next tensor. */
static size_t next_shard(struct writer *w) {
    return w->index++ * w->options->shards / w->total;
}

const char *llama2_shard_name(size_t shard, size_t shards, char name[LLAMA2_SHARD_NAME_BYTES]) {
    if (shards == 1) {
        return strcpy(name, "model.safetensors");
    }
    snprintf(name, LLAMA2_SHARD_NAME_BYTES, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
    return name;
}

/* ---- One file ---- */

/* wq and wk in the interleaved layout: their rows are written in another order. */
static bool needs_permutation(const struct writer *w, const struct decoder_weight *tensor) {
    return tensor->rope_heads > 0 && w->config->rope_layout == NN_ROPE_INTERLEAVED;
}

static enum status measure_tensor(void *context, const struct decoder_weight *tensor) {
    struct writer *w = context;
    if (next_shard(w) != w->shard) {
        return STATUS_OK;
    }
    TRY(decoder_writer_measure(&w->kept, tensor));
    size_t count = decoder_weight_count(tensor);
    if (needs_permutation(w, tensor) && count > w->most_permuted) {
        w->most_permuted = count;
    }
    return STATUS_OK;
}

/* Permutes rows: 2i and 2i+1 of each head become i and i + HS/2. out, in (heads * HS, columns) */
static void permute_rows(float *out, const float *in, size_t heads, size_t HS, size_t columns) {
    for (size_t row = 0; row < heads * HS; row++) {
        size_t head = row / HS, i = row % HS;
        size_t target = head * HS + i / 2 + (i % 2) * (HS / 2);
        memcpy(out + target * columns, in + row * columns, columns * sizeof *out);
    }
}

static enum status add_tensor(void *context, const struct decoder_weight *tensor) {
    struct writer *w = context;
    if (next_shard(w) != w->shard) {
        return STATUS_OK;
    }
    const float *values = *tensor->plain[0];
    void *kept;
    TRY(decoder_writer_keep(&w->kept, tensor, &kept));
    if (needs_permutation(w, tensor)) {
        permute_rows(w->permuted, values, tensor->rope_heads, w->config->HS, tensor->shape[1]);
        values = w->permuted;
    }
    nn_dtype_store(kept, values, decoder_weight_count(tensor), w->options->dtype);
    return STATUS_OK;
}

/* Makes memory for the shard's tensors, in the size that the first visit measured. */
static enum status allocate(struct writer *w) {
    size_t bytes = w->most_permuted * sizeof *w->permuted;
    TRY(decoder_writer_allocate(&w->kept));
    w->index = 0;
    w->permuted = malloc(bytes > 0 ? bytes : 1);
    return w->permuted != NULL ? STATUS_OK
                               : error_set(w->kept.error, STATUS_OUT_OF_MEMORY,
                                           "no memory for %zu bytes of weights", bytes);
}

static enum status serialize_shard(struct writer *w, const struct llama2_weights *weights,
                                   bool shared, unsigned char **data, size_t *size) {
    struct llama2_weights source = *weights; /* visitors get writable pointers: give them a copy */
    TRY(llama2_tensors_visit(w->config, shared, NULL, &source, measure_tensor, w));
    TRY(allocate(w));
    TRY(llama2_tensors_visit(w->config, shared, NULL, &source, add_tensor, w));
    return decoder_writer_serialize(&w->kept, data, size);
}

enum status llama2_shard_serialize(const struct llama2_config *config,
                                   const struct llama2_weights *weights,
                                   const struct llama2_write_options *options, size_t shard,
                                   unsigned char **data, size_t *size, struct error *error) {
    *data = NULL;
    *size = 0;
    bool shared = weights->classifier == weights->embedding;
    size_t total = tensor_total(config, shared);
    TRY(check_shards(options, total, shard, error));
    struct writer w = {.config = config,
                       .options = options,
                       .shard = shard,
                       .total = total,
                       .kept = {.dtype = options->dtype, .error = error}};
    enum status status = serialize_shard(&w, weights, shared, data, size);
    free(w.permuted);
    decoder_writer_free(&w.kept);
    return status;
}

/* ---- The index ---- */

static enum status add_to_map(void *context, const struct decoder_weight *tensor) {
    struct writer *w = context;
    char name[LLAMA2_SHARD_NAME_BYTES];
    llama2_shard_name(next_shard(w), w->options->shards, name);
    w->bytes += decoder_weight_count(tensor) * nn_dtype_bytes(w->options->dtype);
    return cJSON_AddStringToObject(w->map, tensor->name, name) != NULL ? STATUS_OK
                                                                       : STATUS_OUT_OF_MEMORY;
}

enum status llama2_index_serialize(const struct llama2_config *config, bool shared_classifier,
                                   const struct llama2_write_options *options, char **json,
                                   struct error *error) {
    *json = NULL;
    struct writer w = {
        .config = config, .options = options, .total = tensor_total(config, shared_classifier)};
    TRY(check_shards(options, w.total, 0, error));
    cJSON *root = cJSON_CreateObject();
    cJSON *metadata = cJSON_AddObjectToObject(root, "metadata");
    w.map = cJSON_AddObjectToObject(root, "weight_map");
    if (metadata != NULL && w.map != NULL &&
        llama2_tensors_visit(config, shared_classifier, NULL, NULL, add_to_map, &w) == STATUS_OK &&
        cJSON_AddNumberToObject(metadata, "total_size", (double)w.bytes) != NULL) {
        *json = cJSON_Print(root);
    }
    cJSON_Delete(root);
    return *json != NULL ? STATUS_OK
                         : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for an index");
}

/* ---- The configuration ---- */

static bool add_config(cJSON *json, const struct llama2_config *c, bool shared_classifier,
                       enum nn_dtype dtype) {
    const struct decoder_number numbers[] = {
        {"hidden_size", (double)c->C},
        {"intermediate_size", (double)c->hidden},
        {"num_hidden_layers", (double)c->L},
        {"num_attention_heads", (double)c->NH},
        {"num_key_value_heads", (double)c->KVH},
        {"head_dim", (double)c->HS},
        {"vocab_size", (double)c->V},
        {"max_position_embeddings", (double)c->T},
        {"rope_theta", c->rope_theta},
        {"rms_norm_eps", c->norm_eps},
        {"bos_token_id", 1},
        {"eos_token_id", 2},
    };
    return decoder_config_add(json, "LlamaForCausalLM", "llama", "silu", dtype, shared_classifier,
                              numbers, sizeof numbers / sizeof *numbers) &&
           cJSON_AddBoolToObject(json, "attention_bias", false) != NULL;
}

enum status llama2_config_serialize(const struct llama2_config *config, bool shared_classifier,
                                    enum nn_dtype dtype, char **json) {
    *json = NULL;
    cJSON *object = cJSON_CreateObject();
    if (object != NULL && add_config(object, config, shared_classifier, dtype)) {
        *json = cJSON_Print(object);
    }
    cJSON_Delete(object);
    return *json != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

/* ---- A folder ---- */

static enum status write_shards(const char *folder, const struct llama2_config *config,
                                const struct llama2_weights *weights,
                                const struct llama2_write_options *options, struct error *error) {
    for (size_t i = 0; i < options->shards; i++) {
        char name[LLAMA2_SHARD_NAME_BYTES];
        unsigned char *data;
        size_t size;
        TRY(llama2_shard_serialize(config, weights, options, i, &data, &size, error));
        llama2_shard_name(i, options->shards, name);
        enum status status = folder_write(folder, name, data, size, "checkpoint", error);
        free(data);
        TRY(status);
    }
    return STATUS_OK;
}

static enum status write_index(const char *folder, const struct llama2_config *config, bool shared,
                               const struct llama2_write_options *options, struct error *error) {
    char *json;
    TRY(llama2_index_serialize(config, shared, options, &json, error));
    enum status status = folder_write(folder, "model.safetensors.index.json", json, strlen(json),
                                      "checkpoint", error);
    free(json);
    return status;
}

enum status llama2_checkpoint_write(const char *folder, const struct llama2_config *config,
                                    const struct llama2_weights *weights,
                                    const struct llama2_write_options *options,
                                    struct error *error) {
    bool shared = weights->classifier == weights->embedding;
    TRY(check_shards(options, tensor_total(config, shared), 0, error));
    TRY(write_shards(folder, config, weights, options, error));
    if (options->shards > 1) {
        TRY(write_index(folder, config, shared, options, error));
    }
    char *json;
    if (llama2_config_serialize(config, shared, options->dtype, &json) != STATUS_OK) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a configuration");
    }
    enum status status =
        folder_write(folder, "config.json", json, strlen(json), "checkpoint", error);
    free(json);
    return status;
}
