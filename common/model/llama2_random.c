#include "common/model/llama2_random.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/checked.h"
#include "common/base/rng.h"

struct llama2_config llama2_shape_config(enum llama2_shape shape) {
    struct llama2_config config = {.C = 288,
                                   .hidden = 768,
                                   .L = 6,
                                   .NH = 6,
                                   .KVH = 6,
                                   .HS = 48,
                                   .V = 32000,
                                   .T = 256,
                                   .rope_theta = 10000.0f,
                                   .norm_eps = 1e-5f,
                                   .rope_layout = NN_ROPE_INTERLEAVED};
    if (shape == LLAMA2_SHAPE_110M) {
        config.C = 768;
        config.hidden = 2048;
        config.L = config.NH = config.KVH = 12;
        config.HS = 64;
        config.T = 1024;
    } else if (shape == LLAMA2_SHAPE_1B) {
        config.C = 2048;
        config.hidden = 5632;
        config.L = 22;
        config.NH = 32;
        config.KVH = 4;
        config.HS = 64;
        config.T = 2048;
    }
    return config;
}

/* Takes rows x columns floats; NULL arena memory ends up as NULL in the weights. */
static const float *random_matrix(struct llama2_random *model, struct rng *rng, size_t rows,
                                  size_t columns) {
    float *values = arena_alloc(&model->arena, rows * columns, sizeof(float));
    if (values != NULL) {
        rng_fill_normal(rng, values, rows * columns, 1.0f / sqrtf((float)columns));
    }
    return values;
}

static const float *random_norm(struct llama2_random *model, struct rng *rng, size_t C) {
    float *values = arena_alloc(&model->arena, C, sizeof(float));
    for (size_t i = 0; i < C && values != NULL; i++) {
        values[i] = 1.0f + 0.1f * rng_normal(rng);
    }
    return values;
}

static void fill_layer(struct llama2_random *model, struct rng *rng, struct llama2_layer *layer) {
    const struct llama2_config *c = &model->config;
    layer->attention_norm = random_norm(model, rng, c->C);
    layer->wq = random_matrix(model, rng, c->NH * c->HS, c->C);
    layer->wk = random_matrix(model, rng, c->KVH * c->HS, c->C);
    layer->wv = random_matrix(model, rng, c->KVH * c->HS, c->C);
    layer->wo = random_matrix(model, rng, c->C, c->NH * c->HS);
    layer->ffn_norm = random_norm(model, rng, c->C);
    layer->w1 = random_matrix(model, rng, c->hidden, c->C);
    layer->w2 = random_matrix(model, rng, c->C, c->hidden);
    layer->w3 = random_matrix(model, rng, c->hidden, c->C);
}

/* Sum of the footprints of every tensor; SIZE_MAX when it overflows. */
static size_t arena_bytes(const struct llama2_config *c) {
    size_t q_width = c->NH * c->HS;
    size_t kv_width = c->KVH * c->HS;
    const size_t layer[][2] = {{1, c->C},         {q_width, c->C},   {kv_width, c->C},
                               {kv_width, c->C},  {c->C, q_width},   {1, c->C},
                               {c->hidden, c->C}, {c->C, c->hidden}, {c->hidden, c->C}};
    size_t per_layer = 0;
    for (size_t i = 0; i < sizeof layer / sizeof *layer; i++) {
        size_t count;
        if (!checked_multiply(layer[i][0], layer[i][1], &count) ||
            !checked_add(per_layer, arena_footprint(count, sizeof(float)), &per_layer)) {
            return SIZE_MAX;
        }
    }
    size_t table;
    size_t total;
    if (!checked_multiply(c->V, c->C, &table) || !checked_multiply(per_layer, c->L, &total) ||
        !checked_add(total, arena_footprint(table, sizeof(float)), &total) ||
        !checked_add(total, arena_footprint(c->C, sizeof(float)), &total)) {
        return SIZE_MAX;
    }
    return total;
}

enum status llama2_random_create(struct llama2_random *model, const struct llama2_config *config,
                                 uint64_t seed) {
    *model = (struct llama2_random){.config = *config};
    enum status status = arena_create(&model->arena, arena_bytes(config));
    if (status != STATUS_OK) {
        return status;
    }
    model->weights.layers = calloc(config->L, sizeof *model->weights.layers);
    if (model->weights.layers == NULL) {
        llama2_random_free(model);
        return STATUS_OUT_OF_MEMORY;
    }
    struct rng rng = rng_create(seed);
    model->weights.embedding = random_matrix(model, &rng, config->V, config->C);
    model->weights.classifier = model->weights.embedding;
    model->weights.final_norm = random_norm(model, &rng, config->C);
    for (size_t l = 0; l < config->L; l++) {
        fill_layer(model, &rng, &model->weights.layers[l]);
    }
    return STATUS_OK;
}

void llama2_random_free(struct llama2_random *model) {
    free(model->weights.layers);
    arena_free(&model->arena);
    *model = (struct llama2_random){0};
}
