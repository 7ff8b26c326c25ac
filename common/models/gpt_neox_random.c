#include "common/models/gpt_neox_random.h"

#include <math.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/rng.h"
#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"

struct shape {
    const char *text, *name;
    size_t C, L, NH, V;
};

static const struct shape shapes[GPT_NEOX_SHAPES] = {
    [GPT_NEOX_SHAPE_70M] = {"70m", "70M", 512, 6, 8, 50304},
    [GPT_NEOX_SHAPE_160M] = {"160m", "160M", 768, 12, 12, 50304},
    [GPT_NEOX_SHAPE_410M] = {"410m", "410M", 1024, 24, 16, 50304},
    [GPT_NEOX_SHAPE_1_4B] = {"1.4b", "1.4B", 2048, 24, 16, 50304},
    [GPT_NEOX_SHAPE_2_8B] = {"2.8b", "2.8B", 2560, 32, 32, 50304},
    [GPT_NEOX_SHAPE_6_9B] = {"6.9b", "6.9B", 4096, 32, 32, 50432},
    [GPT_NEOX_SHAPE_12B] = {"12b", "12B", 5120, 36, 40, 50688},
};

struct gpt_neox_config gpt_neox_shape_config(enum gpt_neox_shape shape) {
    const struct shape *s = &shapes[shape];
    return (struct gpt_neox_config){.C = s->C,
                                    .hidden = 4 * s->C,
                                    .L = s->L,
                                    .NH = s->NH,
                                    .HS = s->C / s->NH,
                                    .V = s->V,
                                    .T = 2048,
                                    .rotary = s->C / s->NH / 4,
                                    .rope_theta = 10000.0f,
                                    .norm_eps = 1e-5f,
                                    .activation = NN_GELU,
                                    .parallel = true,
                                    .attention_bias = true};
}

const char *gpt_neox_shape_name(enum gpt_neox_shape shape) {
    return shapes[shape].name;
}

enum status gpt_neox_shape_parse(const char *text, enum gpt_neox_shape *shape,
                                 struct error *error) {
    for (int i = 0; i < GPT_NEOX_SHAPES; i++) {
        if (strcmp(text, shapes[i].text) == 0) {
            *shape = (enum gpt_neox_shape)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "'%s' is no shape of Pythia; there are 70m, 160m, 410m, 1.4b, 2.8b, 6.9b and "
                     "12b",
                     text);
}

/* The first visit of all tensors measures them, the second fills them. */
struct filler {
    struct arena *arena;
    struct rng rng;
    size_t bytes;
};

static enum status measure(void *context, const struct decoder_weight *tensor) {
    struct filler *filler = context;
    size_t count = tensor->shape[0] / tensor->parts;
    if (tensor->rank == 2 && !checked_multiply(count, tensor->shape[1], &count)) {
        return STATUS_OVERFLOW;
    }
    for (size_t part = 0; part < tensor->parts; part++) {
        if (!checked_add(filler->bytes, arena_footprint(count, sizeof(float)), &filler->bytes)) {
            return STATUS_OVERFLOW;
        }
    }
    return STATUS_OK;
}

static enum status fill(void *context, const struct decoder_weight *tensor) {
    struct filler *filler = context;
    size_t count = decoder_weight_count(tensor) / tensor->parts;
    bool matrix = tensor->rank == 2;
    bool norm = !matrix && strstr(tensor->name, "norm.weight") != NULL;
    for (size_t part = 0; part < tensor->parts; part++) {
        float *values = arena_alloc(filler->arena, count, sizeof *values);
        if (values == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        rng_fill_normal(&filler->rng, values, count,
                        matrix ? 1.0f / sqrtf((float)tensor->shape[1]) : 0.1f);
        for (size_t i = 0; i < count && norm; i++) {
            values[i] += 1.0f;
        }
        *tensor->plain[part] = values;
    }
    return STATUS_OK;
}

static enum status create_weights(struct gpt_neox_random *model, bool shared, uint64_t seed) {
    const struct gpt_neox_config *c = &model->config;
    struct gpt_neox_weights *weights = &model->weights;
    struct filler filler = {.arena = &model->arena, .rng = rng_create(seed)};
    TRY(gpt_neox_tensors_visit(c, shared, NULL, weights, measure, &filler));
    if (!checked_add(filler.bytes, arena_footprint(c->L, sizeof *weights->layers), &filler.bytes)) {
        return STATUS_OVERFLOW;
    }
    TRY(arena_create(&model->arena, filler.bytes));
    weights->layers = arena_alloc(&model->arena, c->L, sizeof *weights->layers);
    if (weights->layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(gpt_neox_tensors_visit(c, shared, NULL, weights, fill, &filler));
    if (shared) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}

enum status gpt_neox_random_create(struct gpt_neox_random *model,
                                   const struct gpt_neox_config *config, bool shared,
                                   uint64_t seed) {
    *model = (struct gpt_neox_random){.config = *config};
    enum status status = create_weights(model, shared, seed);
    if (status != STATUS_OK) {
        gpt_neox_random_free(model);
    }
    return status;
}

void gpt_neox_random_free(struct gpt_neox_random *model) {
    arena_free(&model->arena);
    *model = (struct gpt_neox_random){0};
}
