#include "common/models/llama2_device.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum {
    LAYER_PLACES = 6,
    OTHER_PLACES = 3,
    MOST_PARTS = 3,
    ALIGNMENT = 256,
    CODES = 65536, /* values of a 16-bit type */
    BLOCK = 4096   /* elements converted at once */
};

/* Of the staging buffer, in bytes: the table of conversions, then elements on their way. */
static const size_t TABLE_BYTES = (size_t)CODES * sizeof(float);
static const size_t CHUNK_BYTES = ((size_t)64 << 20) - (size_t)CODES * sizeof(float);

/* Stored tensors that lie one below the other on the device. */
struct place {
    const struct llama2_stored_tensor *parts[MOST_PARTS]; /* NULL behind the last */
    enum nn_dtype dtype;                                  /* on the device */
    const void **address;
};

/* What loading works with. */
struct loading {
    struct llama2_device *device;
    const struct llama2_decoder_model *model;
    device_stream stream;
    struct error *error;
    unsigned char *memory;  /* device; NULL while sizes are added up */
    size_t used;            /* bytes of it */
    void *table;            /* host: element i is that of code i, converted */
    unsigned char *staging; /* host, CHUNK_BYTES; NULL: nothing was converted yet */
    enum nn_dtype from, to; /* the table's; equal: there is none */
};

static bool is_shared(const struct llama2_stored_weights *w) {
    return w->classifier.data == w->embedding.data;
}

static void list_layer(struct place places[LAYER_PLACES], const struct llama2_stored_layer *w,
                       struct llama2_device_layer *layer, enum nn_dtype dtype) {
    const struct place list[LAYER_PLACES] = {
        {{&w->attention_norm}, NN_F32, (const void **)&layer->attention_norm},
        {{&w->wq, &w->wk, &w->wv}, dtype, &layer->qkv},
        {{&w->wo}, dtype, &layer->out},
        {{&w->ffn_norm}, NN_F32, (const void **)&layer->ffn_norm},
        {{&w->w1, &w->w3}, dtype, &layer->gate_up},
        {{&w->w2}, dtype, &layer->down},
    };
    memcpy(places, list, sizeof list);
}

/* The embedding is first: its address is that of the whole memory. */
static void list_others(struct place places[OTHER_PLACES], const struct llama2_stored_weights *w,
                        struct llama2_device *device) {
    const struct llama2_stored_tensor *classifier = is_shared(w) ? NULL : &w->classifier;
    const struct place list[OTHER_PLACES] = {
        {{&w->embedding}, device->dtype, &device->embedding},
        {{&w->final_norm}, NN_F32, (const void **)&device->final_norm},
        {{classifier}, device->dtype, &device->classifier},
    };
    memcpy(places, list, sizeof list);
}

/* The staging buffer, when it is first needed: files that hold the device's type do without. */
static enum status make_staging(struct loading *l) {
    if (l->table != NULL) {
        return STATUS_OK;
    }
    TRY(device_alloc_host(&l->table, TABLE_BYTES + CHUNK_BYTES, l->error));
    l->staging = (unsigned char *)l->table + TABLE_BYTES;
    return STATUS_OK;
}

/* A 16-bit type has so few values that each is converted once, and looked up from then on. */
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

/* The stored elements may lie at any address, so they are taken out with memcpy(). */
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

/* Adds up a place's bytes, or copies its parts, when there is memory. */
static enum status put(struct loading *l, const struct place *place) {
    size_t begin = ceil_div(l->used, ALIGNMENT) * ALIGNMENT;
    l->used = begin;
    for (size_t p = 0; p < MOST_PARTS && place->parts[p] != NULL; p++) {
        const struct llama2_stored_tensor *tensor = place->parts[p];
        size_t count, bytes, end;
        if (!checked_multiply(tensor->rows, tensor->columns, &count) ||
            !checked_multiply(count, nn_dtype_bytes(place->dtype), &bytes) ||
            !checked_add(l->used, bytes, &end) || end > SIZE_MAX - ALIGNMENT) {
            return error_set(l->error, STATUS_OVERFLOW, "the weights' sizes overflow: %zu x %zu",
                             tensor->rows, tensor->columns);
        }
        if (l->memory == NULL) {
            l->device->decode_bytes += bytes; /* no more than used: does not overflow */
        } else if (tensor->dtype == place->dtype) {
            TRY(device_write(l->memory + l->used, tensor->data, bytes, l->stream, l->error));
        } else {
            TRY(convert(l, l->memory + l->used, tensor->data, tensor->dtype, place->dtype, count));
        }
        l->used = end;
    }
    *place->address = l->memory != NULL ? l->memory + begin : NULL;
    return STATUS_OK;
}

static enum status put_all(struct loading *l, const struct place *places, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (places[i].parts[0] != NULL) {
            TRY(put(l, &places[i]));
        }
    }
    return STATUS_OK;
}

/* All weights, in the order in which they lie in memory. */
static enum status walk(struct loading *l) {
    const struct llama2_stored_weights *w = l->model->weights;
    struct place others[OTHER_PLACES];
    list_others(others, w, l->device);
    l->used = 0;
    TRY(put_all(l, others, OTHER_PLACES));
    for (size_t i = 0; i < l->model->config->L; i++) {
        struct place layer[LAYER_PLACES];
        list_layer(layer, &w->layers[i], &l->device->layers[i], l->device->dtype);
        TRY(put_all(l, layer, LAYER_PLACES));
    }
    return STATUS_OK;
}

static enum status load(struct loading *l) {
    const struct llama2_stored_tensor *embedding = &l->model->weights->embedding;
    struct llama2_device *device = l->device;
    void *memory;
    TRY(walk(l));
    device->bytes = l->used;
    TRY(device_alloc(&memory, device->bytes, l->error));
    device->embedding = memory; /* also while nothing is there yet: so that it is freed */
    l->memory = memory;
    TRY(walk(l));
    if (is_shared(l->model->weights)) {
        device->classifier = device->embedding;
    } else {
        device->decode_bytes -=
            (embedding->rows - 1) * embedding->columns * nn_dtype_bytes(device->dtype);
    }
    return device_synchronize(l->stream, l->error);
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
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    llama2_device_free(device);
    char prefix[64];
    snprintf(prefix, sizeof prefix, "a Llama2's weights in %s", nn_dtype_name(model->dtype));
    return error_prefix(error, status, prefix);
}

void llama2_device_free(struct llama2_device *device) {
    device_free((void *)device->embedding);
    free(device->layers);
    *device = (struct llama2_device){0};
}
