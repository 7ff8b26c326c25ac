#include "common/checkpoints/llama2/llama2_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/checkpoints/decoder/decoder_load.h"
#include "common/checkpoints/decoder/decoder_stored.h"
#include "common/checkpoints/gguf/gguf_llama2.h"
#include "common/checkpoints/packed/packed_weights.h"

static enum status allocate_layers(struct llama2_checkpoint *checkpoint, struct error *error) {
    struct llama2_stored_weights *weights = &checkpoint->weights;
    size_t L = checkpoint->config.L;
    weights->layers = calloc(L, sizeof *weights->layers);
    return weights->layers != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", L);
}

/* Allocates the layers' structs and sets the weights' pointers with `visit`. */
static enum status point_weights(struct llama2_checkpoint *checkpoint, struct llama2_weights *plain,
                                 decoder_weight_visitor *visit, void *context,
                                 struct error *error) {
    struct llama2_stored_weights *weights = &checkpoint->weights;
    TRY(allocate_layers(checkpoint, error));
    TRY(llama2_tensors_visit(&checkpoint->config, checkpoint->shared_classifier, weights, plain,
                             visit, context));
    if (checkpoint->shared_classifier) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}

/* A file with tables for other heads would give a model that computes something else. (Only old
   checkpoints have them.) */
static enum status check_config(const struct llama2_config *c,
                                const struct decoder_loader *loader) {
    static const char table[] = "model.layers.0.self_attn.rotary_emb.inv_freq";
    char next[64];
    snprintf(next, sizeof next, "model.layers.%zu.self_attn.q_proj.weight", c->L);
    TRY(decoder_check_layers(loader, next, c->L));
    const struct decoder_located *found = decoder_shards_find(loader->shards, table);
    return found == NULL || found->tensor->count == c->HS / 2
               ? STATUS_OK
               : error_set(loader->error, STATUS_MISMATCH,
                           "%s: tensor \"%s\" is for heads of %zu, \"num_attention_heads\" in "
                           "config.json gives heads of %zu",
                           loader->shards->path, table, 2 * found->tensor->count, c->HS);
}

/* The first visit checks all tensors and measures those of few bits, the second places them. */
struct packed_loader {
    struct decoder_loader plain;
    const struct packed_config *config;
    struct arena *arena;
    size_t bytes; /* of dequantised values */
};

/* A matrix of few bits; without words if the tensor is stored as it is. */
static enum status find_packed(const struct packed_loader *l, const struct decoder_weight *tensor,
                               struct packed_matrix *matrix) {
    *matrix = (struct packed_matrix){.rows = 0};
    return tensor->rank == 2 ? packed_find(matrix, l->plain.shards, l->config, tensor->name,
                                           tensor->shape[0], tensor->shape[1], l->plain.error)
                             : STATUS_OK;
}

static enum status check_tensor(void *context, const struct decoder_weight *tensor) {
    struct packed_loader *l = context;
    struct packed_matrix matrix;
    TRY(find_packed(l, tensor, &matrix));
    if (matrix.words == NULL) {
        return decoder_check_tensor(&l->plain, tensor);
    }
    size_t bytes = arena_footprint(matrix.rows * matrix.columns, sizeof(float));
    return checked_add(l->bytes, bytes, &l->bytes)
               ? STATUS_OK
               : error_set(l->plain.error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
}

static enum status place_tensor(void *context, const struct decoder_weight *tensor) {
    struct packed_loader *l = context;
    struct packed_matrix matrix;
    TRY(find_packed(l, tensor, &matrix));
    if (matrix.words == NULL) {
        return decoder_point_tensor(&l->plain, tensor);
    }
    float *values = arena_alloc(l->arena, matrix.rows * matrix.columns, sizeof *values);
    if (values == NULL) {
        return error_set(l->plain.error, STATUS_OUT_OF_MEMORY, "out of memory for \"%s\"",
                         tensor->name);
    }
    packed_dequantize(&matrix, values);
    *tensor->stored = decoder_stored_at(tensor, values, NN_F32);
    return STATUS_OK;
}

static enum status load_weights(struct llama2_checkpoint *checkpoint, struct packed_loader *loader,
                                size_t most_bytes) {
    struct error *error = loader->plain.error;
    TRY(check_config(&checkpoint->config, &loader->plain));
    TRY(llama2_tensors_visit(&checkpoint->config, checkpoint->shared_classifier, NULL, NULL,
                             check_tensor, loader));
    if (loader->bytes > 0) {
        TRY(decoder_dequantized_arena(&checkpoint->dequantized, loader->bytes, most_bytes, error));
    }
    return point_weights(checkpoint, NULL, place_tensor, loader, error);
}

/* Biases that the weights have count, though the configuration may not name them. */
static void find_biases(struct llama2_config *c, const struct decoder_shards *shards) {
    static const char layer[] = "model.layers.0.";
    const struct {
        const char *projection;
        bool *has;
    } biases[] = {{"self_attn.q_proj.bias", &c->qkv_bias},
                  {"self_attn.o_proj.bias", &c->out_bias},
                  {"mlp.gate_proj.bias", &c->mlp_bias}};
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", layer, biases[i].projection);
        *biases[i].has = *biases[i].has || decoder_shards_find(shards, name) != NULL;
    }
}

enum status llama2_checkpoint_load(struct llama2_checkpoint *checkpoint,
                                   const struct llama2_config *config, bool shared_classifier,
                                   const struct packed_config *packed,
                                   struct decoder_shards *shards, size_t most_bytes,
                                   struct error *error) {
    *checkpoint = (struct llama2_checkpoint){
        .config = *config, .shared_classifier = shared_classifier, .shards = *shards};
    *shards = (struct decoder_shards){0};
    find_biases(&checkpoint->config, &checkpoint->shards);
    struct packed_loader loader = {.plain = {.shards = &checkpoint->shards, .error = error},
                                   .config = packed,
                                   .arena = &checkpoint->dequantized};
    enum status status = load_weights(checkpoint, &loader, most_bytes);
    if (status != STATUS_OK) {
        llama2_checkpoint_close(checkpoint);
    }
    return status;
}

static enum status read_config(struct llama2_config *config, bool *shared_classifier,
                               struct packed_config *packed, const char *folder,
                               struct error *error) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    TRY(decoder_config_read(folder, &text, &size, path, error));
    enum status status = llama2_config_parse(config, shared_classifier, text, size, error);
    if (status == STATUS_OK) {
        status = packed_config_parse(packed, text, size, error);
    }
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static enum status open_folder(struct llama2_checkpoint *checkpoint, const char *folder,
                               struct error *error) {
    struct llama2_config config;
    bool shared_classifier;
    struct packed_config packed;
    struct decoder_shards shards;
    TRY(read_config(&config, &shared_classifier, &packed, folder, error));
    TRY(decoder_shards_open(&shards, folder, error));
    return llama2_checkpoint_load(checkpoint, &config, shared_classifier, &packed, &shards, 0,
                                  error);
}

/* llama2.c's tensors are all fp32; llama2c_open() has set their pointers. */
static enum status point_llama2c(void *context, const struct decoder_weight *tensor) {
    (void)context;
    *tensor->stored = decoder_stored_at(tensor, *tensor->plain[0], NN_F32);
    return STATUS_OK;
}

static enum status open_llama2c(struct llama2_checkpoint *checkpoint, const char *path,
                                struct error *error) {
    TRY(llama2c_open(&checkpoint->llama2c, path, error));
    checkpoint->config = checkpoint->llama2c.config;
    checkpoint->shared_classifier = checkpoint->llama2c.shared_classifier;
    enum status status =
        point_weights(checkpoint, &checkpoint->llama2c.weights, point_llama2c, NULL, error);
    if (status != STATUS_OK) {
        llama2_checkpoint_close(checkpoint);
    }
    return status;
}

/* Before gguf_llama2_load() checks shapes, a number of layers is only a number: it must not be more
   than there are tensors. */
static enum status load_gguf(struct llama2_checkpoint *checkpoint, size_t most_bytes,
                             struct error *error) {
    const struct gguf *file = &checkpoint->gguf;
    if (checkpoint->config.L > file->tensor_count) {
        return error_set(error, STATUS_MISMATCH, "%zu layers, but only %zu tensors",
                         checkpoint->config.L, file->tensor_count);
    }
    TRY(allocate_layers(checkpoint, error));
    return gguf_llama2_load(file, &checkpoint->config, checkpoint->shared_classifier, most_bytes,
                            &checkpoint->weights, &checkpoint->dequantized, error);
}

enum status llama2_checkpoint_load_gguf(struct llama2_checkpoint *checkpoint, struct gguf *file,
                                        size_t most_bytes, struct error *error) {
    *checkpoint = (struct llama2_checkpoint){.gguf = *file};
    *file = (struct gguf){0};
    enum status status = gguf_llama2_config(&checkpoint->gguf, &checkpoint->config,
                                            &checkpoint->shared_classifier, error);
    if (status == STATUS_OK) {
        status = load_gguf(checkpoint, most_bytes, error);
    }
    if (status != STATUS_OK) {
        llama2_checkpoint_close(checkpoint);
    }
    return status;
}

static enum status open_gguf(struct llama2_checkpoint *checkpoint, const char *path,
                             struct error *error) {
    struct gguf file;
    TRY(gguf_open(&file, path, error));
    enum status status = llama2_checkpoint_load_gguf(checkpoint, &file, 0, error);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

enum status llama2_checkpoint_open(struct llama2_checkpoint *checkpoint, const char *path,
                                   struct error *error) {
    *checkpoint = (struct llama2_checkpoint){0};
    if (folder_exists(path)) {
        return open_folder(checkpoint, path, error);
    }
    if (ends_with(path, ".safetensors") || ends_with(path, ".json")) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s: give the folder that holds it and config.json", path);
    }
    return gguf_is(path) ? open_gguf(checkpoint, path, error)
                         : open_llama2c(checkpoint, path, error);
}

void llama2_checkpoint_close(struct llama2_checkpoint *checkpoint) {
    free(checkpoint->weights.layers);
    llama2c_close(&checkpoint->llama2c);
    decoder_shards_close(&checkpoint->shards);
    gguf_close(&checkpoint->gguf);
    arena_free(&checkpoint->dequantized);
    *checkpoint = (struct llama2_checkpoint){0};
}
