#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/decoder/decoder_load.h"

/* A file with tables for other heads would give a model that computes something else. (Only old
   checkpoints have them.) */
static enum status check_config(const struct gpt_neox_config *c,
                                const struct decoder_loader *loader) {
    static const char table[] = "gpt_neox.layers.0.attention.rotary_emb.inv_freq";
    char next[80];
    snprintf(next, sizeof next, "gpt_neox.layers.%zu.input_layernorm.weight", c->L);
    TRY(decoder_check_layers(loader, next, c->L));
    const struct decoder_located *found = decoder_shards_find(loader->shards, table);
    return found == NULL || found->tensor->count == c->rotary / 2
               ? STATUS_OK
               : error_set(loader->error, STATUS_MISMATCH,
                           "%s: tensor \"%s\" rotates %zu channels, \"rotary_pct\" in config.json "
                           "gives %zu",
                           loader->shards->path, table, 2 * found->tensor->count, c->rotary);
}

static enum status load_weights(struct gpt_neox_checkpoint *checkpoint,
                                struct decoder_loader *loader) {
    struct gpt_neox_stored_weights *weights = &checkpoint->weights;
    const struct gpt_neox_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    TRY(check_config(c, loader));
    TRY(gpt_neox_tensors_visit(c, shared, NULL, NULL, decoder_check_tensor, loader));
    weights->layers = calloc(c->L, sizeof *weights->layers);
    if (weights->layers == NULL) {
        return error_set(loader->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", c->L);
    }
    TRY(gpt_neox_tensors_visit(c, shared, weights, NULL, decoder_point_tensor, loader));
    if (shared) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}

enum status gpt_neox_checkpoint_load(struct gpt_neox_checkpoint *checkpoint,
                                     const struct gpt_neox_config *config, bool shared_classifier,
                                     struct decoder_shards *shards, struct error *error) {
    *checkpoint = (struct gpt_neox_checkpoint){
        .config = *config, .shared_classifier = shared_classifier, .shards = *shards};
    *shards = (struct decoder_shards){0};
    struct decoder_loader loader = {.shards = &checkpoint->shards, .error = error};
    enum status status = load_weights(checkpoint, &loader);
    if (status != STATUS_OK) {
        gpt_neox_checkpoint_close(checkpoint);
    }
    return status;
}

static enum status read_config(struct gpt_neox_config *config, bool *shared_classifier,
                               const char *folder, struct error *error) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    TRY(decoder_config_read(folder, &text, &size, path, error));
    enum status status = gpt_neox_config_parse(config, shared_classifier, text, size, error);
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

enum status gpt_neox_checkpoint_open(struct gpt_neox_checkpoint *checkpoint, const char *folder,
                                     struct error *error) {
    struct gpt_neox_config config;
    bool shared_classifier;
    struct decoder_shards shards;
    *checkpoint = (struct gpt_neox_checkpoint){0};
    TRY(read_config(&config, &shared_classifier, folder, error));
    TRY(decoder_shards_open(&shards, folder, error));
    return gpt_neox_checkpoint_load(checkpoint, &config, shared_classifier, &shards, error);
}

bool gpt_neox_checkpoint_is(const char *folder) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    if (!folder_exists(folder) ||
        decoder_config_read(folder, &text, &size, path, NULL) != STATUS_OK) {
        return false;
    }
    bool is = gpt_neox_config_is(text, size);
    free(text);
    return is;
}

void gpt_neox_checkpoint_close(struct gpt_neox_checkpoint *checkpoint) {
    free(checkpoint->weights.layers);
    decoder_shards_close(&checkpoint->shards);
    *checkpoint = (struct gpt_neox_checkpoint){0};
}
