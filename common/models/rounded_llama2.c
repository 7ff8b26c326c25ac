#include "common/models/rounded_llama2.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"

static enum status round_matrix(const float *matrix, size_t count, enum nn_dtype dtype) {
    void *stored = malloc(count * sizeof(float) + 1);
    if (stored == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    nn_dtype_store(stored, matrix, count, dtype);
    nn_dtype_load((float *)(uintptr_t)matrix, stored, count,
                  dtype); /* the model owns it, not const */
    free(stored);
    return STATUS_OK;
}

static enum status round_and_store(void *dtype, const struct decoder_weight *tensor) {
    size_t columns = tensor->rank == 2 ? tensor->shape[1] : tensor->shape[0];
    size_t rows = tensor->rank == 2 ? tensor->shape[0] : 1;
    *tensor->stored = (struct decoder_stored_tensor){
        .data = *tensor->plain[0], .dtype = NN_F32, .rows = rows, .columns = columns};
    return tensor->rank == 2
               ? round_matrix(*tensor->plain[0], rows * columns, *(const enum nn_dtype *)dtype)
               : STATUS_OK;
}

static enum status make_classifier(struct rounded_llama2 *model, uint64_t seed) {
    size_t C = model->random.config.C, count = model->random.config.V * C;
    struct rng rng = rng_create(seed + 1);
    model->classifier = malloc(count * sizeof *model->classifier);
    if (model->classifier == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    rng_fill_normal(&rng, model->classifier, count, 1.0f / sqrtf((float)C));
    model->random.weights.classifier = model->classifier;
    return STATUS_OK;
}

enum status rounded_llama2_create(struct rounded_llama2 *model, const struct llama2_config *config,
                                  enum nn_dtype dtype, bool own_classifier, uint64_t seed) {
    *model = (struct rounded_llama2){0};
    TRY(llama2_random_create(&model->random, config, seed));
    if (own_classifier) {
        TRY(make_classifier(model, seed));
    }
    model->stored.layers = calloc(config->L, sizeof *model->stored.layers);
    if (model->stored.layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(llama2_tensors_visit(config, !own_classifier, &model->stored, &model->random.weights,
                             round_and_store, &dtype));
    if (!own_classifier) {
        model->stored.classifier = model->stored.embedding;
    }
    return STATUS_OK;
}

void rounded_llama2_free(struct rounded_llama2 *model) {
    llama2_random_free(&model->random);
    free(model->classifier);
    free(model->stored.layers);
    *model = (struct rounded_llama2){0};
}
