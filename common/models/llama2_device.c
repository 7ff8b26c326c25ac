#include "common/models/llama2_device.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum {
    LAYER_MATRICES = 10,
    OTHER_MATRICES = 3,
    MOST_TENSORS = 3,
    ALIGNMENT = 256,
    CODES = 65536, /* values of a 16-bit type */
    BLOCK = 4096   /* elements converted at once */
};

/* Bytes of the two halves of the host buffer: a table of conversions, then converted elements. */
static const size_t TABLE_BYTES = (size_t)CODES * sizeof(float);
static const size_t CHUNK_BYTES = ((size_t)64 << 20) - (size_t)CODES * sizeof(float);

/* A matrix on the device: the rows of one to three stored tensors. */
struct matrix {
    const struct llama2_stored_tensor *tensors[MOST_TENSORS]; /* NULL after the last */
    enum nn_dtype dtype;                                      /* on the device */
    const void **address;                                     /* receives the device address */
};

struct loading {
    struct llama2_device *device;
    const struct llama2_decoder_model *model;
    device_stream stream;
    struct error *error;
    unsigned char *memory;  /* device; NULL while sizes are added up */
    size_t used;            /* bytes of memory */
    void *table;            /* host: element i is the value of code i in the type `to` */
    unsigned char *staging; /* host, CHUNK_BYTES; NULL: nothing was converted yet */
    enum nn_dtype from, to; /* types of the table; equal: it is not filled yet */
};

static bool is_shared(const struct llama2_stored_weights *w) {
    return w->classifier.data == w->embedding.data;
}

/* A tensor that may be absent. */
static const struct llama2_stored_tensor *present(const struct llama2_stored_tensor *tensor) {
    return tensor->data != NULL ? tensor : NULL;
}

static void list_layer(struct matrix matrices[LAYER_MATRICES], const struct llama2_stored_layer *w,
                       struct llama2_device_layer *layer, enum nn_dtype dtype) {
    const struct matrix list[LAYER_MATRICES] = {
        {{&w->attention_norm}, NN_F32, (const void **)&layer->attention_norm},
        {{&w->wq, &w->wk, &w->wv}, dtype, &layer->qkv},
        {{&w->wo}, dtype, &layer->out},
        {{&w->ffn_norm}, NN_F32, (const void **)&layer->ffn_norm},
        {{&w->w1, &w->w3}, dtype, &layer->gate_up},
        {{&w->w2}, dtype, &layer->down},
        {{present(&w->bq), &w->bk, &w->bv}, NN_F32, (const void **)&layer->qkv_bias},
        {{present(&w->bo)}, NN_F32, (const void **)&layer->out_bias},
        {{present(&w->b1), &w->b3}, NN_F32, (const void **)&layer->gate_up_bias},
        {{present(&w->b2)}, NN_F32, (const void **)&layer->down_bias},
    };
    memcpy(matrices, list, sizeof list);
}

/* The embedding comes first, so that its address is the address of the whole memory. */
static void list_others(struct matrix matrices[OTHER_MATRICES],
                        const struct llama2_stored_weights *w, struct llama2_device *device) {
    const struct llama2_stored_tensor *classifier = is_shared(w) ? NULL : &w->classifier;
    const struct matrix list[OTHER_MATRICES] = {
        {{&w->embedding}, device->dtype, &device->embedding},
        {{&w->final_norm}, NN_F32, (const void **)&device->final_norm},
        {{classifier}, device->dtype, &device->classifier},
    };
    memcpy(matrices, list, sizeof list);
}

/* Allocates the host buffer when it is first needed: a file in the device's type needs none. */
static enum status make_staging(struct loading *l) {
    if (l->table != NULL) {
        return STATUS_OK;
    }
    TRY(device_alloc_host(&l->table, TABLE_BYTES + CHUNK_BYTES, l->error));
    l->staging = (unsigned char *)l->table + TABLE_BYTES;
    return STATUS_OK;
}

/* Converts all values of a 16-bit type once, so that elements can be looked up. */
static void make_table(struct loading *l, enum nn_dtype from, enum nn_dtype to) {
    if (l->from == from && l->to == to) {
        return;
    }
    for (size_t first = 0; first < CODES; first += BLOCK) {
        uint16_t codes[BLOCK];
        float values[BLOCK];
        for (size_t i = 0; i < BLOCK; i++) {
            codes[i] = (uint16_t)(first + i);
        }
        nn_dtype_load(values, codes, BLOCK, from);
        nn_dtype_store((unsigned char *)l->table + first * nn_dtype_bytes(to), values, BLOCK, to);
    }
    l->from = from;
    l->to = to;
}

/* memcpy() reads the stored elements, as they may lie at odd addresses. */
static void look_up(const struct loading *l, const unsigned char *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint16_t code;
        memcpy(&code, from + i * sizeof code, sizeof code);
        if (l->to == NN_F32) {
            ((float *)(void *)l->staging)[i] = ((const float *)l->table)[code];
        } else {
            ((uint16_t *)(void *)l->staging)[i] = ((const uint16_t *)l->table)[code];
        }
    }
}

static void round_down(struct loading *l, const unsigned char *from, size_t count,
                       enum nn_dtype to) {
    float block[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t some = count - done < BLOCK ? count - done : BLOCK;
        memcpy(block, from + done * sizeof *block, some * sizeof *block);
        nn_dtype_store(l->staging + done * nn_dtype_bytes(to), block, some, to);
    }
}

static enum status convert(struct loading *l, unsigned char *to, const void *data,
                           enum nn_dtype from, enum nn_dtype dtype, size_t count) {
    const unsigned char *stored = data;
    size_t wide = nn_dtype_bytes(dtype);
    TRY(make_staging(l));
    if (from != NN_F32) {
        make_table(l, from, dtype);
    }
    for (size_t done = 0; done < count;) {
        size_t room = CHUNK_BYTES / wide;
        size_t some = count - done < room ? count - done : room;
        if (from != NN_F32) {
            look_up(l, stored + done * nn_dtype_bytes(from), some);
        } else {
            round_down(l, stored + done * sizeof(float), some, dtype);
        }
        TRY(device_write(to + done * wide, l->staging, some * wide, l->stream, l->error));
        done += some;
    }
    return STATUS_OK;
}

/* Adds up the bytes of a tensor while there is no device memory; then copies it there. */
static enum status place_tensor(struct loading *l, const struct llama2_stored_tensor *tensor,
                                enum nn_dtype dtype) {
    size_t count, bytes, end;
    if (!checked_multiply(tensor->rows, tensor->columns, &count) ||
        !checked_multiply(count, nn_dtype_bytes(dtype), &bytes) ||
        !checked_add(l->used, bytes, &end) || end > SIZE_MAX - ALIGNMENT) {
        return error_set(l->error, STATUS_OVERFLOW, "the weights' sizes overflow: %zu x %zu",
                         tensor->rows, tensor->columns);
    }
    if (l->memory == NULL) {
        l->device->decode_bytes += bytes; /* at most l->used, so it does not overflow */
    } else if (tensor->dtype == dtype) {
        TRY(device_write(l->memory + l->used, tensor->data, bytes, l->stream, l->error));
    } else {
        TRY(convert(l, l->memory + l->used, tensor->data, tensor->dtype, dtype, count));
    }
    l->used = end;
    return STATUS_OK;
}

static enum status place_matrix(struct loading *l, const struct matrix *matrix) {
    size_t begin = ceil_div(l->used, ALIGNMENT) * ALIGNMENT;
    l->used = begin;
    for (size_t t = 0; t < MOST_TENSORS && matrix->tensors[t] != NULL; t++) {
        TRY(place_tensor(l, matrix->tensors[t], matrix->dtype));
    }
    *matrix->address = l->memory != NULL ? l->memory + begin : NULL;
    return STATUS_OK;
}

static enum status place_matrices(struct loading *l, const struct matrix *matrices, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (matrices[i].tensors[0] != NULL) {
            TRY(place_matrix(l, &matrices[i]));
        }
    }
    return STATUS_OK;
}

/* All weights, in the order in which they lie in memory. */
static enum status place_all(struct loading *l) {
    const struct llama2_stored_weights *w = l->model->weights;
    struct matrix others[OTHER_MATRICES];
    list_others(others, w, l->device);
    l->used = 0;
    TRY(place_matrices(l, others, OTHER_MATRICES));
    for (size_t i = 0; i < l->model->config->L; i++) {
        struct matrix layer[LAYER_MATRICES];
        list_layer(layer, &w->layers[i], &l->device->layers[i], l->device->dtype);
        TRY(place_matrices(l, layer, LAYER_MATRICES));
    }
    return STATUS_OK;
}

static enum status load(struct loading *l) {
    const struct llama2_stored_tensor *embedding = &l->model->weights->embedding;
    struct llama2_device *device = l->device;
    void *memory;
    TRY(place_all(l)); /* without memory: adds up the sizes */
    device->bytes = l->used;
    TRY(device_alloc(&memory, device->bytes, l->error));
    device->embedding = memory; /* already now, so that a failure frees it */
    l->memory = memory;
    TRY(place_all(l));
    if (is_shared(l->model->weights)) {
        device->classifier = device->embedding;
    } else {
        device->decode_bytes -=
            (embedding->rows - 1) * embedding->columns * nn_dtype_bytes(device->dtype);
    }
    return device_synchronize(l->stream, l->error);
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
    struct loading loading = {.device = device, .model = model, .stream = stream, .error = error};
    device->layers = calloc(model->config->L, sizeof *device->layers);
    if (device->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers",
                         model->config->L);
    }
    enum status status = load(&loading);
    device_free_host(loading.table);
    return status == STATUS_OK ? STATUS_OK : give_up(device, model, status, error);
}

void llama2_device_free(struct llama2_device *device) {
    device_free((void *)device->embedding);
    free(device->layers);
    *device = (struct llama2_device){0};
}
