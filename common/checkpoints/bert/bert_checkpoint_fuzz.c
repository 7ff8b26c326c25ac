/*
 * Fuzzes both files of a BERT checkpoint at once, config.json and a safetensors file, each as
 * fuzz_take() takes it.
 */
#include "common/checkpoints/bert/bert_checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/bert/bert_random.h"
#include "common/testing/fuzz.h"

/* Reads both ends of a tensor inside the arena. */
static void touch(const struct arena *arena, const float *tensor, size_t rows, size_t columns) {
    const unsigned char *first = (const unsigned char *)tensor;
    fuzz_require(first >= arena->base &&
                 (size_t)(first - arena->base) + rows * columns * sizeof *tensor <= arena->size);
    volatile float ends[2] = {tensor[0], tensor[rows * columns - 1]};
    (void)ends;
}

static void touch_linear(const struct arena *arena, const struct bert_linear *linear, size_t rows,
                         size_t columns) {
    touch(arena, linear->weight, rows, columns);
    touch(arena, linear->bias, rows, 1);
}

static void touch_all(const struct bert_checkpoint *checkpoint) {
    const struct bert_config *c = &checkpoint->config;
    const struct bert_weights *w = &checkpoint->weights;
    const struct arena *arena = &checkpoint->arena;
    touch(arena, w->word_embedding, c->V, c->C);
    touch(arena, w->position_embedding, c->T, c->C);
    touch(arena, w->type_embedding, c->types, c->C);
    for (size_t l = 0; l < c->L; l++) {
        const struct bert_layer *layer = &w->layers[l];
        touch_linear(arena, &layer->q, c->C, c->C);
        touch_linear(arena, &layer->k, c->C, c->C);
        touch_linear(arena, &layer->v, c->C, c->C);
        touch_linear(arena, &layer->attention_out, c->C, c->C);
        touch(arena, layer->attention_norm_weight, c->C, 1);
        touch_linear(arena, &layer->up, c->hidden, c->C);
        touch_linear(arena, &layer->down, c->C, c->hidden);
        touch(arena, layer->output_norm_bias, c->C, 1);
    }
    if (w->pooler.weight != NULL) {
        touch_linear(arena, &w->pooler, c->C, c->C);
    }
    fuzz_require((w->classifier.weight != NULL) == (c->labels > 0));
    if (c->labels > 0) {
        touch_linear(arena, &w->classifier, c->labels, c->C);
    }
}

static void load(const struct bert_config *config, const struct fuzz_input *weights) {
    struct safetensors file;
    if (safetensors_parse(&file, weights->data, weights->size, NULL) != STATUS_OK) {
        return;
    }
    struct bert_checkpoint checkpoint;
    struct error error = {0};
    if (fuzz_accepted(bert_checkpoint_load(&checkpoint, config, &file, &error), &error)) {
        touch_all(&checkpoint);
        bert_checkpoint_close(&checkpoint);
    } else { /* a refusal leaves nothing behind */
        fuzz_require(checkpoint.arena.base == NULL);
    }
    safetensors_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {data, size}, json, weights;
    struct bert_config config;
    struct error error = {0};
    if (fuzz_take(&input, &json) && fuzz_take(&input, &weights) &&
        fuzz_accepted(bert_config_parse(&config, (const char *)json.data, json.size, &error),
                      &error)) {
        load(&config, &weights);
    }
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    if (index >= 2) {
        return false;
    }
    const struct bert_config config = {
        .C = 2,
        .hidden = 3,
        .L = 1,
        .NH = 1,
        .V = 3,
        .T = 2,
        .types = 1,
        .labels = index == 0 ? 0 : 2,
        .norm_eps = 1e-12f,
        .activation = index == 0 ? NN_GELU : NN_RELU,
    };
    struct bert_random model;
    char *json;
    unsigned char *weights;
    size_t weights_size;
    fuzz_require(bert_random_create(&model, &config, 1) == STATUS_OK &&
                 bert_config_serialize(&config, &json) == STATUS_OK &&
                 bert_checkpoint_serialize(&config, &model.weights, &weights, &weights_size,
                                           NULL) == STATUS_OK);
    *seed = NULL;
    *size = 0;
    fuzz_append(seed, size, json, strlen(json));
    fuzz_append(seed, size, weights, weights_size);
    free(json);
    free(weights);
    bert_random_free(&model);
    return true;
}
