#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/folder.h"

enum { CONFIG_LIMIT = 16 << 20 };

/* Loading visits all tensors twice: first to check them, then to set the pointers. */
struct loader {
    const struct llama2_shards *shards;
    struct error *error;
};

static enum status check_tensor(void *context, const struct gpt_neox_tensor *tensor) {
    const struct loader *loader = context;
    return llama2_shards_check(loader->shards, tensor->name, tensor->shape, tensor->rank,
                               loader->error);
}

static enum status point_tensor(void *context, const struct gpt_neox_tensor *tensor) {
    static const enum nn_dtype dtypes[] = {
        [SAFETENSORS_F32] = NN_F32, [SAFETENSORS_F16] = NN_F16, [SAFETENSORS_BF16] = NN_BF16};
    const struct loader *loader = context;
    const struct llama2_located *located = llama2_shards_find(loader->shards, tensor->name);
    if (located == NULL || !safetensors_is_weight(located->tensor->dtype)) {
        return STATUS_BAD_FORMAT; /* checked before */
    }
    bool vector = tensor->rank == 1;
    *tensor->stored = (struct llama2_stored_tensor){.data = located->tensor->data,
                                                    .dtype = dtypes[located->tensor->dtype],
                                                    .rows = vector ? 1 : tensor->shape[0],
                                                    .columns = tensor->shape[vector ? 0 : 1]};
    return STATUS_OK;
}

/* A file with more layers, or with tables for other heads, would give a model that computes
   something else. (Only old checkpoints have the tables.) */
static enum status check_config(const struct gpt_neox_config *c, const struct loader *loader) {
    static const char table[] = "gpt_neox.layers.0.attention.rotary_emb.inv_freq";
    char next[80];
    snprintf(next, sizeof next, "gpt_neox.layers.%zu.input_layernorm.weight", c->L);
    if (llama2_shards_find(loader->shards, next) != NULL) {
        return error_set(loader->error, STATUS_MISMATCH,
                         "%s: there is a tensor \"%s\", but \"num_hidden_layers\" in config.json "
                         "is %zu",
                         loader->shards->path, next, c->L);
    }
    const struct llama2_located *found = llama2_shards_find(loader->shards, table);
    return found == NULL || found->tensor->count == c->rotary / 2
               ? STATUS_OK
               : error_set(loader->error, STATUS_MISMATCH,
                           "%s: tensor \"%s\" rotates %zu channels, \"rotary_pct\" in config.json "
                           "gives %zu",
                           loader->shards->path, table, 2 * found->tensor->count, c->rotary);
}

static enum status load_weights(struct gpt_neox_checkpoint *checkpoint, struct loader *loader) {
    struct gpt_neox_stored_weights *weights = &checkpoint->weights;
    const struct gpt_neox_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    TRY(check_config(c, loader));
    TRY(gpt_neox_tensors_visit(c, shared, NULL, NULL, check_tensor, loader));
    weights->layers = calloc(c->L, sizeof *weights->layers);
    if (weights->layers == NULL) {
        return error_set(loader->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", c->L);
    }
    TRY(gpt_neox_tensors_visit(c, shared, weights, NULL, point_tensor, loader));
    if (shared) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}

enum status gpt_neox_checkpoint_load(struct gpt_neox_checkpoint *checkpoint,
                                     const struct gpt_neox_config *config, bool shared_classifier,
                                     struct llama2_shards *shards, struct error *error) {
    *checkpoint = (struct gpt_neox_checkpoint){
        .config = *config, .shared_classifier = shared_classifier, .shards = *shards};
    *shards = (struct llama2_shards){0};
    struct loader loader = {.shards = &checkpoint->shards, .error = error};
    enum status status = load_weights(checkpoint, &loader);
    if (status != STATUS_OK) {
        gpt_neox_checkpoint_close(checkpoint);
    }
    return status;
}

static enum status read_text(const char *folder, char **text, size_t *size,
                             char path[FOLDER_PATH_BYTES], struct error *error) {
    TRY(folder_join(path, folder, "config.json", "checkpoint", error));
    return file_read(path, CONFIG_LIMIT, text, size, error);
}

static enum status read_config(struct gpt_neox_config *config, bool *shared_classifier,
                               const char *folder, struct error *error) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    TRY(read_text(folder, &text, &size, path, error));
    enum status status = gpt_neox_config_parse(config, shared_classifier, text, size, error);
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

enum status gpt_neox_checkpoint_open(struct gpt_neox_checkpoint *checkpoint, const char *folder,
                                     struct error *error) {
    struct gpt_neox_config config;
    bool shared_classifier;
    struct llama2_shards shards;
    *checkpoint = (struct gpt_neox_checkpoint){0};
    TRY(read_config(&config, &shared_classifier, folder, error));
    TRY(llama2_shards_open(&shards, folder, error));
    return gpt_neox_checkpoint_load(checkpoint, &config, shared_classifier, &shards, error);
}

bool gpt_neox_checkpoint_is(const char *folder) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    if (!folder_exists(folder) || read_text(folder, &text, &size, path, NULL) != STATUS_OK) {
        return false;
    }
    bool is = gpt_neox_config_is(text, size);
    free(text);
    return is;
}

void gpt_neox_checkpoint_close(struct gpt_neox_checkpoint *checkpoint) {
    free(checkpoint->weights.layers);
    llama2_shards_close(&checkpoint->shards);
    *checkpoint = (struct gpt_neox_checkpoint){0};
}
