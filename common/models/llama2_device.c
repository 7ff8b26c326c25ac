#include "common/models/llama2_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/models/device_matrices.h"

enum { LAYER_MATRICES = 10, OTHER_MATRICES = 3 };

struct loading {
    struct llama2_device *device;
    const struct llama2_decoder_model *model;
};

static bool is_shared(const struct llama2_stored_weights *w) {
    return w->classifier.data == w->embedding.data;
}

/* A tensor that may be absent. */
static const struct decoder_stored_tensor *present(const struct decoder_stored_tensor *tensor) {
    return tensor->data != NULL ? tensor : NULL;
}

static void list_layer(struct device_matrix matrices[LAYER_MATRICES],
                       const struct llama2_stored_layer *w, struct llama2_device_layer *layer,
                       enum nn_dtype dtype) {
    const struct device_matrix list[LAYER_MATRICES] = {
        {{&w->attention_norm}, NN_F32, (const void **)&layer->attention_norm, 0},
        {{&w->wq, &w->wk, &w->wv}, dtype, &layer->qkv, 0},
        {{&w->wo}, dtype, &layer->out, 0},
        {{&w->ffn_norm}, NN_F32, (const void **)&layer->ffn_norm, 0},
        {{&w->w1, &w->w3}, dtype, &layer->gate_up, 0},
        {{&w->w2}, dtype, &layer->down, 0},
        {{present(&w->bq), &w->bk, &w->bv}, NN_F32, (const void **)&layer->qkv_bias, 0},
        {{present(&w->bo)}, NN_F32, (const void **)&layer->out_bias, 0},
        {{present(&w->b1), &w->b3}, NN_F32, (const void **)&layer->gate_up_bias, 0},
        {{present(&w->b2)}, NN_F32, (const void **)&layer->down_bias, 0},
    };
    memcpy(matrices, list, sizeof list);
}

/* The embedding comes first, so that its address is the address of the whole memory. */
static void list_others(struct device_matrix matrices[OTHER_MATRICES],
                        const struct llama2_stored_weights *w, struct llama2_device *device) {
    const struct decoder_stored_tensor *classifier = is_shared(w) ? NULL : &w->classifier;
    const struct device_matrix list[OTHER_MATRICES] = {
        {{&w->embedding}, device->dtype, &device->embedding, 0},
        {{&w->final_norm}, NN_F32, (const void **)&device->final_norm, 0},
        {{classifier}, device->dtype, &device->classifier, 0},
    };
    memcpy(matrices, list, sizeof list);
}

static enum status place_matrices(struct device_matrices *to, const struct device_matrix *matrices,
                                  size_t count) {
    for (size_t i = 0; i < count; i++) {
        TRY(device_matrices_place(to, &matrices[i]));
    }
    return STATUS_OK;
}

/* All weights, in the order in which they lie in memory. */
static enum status place_all(void *context, struct device_matrices *to) {
    const struct loading *l = context;
    const struct llama2_stored_weights *w = l->model->weights;
    struct device_matrix others[OTHER_MATRICES];
    list_others(others, w, l->device);
    TRY(place_matrices(to, others, OTHER_MATRICES));
    for (size_t i = 0; i < l->model->config->L; i++) {
        struct device_matrix layer[LAYER_MATRICES];
        list_layer(layer, &w->layers[i], &l->device->layers[i], l->device->dtype);
        TRY(place_matrices(to, layer, LAYER_MATRICES));
    }
    return STATUS_OK;
}

/* Bytes of the tensors, which all fit into memory. */
static enum status add_bytes(void *context, const struct decoder_weight *tensor) {
    struct llama2_device *device = context;
    const struct decoder_stored_tensor *t = tensor->stored;
    enum nn_dtype dtype = tensor->rank == 1 ? NN_F32 : device->dtype;
    device->decode_bytes += t->rows * t->columns * nn_dtype_bytes(dtype);
    return STATUS_OK;
}

static enum status load(struct loading *l, device_stream stream, struct error *error) {
    struct llama2_device *device = l->device;
    struct llama2_stored_weights w = *l->model->weights; /* visitors get writable pointers */
    const struct decoder_stored_tensor *embedding = &w.embedding;
    bool shared = is_shared(&w);
    void *memory;
    TRY(device_matrices_load(place_all, l, stream, &memory, &device->bytes, error));
    device->embedding = memory;
    TRY(llama2_tensors_visit(l->model->config, shared, &w, NULL, add_bytes, device));
    if (shared) {
        device->classifier = device->embedding;
    } else {
        device->decode_bytes -=
            (embedding->rows - 1) * embedding->columns * nn_dtype_bytes(device->dtype);
    }
    return STATUS_OK;
}

static enum status give_up(struct llama2_device *device, const struct llama2_decoder_model *model,
                           enum status status, struct error *error) {
    char prefix[64];
    llama2_device_free(device);
    snprintf(prefix, sizeof prefix, "a Llama2's weights in %s", nn_dtype_name(model->dtype));
    return error_prefix(error, status, prefix);
}

enum status llama2_device_load(struct llama2_device *device,
                               const struct llama2_decoder_model *model, device_stream stream,
                               struct error *error) {
    *device = (struct llama2_device){.dtype = model->dtype};
    struct loading loading = {.device = device, .model = model};
    device->layers = calloc(model->config->L, sizeof *device->layers);
    if (device->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers",
                         model->config->L);
    }
    enum status status = load(&loading, stream, error);
    return status == STATUS_OK ? STATUS_OK : give_up(device, model, status, error);
}

void llama2_device_free(struct llama2_device *device) {
    device_free((void *)device->embedding);
    free(device->layers);
    *device = (struct llama2_device){0};
}
