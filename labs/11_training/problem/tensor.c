#include "labs/11_training/problem/tensor.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng_bell.h"

/* Elements that are converted at a time. */
enum { BLOCK = 1024 };

/* Elements of two bytes share floats. */
static size_t floats_of(const struct tensor *t) {
    return (t->count * nn_dtype_bytes(t->dtype) + sizeof(float) - 1) / sizeof(float);
}

enum status tensor_create(struct tensor *t, enum nn_dtype dtype, size_t count, bool guarded,
                          struct error *error) {
    *t = (struct tensor){.dtype = dtype, .count = count};
    t->values = calloc(count + 1, sizeof *t->values);
    t->bytes = calloc(floats_of(t) + 1, sizeof *t->bytes);
    if (t->values == NULL || t->bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(device_buffer_create(&t->buffer, floats_of(t), guarded, 0, error));
    return tensor_poison(t, error);
}

void tensor_free(struct tensor *t) {
    device_buffer_free(&t->buffer);
    free(t->values);
    free(t->bytes);
    *t = (struct tensor){0};
}

enum status tensor_place(struct tensor *copy, struct error *error) {
    copy->buffer = (struct device_buffer){0};
    return device_buffer_create(&copy->buffer, floats_of(copy), false, 0, error);
}

void tensor_unplace(struct tensor *copy) {
    device_buffer_free(&copy->buffer);
}

/* Some elements from `first` on, as stored; t->values receives them as the dtype has them. */
static void store_block(struct tensor *t, const double *values, size_t first, size_t count) {
    float rounded[BLOCK];
    void *at = (char *)t->bytes + first * nn_dtype_bytes(t->dtype);
    for (size_t i = 0; i < count; i++) {
        rounded[i] = (float)values[first + i];
    }
    nn_dtype_store(at, rounded, count, t->dtype);
    nn_dtype_load(rounded, at, count, t->dtype);
    for (size_t i = 0; i < count; i++) {
        t->values[first + i] = (double)rounded[i];
    }
}

static size_t block_at(const struct tensor *t, size_t first) {
    return t->count - first < BLOCK ? t->count - first : BLOCK;
}

static void store(struct tensor *t, const double *values) {
    if (t->count > 0) { /* half a float may lie behind the last element */
        memset(&t->bytes[floats_of(t) - 1], 0xff, sizeof *t->bytes);
    }
    for (size_t i = 0; i < t->count; i += BLOCK) {
        store_block(t, values, i, block_at(t, i));
    }
}

enum status tensor_put(struct tensor *t, const double *values, struct error *error) {
    store(t, values == NULL ? t->values : values);
    return device_buffer_put(&t->buffer, t->bytes, error);
}

enum status tensor_poison(struct tensor *t, struct error *error) {
    memset(t->bytes, 0xff, floats_of(t) * sizeof(float));
    return device_buffer_put(&t->buffer, t->bytes, error);
}

void tensor_fill(struct tensor *t, struct rng *rng, double mean, double deviation) {
    float drawn[BLOCK];
    for (size_t i = 0; i < t->count; i++) {
        if (i % BLOCK == 0) {
            rng_fill_bell(rng, drawn, block_at(t, i), 1.0f);
        }
        t->values[i] = mean + deviation * (double)drawn[i % BLOCK];
    }
    store(t, t->values);
}

enum status tensor_draw(struct tensor *t, struct rng *rng, double mean, double deviation,
                        struct error *error) {
    tensor_fill(t, rng, mean, deviation);
    return device_buffer_put(&t->buffer, t->bytes, error);
}

enum status tensor_get(const struct tensor *t, float *got, bool *intact, bool *changed,
                       struct error *error) {
    TRY(device_buffer_get(&t->buffer, t->bytes, intact, changed, error));
    nn_dtype_load(got, t->bytes, t->count, t->dtype);
    return STATUS_OK;
}

double tensor_largest(const struct tensor *t) {
    double largest = 0.0;
    for (size_t i = 0; i < t->count; i++) {
        largest = fmax(largest, fabs(t->values[i]));
    }
    return largest;
}

struct tolerance tensor_tighten(struct tolerance t, double share, double norm, double largest,
                                enum nn_dtype dtype) {
    if (share > 0.0) {
        t.absolute = fmin(t.absolute, share * largest);
        t.relative = fmin(t.relative, nn_dtype_rounding(dtype));
        t.norm = fmin(t.norm, norm);
    }
    return t;
}

/* ---- The same bits twice ---- */

/* Bytes of a call's outputs: host. */
struct bits {
    void *of[TENSOR_MOST_OUTPUTS];
};

static size_t bytes_of(const struct tensor *t) {
    return t->count * nn_dtype_bytes(t->dtype);
}

static enum status bits_read(struct bits *bits, const struct tensor_outputs *outputs,
                             struct error *error) {
    for (size_t i = 0; i < outputs->count; i++) {
        const struct tensor *t = outputs->tensors[i];
        bits->of[i] = malloc(bytes_of(t) + 1);
        if (bits->of[i] == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
        }
        if (t->count > 0) {
            TRY(device_read(bits->of[i], t->buffer.data, bytes_of(t), NULL, error));
        }
    }
    return STATUS_OK;
}

static void bits_free(struct bits *bits) {
    for (size_t i = 0; i < TENSOR_MOST_OUTPUTS; i++) {
        free(bits->of[i]);
    }
}

static enum status repeat(struct bits both[2], const struct tensor_outputs *outputs,
                          tensor_call *call, void *argument, bool *same, struct error *error) {
    TRY(bits_read(&both[0], outputs, error));
    TRY(call(argument, error));
    TRY(bits_read(&both[1], outputs, error));
    *same = true;
    for (size_t i = 0; i < outputs->count; i++) {
        size_t bytes = bytes_of(outputs->tensors[i]);
        *same = *same && memcmp(both[0].of[i], both[1].of[i], bytes) == 0;
    }
    return STATUS_OK;
}

enum status tensor_repeat(const struct tensor_outputs *outputs, tensor_call *call, void *argument,
                          bool *same, struct error *error) {
    struct bits both[2] = {{{NULL}}, {{NULL}}};
    enum status status = repeat(both, outputs, call, argument, same, error);
    bits_free(&both[0]);
    bits_free(&both[1]);
    return status;
}
