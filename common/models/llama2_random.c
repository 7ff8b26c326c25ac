#include "common/models/llama2_random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/rng.h"

enum {
    PERIOD = 4194301,  /* a block of values repeats after so many elements: a prime, so that no two
                          rows of a matrix are equal */
    OFFSET = 1299709,  /* between the first elements of two tensors; a prime */
    NORM_OFFSETS = 61, /* norms are views of one row, at this many offsets */
    BLOCK_ELEMENTS = 4096
};

struct shape {
    const char *text, *name;
    size_t C, hidden, L, NH, KVH, V, T;
};

static const struct shape shapes[LLAMA2_SHAPES] = {
    [LLAMA2_SHAPE_260K] = {"260k", "260K", 64, 172, 5, 8, 4, 512, 512},
    [LLAMA2_SHAPE_15M] = {"15m", "15M", 288, 768, 6, 6, 6, 32000, 256},
    [LLAMA2_SHAPE_110M] = {"110m", "110M", 768, 2048, 12, 12, 12, 32000, 1024},
    [LLAMA2_SHAPE_1B] = {"1.1b", "1.1B", 2048, 5632, 22, 32, 4, 32000, 2048},
    [LLAMA2_SHAPE_7B] = {"7b", "7B", 4096, 11008, 32, 32, 32, 32000, 4096},
};

struct llama2_config llama2_shape_config(enum llama2_shape shape) {
    const struct shape *s = &shapes[shape];
    return (struct llama2_config){.C = s->C,
                                  .hidden = s->hidden,
                                  .L = s->L,
                                  .NH = s->NH,
                                  .KVH = s->KVH,
                                  .HS = s->C / s->NH,
                                  .V = s->V,
                                  .T = s->T,
                                  .rope_theta = 10000.0f,
                                  .norm_eps = 1e-5f,
                                  .rope_layout = NN_ROPE_INTERLEAVED};
}

const char *llama2_shape_name(enum llama2_shape shape) {
    return shapes[shape].name;
}

enum status llama2_shape_parse(const char *text, enum llama2_shape *shape, struct error *error) {
    for (int i = 0; i < LLAMA2_SHAPES; i++) {
        if (strcmp(text, shapes[i].text) == 0) {
            *shape = (enum llama2_shape)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "--shape is 260k, 15m, 110m, 1.1b or 7b, not '%s'", text);
}

/* Makes rows x columns normal values in the arena. @return NULL without memory */
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
    TRY(arena_create(&model->arena, arena_bytes(config)));
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

/* ---- Stored weights ---- */

/* State of the visits of all tensors. */
struct views {
    struct llama2_random_stored *model;
    enum nn_dtype dtype;
    size_t largest; /* elements of the largest tensor, which measure_tensor() finds */
    size_t visited;
};

static enum status measure_tensor(void *context, const struct decoder_weight *tensor) {
    struct views *v = context;
    size_t count;
    if (!checked_multiply(tensor->shape[0], tensor->rank == 1 ? 1 : tensor->shape[1], &count)) {
        return STATUS_OVERFLOW;
    }
    v->largest = count > v->largest ? count : v->largest;
    return STATUS_OK;
}

static enum status view_tensor(void *context, const struct decoder_weight *tensor) {
    struct views *v = context;
    bool vector = tensor->rank == 1;
    size_t from = v->visited++;
    from = vector ? from % NORM_OFFSETS : from * OFFSET % PERIOD;
    const char *values = vector ? v->model->norms : v->model->block;
    *tensor->stored = (struct decoder_stored_tensor){
        .data = values + from * nn_dtype_bytes(v->dtype),
        .dtype = v->dtype,
        .rows = vector ? 1 : tensor->shape[0],
        .columns = tensor->shape[vector ? 0 : 1],
    };
    return STATUS_OK;
}

/* Fills a block with normal values that repeat after PERIOD elements. */
static void fill_block(void *block, size_t count, enum nn_dtype dtype, float mean, float deviation,
                       struct rng *rng) {
    float values[BLOCK_ELEMENTS];
    size_t wide = nn_dtype_bytes(dtype);
    size_t fresh = count < PERIOD ? count : PERIOD;
    for (size_t done = 0; done < fresh; done += BLOCK_ELEMENTS) {
        size_t some = fresh - done < BLOCK_ELEMENTS ? fresh - done : BLOCK_ELEMENTS;
        rng_fill_normal(rng, values, some, deviation);
        for (size_t i = 0; i < some; i++) {
            values[i] += mean;
        }
        nn_dtype_store((char *)block + done * wide, values, some, dtype);
    }
    for (size_t done = fresh; done < count; done += fresh) {
        size_t some = count - done < fresh ? count - done : fresh;
        memcpy((char *)block + done * wide, block, some * wide);
    }
}

static enum status fill_stored(struct views *v, bool shared, uint64_t seed) {
    struct llama2_random_stored *m = v->model;
    const struct llama2_config *c = &m->config;
    struct rng rng = rng_create(seed);
    size_t count, bytes;
    TRY(llama2_tensors_visit(c, shared, NULL, NULL, measure_tensor, v));
    if (!checked_add(v->largest, PERIOD, &count) || !checked_multiply(count, 4, &bytes)) {
        return STATUS_OVERFLOW;
    }
    m->block = malloc(count * nn_dtype_bytes(v->dtype));
    m->norms = malloc((c->C + NORM_OFFSETS) * nn_dtype_bytes(v->dtype));
    m->weights.layers = calloc(c->L, sizeof *m->weights.layers);
    if (m->block == NULL || m->norms == NULL || m->weights.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    fill_block(m->block, count, v->dtype, 0.0f, 1.0f / sqrtf((float)c->C), &rng);
    fill_block(m->norms, c->C + NORM_OFFSETS, v->dtype, 1.0f, 0.1f, &rng);
    TRY(llama2_tensors_visit(c, shared, &m->weights, NULL, view_tensor, v));
    m->weights.classifier = shared ? m->weights.embedding : m->weights.classifier;
    return STATUS_OK;
}

enum status llama2_random_stored_create(struct llama2_random_stored *model,
                                        const struct llama2_config *config, enum nn_dtype dtype,
                                        bool shared, uint64_t seed) {
    *model = (struct llama2_random_stored){.config = *config};
    struct views views = {.model = model, .dtype = dtype};
    enum status status = fill_stored(&views, shared, seed);
    if (status != STATUS_OK) {
        llama2_random_stored_free(model);
    }
    return status;
}

void llama2_random_stored_free(struct llama2_random_stored *model) {
    free(model->weights.layers);
    free(model->block);
    free(model->norms);
    *model = (struct llama2_random_stored){0};
}
