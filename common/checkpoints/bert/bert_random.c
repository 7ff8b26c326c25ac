#include "common/checkpoints/bert/bert_random.h"

#include <math.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/rng.h"
#include "common/checkpoints/bert/bert_tensors.h"

/* The first visit of all tensors measures them, the second fills them. */
struct filler {
    struct arena *arena;
    struct rng rng;
    size_t bytes;
};

static enum status measure(void *context, const struct bert_tensor *tensor) {
    struct filler *filler = context;
    size_t count = tensor->shape[0];
    if ((tensor->rank == 2 && !checked_multiply(count, tensor->shape[1], &count)) ||
        !checked_add(filler->bytes, arena_footprint(count, sizeof(float)), &filler->bytes)) {
        return STATUS_OVERFLOW;
    }
    return STATUS_OK;
}

static enum status fill(void *context, const struct bert_tensor *tensor) {
    struct filler *filler = context;
    size_t count = tensor->rank == 2 ? tensor->shape[0] * tensor->shape[1] : tensor->shape[0];
    float *values = arena_alloc(filler->arena, count, sizeof *values);
    if (values == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    float scale = tensor->rank == 2 ? 1.0f / sqrtf((float)tensor->shape[1]) : 0.02f;
    rng_fill_normal(&filler->rng, values, count, scale);
    bool norm_weight = strstr(tensor->name, "LayerNorm.weight") != NULL;
    for (size_t i = 0; i < count && norm_weight; i++) {
        values[i] += 1.0f;
    }
    *tensor->slot = values;
    return STATUS_OK;
}

static enum status create_weights(struct bert_random *model, uint64_t seed) {
    const struct bert_config *config = &model->config;
    const struct bert_heads heads = {.pooler = true, .classifier = config->labels > 0};
    struct filler filler = {.arena = &model->arena, .rng = rng_create(seed)};
    struct bert_weights *weights = &model->weights;
    TRY(bert_tensors_visit(config, heads, weights, measure, &filler));
    size_t layers = arena_footprint(config->L, sizeof *weights->layers);
    if (!checked_add(filler.bytes, layers, &filler.bytes)) {
        return STATUS_OVERFLOW;
    }
    TRY(arena_create(&model->arena, filler.bytes));
    weights->layers = arena_alloc(&model->arena, config->L, sizeof *weights->layers);
    if (weights->layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    return bert_tensors_visit(config, heads, weights, fill, &filler);
}

enum status bert_random_create(struct bert_random *model, const struct bert_config *config,
                               uint64_t seed) {
    *model = (struct bert_random){.config = *config};
    enum status status = create_weights(model, seed);
    if (status != STATUS_OK) {
        bert_random_free(model);
    }
    return status;
}

void bert_random_free(struct bert_random *model) {
    arena_free(&model->arena);
    *model = (struct bert_random){0};
}
