/*
 * Fuzzes both files of a BERT checkpoint at once, config.json and a safetensors file, each as
 * fuzz_take() takes it.
 */
#include "common/checkpoints/bert/bert_checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/bert/bert_random.h"
#include "common/checkpoints/bert/bert_tensors.h"
#include "common/testing/fuzz.h"

/* Reads both ends of a tensor, which lies inside the arena. */
static enum status touch(void *context, const struct bert_tensor *tensor) {
    const struct arena *arena = context;
    const float *values = *tensor->slot;
    const unsigned char *first = (const unsigned char *)values;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    fuzz_require(first >= arena->base &&
                 (size_t)(first - arena->base) + count * sizeof *values <= arena->size);
    volatile float ends[2] = {values[0], values[count - 1]};
    (void)ends;
    return STATUS_OK;
}

static void touch_all(struct bert_checkpoint *checkpoint) {
    struct bert_weights *w = &checkpoint->weights;
    const struct bert_heads heads = {.pooler = w->pooler.weight != NULL,
                                     .classifier = w->classifier.weight != NULL};
    fuzz_require(heads.classifier == (checkpoint->config.labels > 0));
    fuzz_require(bert_tensors_visit(&checkpoint->config, heads, w, touch, &checkpoint->arena) ==
                 STATUS_OK);
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
