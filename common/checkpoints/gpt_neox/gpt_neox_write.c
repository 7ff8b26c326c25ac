#include "common/checkpoints/gpt_neox/gpt_neox_write.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/folder.h"
#include "common/checkpoints/decoder/decoder_writer.h"
#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"

struct writer {
    const struct gpt_neox_config *config;
    struct decoder_writer kept;
};

static enum status measure_tensor(void *context, const struct decoder_weight *tensor) {
    struct writer *w = context;
    return decoder_writer_measure(&w->kept, tensor);
}

/* Puts the rows of q, k and v where query_key_value has them. A bias has rows of one element. */
static void join(const struct writer *w, const struct decoder_weight *tensor, unsigned char *kept) {
    size_t columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    for (size_t part = 0; part < tensor->parts; part++) {
        for (size_t row = 0; row < w->config->C; row++) {
            size_t to = gpt_neox_qkv_row(w->config, part, row);
            nn_dtype_store(kept + to * columns * nn_dtype_bytes(w->kept.dtype),
                           *tensor->plain[part] + row * columns, columns, w->kept.dtype);
        }
    }
}

static enum status add_tensor(void *context, const struct decoder_weight *tensor) {
    struct writer *w = context;
    void *kept;
    TRY(decoder_writer_keep(&w->kept, tensor, &kept));
    if (tensor->parts > 1) {
        join(w, tensor, kept);
    } else {
        nn_dtype_store(kept, *tensor->plain[0], decoder_weight_count(tensor), w->kept.dtype);
    }
    return STATUS_OK;
}

static enum status serialize(struct writer *w, const struct gpt_neox_weights *weights,
                             unsigned char **data, size_t *size) {
    struct gpt_neox_weights source =
        *weights; /* visitors get writable pointers: give them a copy */
    bool shared = weights->classifier == weights->embedding;
    TRY(gpt_neox_tensors_visit(w->config, shared, NULL, &source, measure_tensor, w));
    TRY(decoder_writer_allocate(&w->kept));
    TRY(gpt_neox_tensors_visit(w->config, shared, NULL, &source, add_tensor, w));
    return decoder_writer_serialize(&w->kept, data, size);
}

enum status gpt_neox_serialize(const struct gpt_neox_config *config,
                               const struct gpt_neox_weights *weights, enum nn_dtype dtype,
                               unsigned char **data, size_t *size, struct error *error) {
    struct writer w = {.config = config, .kept = {.dtype = dtype, .error = error}};
    *data = NULL;
    *size = 0;
    enum status status = serialize(&w, weights, data, size);
    decoder_writer_free(&w.kept);
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
    const struct decoder_number numbers[] = {
        {"hidden_size", (double)c->C},       {"intermediate_size", (double)c->hidden},
        {"num_hidden_layers", (double)c->L}, {"num_attention_heads", (double)c->NH},
        {"vocab_size", (double)c->V},        {"max_position_embeddings", (double)c->T},
        {"rotary_pct", rotary_share(c)},     {"rotary_emb_base", c->rope_theta},
        {"layer_norm_eps", c->norm_eps},
    };
    return decoder_config_add(json, "GPTNeoXForCausalLM", "gpt_neox",
                              c->activation == NN_GELU ? "gelu" : "gelu_new", dtype,
                              shared_classifier, numbers, sizeof numbers / sizeof *numbers) &&
           cJSON_AddBoolToObject(json, "use_parallel_residual", c->parallel) != NULL &&
           cJSON_AddBoolToObject(json, "attention_bias", c->attention_bias) != NULL;
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
