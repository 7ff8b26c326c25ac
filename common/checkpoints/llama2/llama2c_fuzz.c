/* Fuzzes the llama2.c loader; a checkpoint it accepts is read to its last weight. */
#include "common/checkpoints/llama2/llama2c.h"
#include "common/models/llama2_random.h"
#include "common/testing/fuzz.h"

/* Reads both ends of a tensor of rows x columns, and fails where they lie outside the input. */
static void touch(const float *tensor, size_t rows, size_t columns, const uint8_t *data,
                  size_t size) {
    const uint8_t *first = (const uint8_t *)tensor;
    const uint8_t *end = (const uint8_t *)(tensor + rows * columns);
    volatile float sum = tensor[0] + tensor[rows * columns - 1];
    (void)sum;
    fuzz_require(first >= data && end <= data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct llama2c_checkpoint checkpoint;
    struct error error = {0};
    if (!fuzz_accepted(llama2c_parse(&checkpoint, data, size, &error), &error)) {
        fuzz_require(checkpoint.weights.layers == NULL); /* a refusal leaves nothing behind */
        return 0;
    }
    const struct llama2_config *c = &checkpoint.config;
    touch(checkpoint.weights.embedding, c->V, c->C, data, size);
    touch(checkpoint.weights.classifier, c->V, c->C, data, size);
    for (size_t l = 0; l < c->L; l++) {
        const struct llama2_layer *layer = &checkpoint.weights.layers[l];
        touch(layer->attention_norm, 1, c->C, data, size);
        touch(layer->wq, c->NH * c->HS, c->C, data, size);
        touch(layer->wk, c->KVH * c->HS, c->C, data, size);
        touch(layer->wv, c->KVH * c->HS, c->C, data, size);
        touch(layer->wo, c->C, c->NH * c->HS, data, size);
        touch(layer->ffn_norm, 1, c->C, data, size);
        touch(layer->w1, c->hidden, c->C, data, size);
        touch(layer->w2, c->C, c->hidden, data, size);
        touch(layer->w3, c->hidden, c->C, data, size);
    }
    llama2c_close(&checkpoint);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const struct llama2_config configs[] = {
        {.C = 2, .hidden = 1, .L = 1, .NH = 1, .KVH = 1, .HS = 2, .V = 1, .T = 1},
        {.C = 8, .hidden = 3, .L = 2, .NH = 4, .KVH = 2, .HS = 2, .V = 5, .T = 3},
    };
    enum { CONFIGS = sizeof configs / sizeof *configs };
    if (index >= 2 * CONFIGS) {
        return false;
    }
    struct llama2_config config = configs[index / 2];
    config.rope_theta = 10000.0f;
    config.norm_eps = 1e-5f;
    struct llama2_random model;
    fuzz_require(llama2_random_create(&model, &config, 1) == STATUS_OK);
    static const float other_table[8 * 5] = {1.0f}; /* room for the largest (V, C) above */
    if (index % 2 == 1) {
        model.weights.classifier = other_table; /* hence not shared */
    }
    fuzz_require(llama2c_serialize(&model.config, &model.weights, seed, size) == STATUS_OK);
    llama2_random_free(&model);
    return true;
}
