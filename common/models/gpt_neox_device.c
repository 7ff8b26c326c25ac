#include "common/models/gpt_neox_device.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/models/device_matrices.h"

struct loading {
    struct gpt_neox_device *device;
    const struct gpt_neox_decoder_model *model;
};

/* One stored tensor; none, if the model has no such bias. */
static enum status place(struct device_matrices *to, const struct decoder_stored_tensor *tensor,
                         enum nn_dtype dtype, const void *address, size_t heads) {
    const struct device_matrix matrix = {
        {tensor->data != NULL ? tensor : NULL}, dtype, (const void **)(uintptr_t)address, heads};
    return device_matrices_place(to, &matrix);
}

static enum status place_layer(const struct loading *l, struct device_matrices *to, size_t i) {
    const struct gpt_neox_stored_layer *w = &l->model->weights->layers[i];
    struct gpt_neox_device_layer *d = &l->device->layers[i];
    enum nn_dtype dtype = l->device->dtype;
    size_t NH = l->model->config->NH;
    TRY(place(to, &w->attention_norm, NN_F32, &d->attention_norm, 0));
    TRY(place(to, &w->attention_norm_bias, NN_F32, &d->attention_norm_bias, 0));
    TRY(place(to, &w->ffn_norm, NN_F32, &d->ffn_norm, 0));
    TRY(place(to, &w->ffn_norm_bias, NN_F32, &d->ffn_norm_bias, 0));
    TRY(place(to, &w->qkv, dtype, &d->qkv, NH));
    TRY(place(to, &w->qkv_bias, NN_F32, &d->qkv_bias, NH));
    TRY(place(to, &w->wo, dtype, &d->out, 0));
    TRY(place(to, &w->bo, NN_F32, &d->out_bias, 0));
    TRY(place(to, &w->up, dtype, &d->up, 0));
    TRY(place(to, &w->up_bias, NN_F32, &d->up_bias, 0));
    TRY(place(to, &w->down, dtype, &d->down, 0));
    return place(to, &w->down_bias, NN_F32, &d->down_bias, 0);
}

static bool is_shared(const struct gpt_neox_stored_weights *w) {
    return w->classifier.data == w->embedding.data;
}

/* All weights, in the order in which they lie in memory: the embedding has the address of all. */
static enum status place_all(void *context, struct device_matrices *to) {
    const struct loading *l = context;
    const struct gpt_neox_stored_weights *w = l->model->weights;
    struct gpt_neox_device *d = l->device;
    TRY(place(to, &w->embedding, d->dtype, &d->embedding, 0));
    TRY(place(to, &w->final_norm, NN_F32, &d->final_norm, 0));
    TRY(place(to, &w->final_norm_bias, NN_F32, &d->final_norm_bias, 0));
    TRY(is_shared(w) ? STATUS_OK : place(to, &w->classifier, d->dtype, &d->classifier, 0));
    for (size_t i = 0; i < l->model->config->L; i++) {
        TRY(place_layer(l, to, i));
    }
    return STATUS_OK;
}

static enum status load(struct loading *l, device_stream stream, struct error *error) {
    void *memory;
    size_t L = l->model->config->L;
    l->device->layers = calloc(L, sizeof *l->device->layers);
    if (l->device->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", L);
    }
    enum status status =
        device_matrices_load(place_all, l, stream, &memory, &l->device->bytes, error);
    l->device->embedding = memory; /* NULL after a failure */
    if (status == STATUS_OK && is_shared(l->model->weights)) {
        l->device->classifier = l->device->embedding;
    }
    return status;
}

enum status gpt_neox_device_load(struct gpt_neox_device *device,
                                 const struct gpt_neox_decoder_model *model, device_stream stream,
                                 struct error *error) {
    *device = (struct gpt_neox_device){.dtype = model->dtype};
    struct loading loading = {device, model};
    enum status status = load(&loading, stream, error);
    if (status != STATUS_OK) {
        char prefix[64];
        gpt_neox_device_free(device);
        snprintf(prefix, sizeof prefix, "a GPT-NeoX's weights in %s", nn_dtype_name(model->dtype));
        return error_prefix(error, status, prefix);
    }
    return STATUS_OK;
}

void gpt_neox_device_free(struct gpt_neox_device *device) {
    device_free((void *)(uintptr_t)device->embedding);
    free(device->layers);
    *device = (struct gpt_neox_device){0};
}
